"""Passes in protobuf give what they give in JSON, and the official SDK trains."""

from __future__ import annotations

import importlib.util
import struct
import threading
import time
import unittest
from typing import Any

import uvicorn

from nlac_trainer.protobuf import CLASSES, CONTENT_TYPE, numbers

from .support import Files, Trainer, datum, sequences

DATA = [datum(s, weights=[0.5] * (len(s) - 1)) for s in sequences(1, [4, 9, 6])]
SENT = {"content-type": CONTENT_TYPE}
POLL = {"accept": CONTENT_TYPE, "x-tinker-request-type": "ForwardBackward"}
FORMATS = {"int64": (2, "q"), "float32": (1, "f")}


def message(model: str, data: list[dict[str, Any]], loss: str = "cross_entropy", **more: Any) -> Any:
    """A pass as the SDK writes it."""
    built = CLASSES["ForwardBackwardRequest"](model_id=model, loss_fn=loss, **more)
    for each in data:
        one = built.data.add()
        tokens = each["model_input"]["chunks"][0]["tokens"]
        one.model_input.add().encoded_text.tokens = struct.pack(f"<{len(tokens)}i", *tokens)
        for name, array in each["loss_fn_inputs"].items():
            number, letter = FORMATS[array["dtype"]]
            tensor = one.loss_fn_inputs[name]
            tensor.dtype, tensor.dense = number, struct.pack(f"<{len(array['data'])}{letter}", *array["data"])
    return built


def rows(record: Any, name: str) -> list[list[float]]:
    field = record.fields[name]
    ends = [end // 4 for end in numbers(field.offsets, 2, name)]
    every = numbers(field.data, field.dtype, name)
    return [every[a:b] for a, b in zip(ends, ends[1:])]


class Protobuf(unittest.TestCase):
    files: Files
    trainer: Trainer

    @classmethod
    def setUpClass(cls) -> None:
        cls.files = Files()
        cls.trainer = cls.files.trainer()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.trainer.stop()

    def submit(self, body: bytes, **headers: str):
        return self.trainer.http.post("/api/v1/forward_backward", content=body, headers=SENT | headers)

    def poll(self, submitted):
        self.assertEqual(submitted.status_code, 200, submitted.text)
        body = {"request_id": submitted.json()["request_id"]}
        return self.trainer.http.post("/api/v1/retrieve_future", json=body, headers=POLL)

    def test_both_formats_give_the_same_outputs_and_the_same_step(self) -> None:
        trainer = self.trainer
        one, other = trainer.create(seed=1), trainer.create(seed=1)
        body = message(one, DATA, seq_id=1).SerializeToString()
        submitted = self.submit(body)
        answer = self.poll(submitted)
        self.assertEqual(answer.headers["content-type"], CONTENT_TYPE)
        self.assertEqual(self.submit(body).json(), submitted.json(), "the same number and body")
        output = CLASSES["ForwardBackwardOutput"].FromString(answer.content)
        expected = trainer.backward(other, DATA)
        for name in ("logprobs", "elementwise_loss"):
            read = rows(output.loss_fn_outputs[0], name)
            self.assertEqual(read, [each[name]["data"] for each in expected["loss_fn_outputs"]])
        self.assertEqual(dict(output.metrics), expected["metrics"])
        self.assertEqual(trainer.retrieve(submitted.json()["request_id"]).json(), expected, "in JSON on demand")
        self.assertEqual(trainer.step(one), trainer.step(other))
        self.assertEqual(self.poll(self.submit(message(one, DATA, forward_only=True).SerializeToString())).status_code, 200)
        self.assertEqual(trainer.step(one)["grad_norm"], 0.0, "a forward pass leaves no gradients")

    def test_what_cannot_be_read_is_refused_with_a_reason(self) -> None:
        model = self.trainer.create()

        def refused(built: Any) -> str:
            answer = self.submit(built.SerializeToString())
            self.assertEqual(answer.status_code, 422, answer.text)
            return answer.text

        image = message(model, DATA)
        image.data[1].model_input[0].image.SetInParent()
        self.assertIn("datum 1: model_input takes encoded_text chunks only", refused(image))
        sparse = message(model, DATA)
        sparse.data[0].loss_fn_inputs["weights"].sparse_csr.SetInParent()
        self.assertIn("send a dense array", refused(sparse))
        text = message(model, DATA, "ppo")
        text.loss_fn_config_v2["clip_low_threshold"].text = "low"
        self.assertIn("send a number", refused(text))
        unknown = message(model, DATA)
        unknown.data[0].loss_fn_inputs["mask"].CopyFrom(unknown.data[0].loss_fn_inputs["weights"])
        self.assertIn("mask", refused(unknown))
        self.assertEqual(self.submit(b"{}").status_code, 422)
        self.assertEqual(self.submit(b"", **{"content-encoding": "zstd"}).status_code, 415)
        self.assertEqual(self.submit(b"", **{"content-type": "text/plain"}).status_code, 415)
        odd = message(model, [datum([5, 9_999])])
        failed = self.poll(self.submit(odd.SerializeToString()))
        self.assertEqual(failed.status_code, 200, "the SDK asks again after a 400")
        self.assertIn("out of vocabulary", failed.json()["error"])

    @unittest.skipUnless(importlib.util.find_spec("tinker"), "the official SDK is not installed")
    def test_the_official_sdk_trains(self) -> None:
        import tinker
        from tinker import types

        app = self.trainer.http.app
        server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
        threading.Thread(target=server.run, daemon=True).start()
        while not server.started:
            time.sleep(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        service = tinker.ServiceClient(base_url=f"http://127.0.0.1:{port}", api_key="tml-not-checked")
        client = service.create_lora_training_client("tiny", rank=4, seed=1, train_unembed=False).result()

        def data(**arrays: list[Any]) -> list[Any]:
            return [
                types.Datum(
                    model_input=types.ModelInput.from_ints(s[:-1]),
                    loss_fn_inputs={"target_tokens": s[1:]} | {name: given[i] for name, given in arrays.items()},
                )
                for i, s in enumerate(sequences(1, [4, 9, 6]))
            ]

        losses = []
        for _ in range(5):
            gradients = client.forward_backward(data(), "cross_entropy")
            step = client.optim_step(types.AdamParams(learning_rate=0.02))
            losses.append(gradients.result().metrics["loss:sum"])
            self.assertGreater(step.result().metrics["grad_norm"], 0)
        self.assertLess(losses[-1], 0.9 * losses[0])
        old = [each["logprobs"] for each in client.forward(data(), "cross_entropy").result().loss_fn_outputs]
        advantages = [[1.0] * len(each.data) for each in old]
        learnt = client.forward_backward(data(logprobs=old, advantages=advantages), "importance_sampling").result()
        # Every ratio is 1, so the loss is minus the sum of the advantages.
        self.assertAlmostEqual(learnt.metrics["loss:sum"], -19.0, places=4)
        self.assertEqual(client.save_weights_for_sampler("learnt").result().path, f"tinker://{client.model_id}/learnt")
        with self.assertRaisesRegex(tinker.RequestFailedError, "out of vocabulary"):
            odd = types.Datum(model_input=types.ModelInput.from_ints([5]), loss_fn_inputs={"target_tokens": [9_999]})
            client.forward([odd], "cross_entropy").result()
        server.should_exit = True


if __name__ == "__main__":
    unittest.main()

"""What a request may hold. A model that cannot be made or learnt from is refused before anything has changed."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from fastapi.testclient import TestClient
from pydantic import ValidationError

from nlac_trainer import wire
from nlac_trainer.adapters import Refused
from nlac_trainer.api import Service, build
from nlac_trainer.checkpoints import Checkpoints
from nlac_trainer.losses import check
from nlac_trainer.operations import example

VALUE_CLIP = {"value_clip": 0.2}


def asked(loss: str, config: dict[str, float] | None = None, **arrays: list[float]) -> wire.ForwardInput:
    """A request with a datum of two tokens."""
    inputs = {name: {"data": data} for name, data in arrays.items()}
    datum = {"model_input": {"chunks": [{"tokens": [1, 2]}]}, "loss_fn_inputs": inputs}
    return wire.ForwardInput.model_validate({"data": [datum], "loss_fn": loss, "loss_fn_config": config})


def read(given: wire.ForwardInput) -> Any:
    return example(given.data[0], 0, given, 60, 128)


class Numbers(unittest.TestCase):
    def test_numbers_that_are_not_finite_are_no_message(self) -> None:
        for number in ("NaN", "-Infinity", "1e999"):
            with self.subTest(number):
                with self.assertRaises(ValidationError):
                    wire.Tensor.model_validate_json(f'{{"data": [0.5, {number}]}}')
                with self.assertRaises(ValidationError):
                    wire.AdamParams.model_validate_json(f'{{"learning_rate": {number}}}')
        self.assertEqual(wire.Tensor.model_validate_json('{"data": [1, 2.5]}').data, [1.0, 2.5])
        with self.assertRaises(ValidationError) as caught:
            wire.Tensor.model_validate_json('{"data": [NaN, NaN]}')
        self.assertEqual(caught.exception.error_count(), 1, "one of a million is enough")

    def test_numbers_beyond_float32_are_refused(self) -> None:
        for name, arrays in [("returns", {"returns": [0.0, 1e39]}), ("weights", {"returns": [0.0] * 2, "weights": [-1e39, 0.0]})]:
            with self.subTest(name), self.assertRaisesRegex(Refused, f"{name} is not finite in float32"):
                read(asked("ppo_critic", **arrays))

    def test_a_seed_is_one_that_every_generator_takes(self) -> None:
        self.assertEqual(wire.LoraConfig(rank=4, seed=(1 << 64) - 1).seed, (1 << 64) - 1)
        for seed in (-1, 1 << 64):
            with self.subTest(seed), self.assertRaisesRegex(ValidationError, "seed must be"):
                wire.LoraConfig(rank=4, seed=seed)

    def test_what_is_refused_is_not_sent_back(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        http = self.enterContext(TestClient(build(Service(Mock(), Checkpoints(Path(place.name)), "tiny", 300.0))))
        body = b'{"model_id": "model_1", "adam_params": {"learning_rate": Infinity}}'
        answer = http.post("/api/v1/optim_step", content=body, headers={"content-type": "application/json"})
        self.assertEqual(answer.status_code, 422, answer.text)
        [found] = answer.json()["detail"]
        self.assertEqual(found["loc"], ["body", "adam_params", "learning_rate"])
        self.assertEqual(found.keys(), {"type", "loc", "msg"})


class Losses(unittest.TestCase):
    def test_old_values_are_needed_and_read_where_values_are_held_near_them(self) -> None:
        returns = [0.5, 1.0]
        with self.assertRaisesRegex(Refused, "needs loss_fn_inputs.values"):
            read(asked("ppo_critic", VALUE_CLIP, returns=returns))
        held = read(asked("ppo_critic", VALUE_CLIP, returns=returns, values=[0.0, 0.0]))
        self.assertEqual(held.arrays.keys(), {"returns", "values"})
        # Of data of one request some may have them, and some not.
        free = read(asked("ppo_critic", returns=returns, values=[0.0, 0.0]))
        self.assertEqual(free.arrays.keys(), {"returns"})

    def test_settings_that_make_no_sense_are_refused(self) -> None:
        for name, config, words in [
            ("ppo", {"clip_low_threshold": 1.5}, "clip_low_threshold is above"),
            ("ppo", {"clip_high_threshold": -1.0}, "at least 0"),
            ("ppo_dual_clip", {"clip_dual_threshold": 1.1}, "clip_dual_threshold is not above"),
            ("ppo_dual_clip", {"clip_high_threshold": 3.0}, "clip_dual_threshold is not above"),
        ]:
            with self.subTest(name, **config), self.assertRaisesRegex(ValueError, words):
                check(name, config, "policy")
        with self.assertRaisesRegex(ValueError, "value_clip: a number of at least 0"):
            check("ppo_critic", {"value_clip": -0.5}, "critic")
        check("ppo", {"clip_high_threshold": 4.0}, "policy")
        check("ppo_dual_clip", None, "policy")
        check("scored_ppo", {"clip_low_threshold": 0.9}, "policy")


if __name__ == "__main__":
    unittest.main()

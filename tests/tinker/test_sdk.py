"""The official SDK of the Tinker API on the embedded trainer."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator

import pytest
import tinker
from tinker import types

MODEL = "help-desk-base"
KEY = "tml-not-checked"
ADAM = types.AdamParams(learning_rate=0.02, grad_clip_norm=1.0)


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The trainer's address."""
    with tempfile.TemporaryDirectory() as place:
        command = [os.environ["NLAC_BIN"], "local", "trainer", "--name", MODEL, "--listen", "127.0.0.1:0"]
        command += ["--checkpoints", f"{place}/checkpoints"]
        environment = os.environ | {"NLAC_DATA_DIR": place}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            try:
                said = process.stdout.readline()
                assert "http://" in said, said
                yield said.split(" at ")[1].strip()
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(60)


@pytest.fixture(scope="session")
def service(url: str) -> tinker.ServiceClient:
    return tinker.ServiceClient(base_url=url, api_key=KEY)


@pytest.fixture
def client(service: tinker.ServiceClient) -> tinker.TrainingClient:
    return service.create_lora_training_client(MODEL, rank=4, seed=1).result()


def datum(sequence: list[int], **arrays: list[float]) -> types.Datum:
    inputs = {"target_tokens": sequence[1:], **arrays}
    return types.Datum(model_input=types.ModelInput.from_ints(sequence[:-1]), loss_fn_inputs=inputs)


DATA = [
    datum([5, 6, 7, 8, 9, 10], weights=[0.0, 0.0, 1.0, 1.0, 1.0]),
    datum([11, 12, 13, 14], weights=[1.0, 1.0, 1.0]),
]


def learn(client: tinker.TrainingClient, data: list[types.Datum], loss: str, config=None):
    """Gradients and a step, both asked for before either is waited for."""
    gradients = client.forward_backward(data, loss, config)
    step = client.optim_step(ADAM)
    return gradients.result(), step.result()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_service_names_its_model(service: tinker.ServiceClient) -> None:
    assert [model.model_name for model in service.get_server_capabilities().supported_models] == [MODEL]


def test_cross_entropy_falls_and_adapters_are_saved(client: tinker.TrainingClient, url: str) -> None:
    losses = []
    for _ in range(8):
        output, step = learn(client, DATA, "cross_entropy")
        losses.append(output.metrics["loss:sum"])
        assert step.metrics["grad_norm"] > 0
        assert [len(each["logprobs"].data) for each in output.loss_fn_outputs] == [5, 3]
        said = zip(output.loss_fn_outputs, DATA, strict=True)
        summed = sum(-(o["logprobs"].to_numpy() * d.loss_fn_inputs["weights"].to_numpy()).sum() for o, d in said)
        assert summed == pytest.approx(losses[-1], rel=1e-5)
    assert losses[-1] < 0.7 * losses[0], losses

    saved = client.save_weights_for_sampler("learnt").result().path
    assert saved == f"tinker://{client.model_id}/learnt"
    archive = f"{url}/api/v1/training_runs/{client.model_id}/checkpoints/learnt/archive"
    with urllib.request.urlopen(archive) as answer:
        packed = tarfile.open(fileobj=io.BytesIO(answer.read()))
    assert sorted(packed.getnames()) == ["adapter_config.json", "adapter_model.safetensors"]
    assert client.save_state("learnt").result().path == f"tinker://{client.model_id}/weights/learnt"


@pytest.mark.parametrize(
    ("loss", "config"),
    [("importance_sampling", None), ("ppo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2})],
)
def test_advantages_move_the_probabilities(client: tinker.TrainingClient, loss: str, config) -> None:
    def said() -> list[types.LossFnOutput]:
        return client.forward(DATA, "cross_entropy").result().loss_fn_outputs

    before = said()
    assert [each["logprobs"].tolist() for each in before] == [each["logprobs"].tolist() for each in said()]
    data = [
        types.Datum(
            model_input=each.model_input,
            loss_fn_inputs={
                "target_tokens": each.loss_fn_inputs["target_tokens"],
                "logprobs": old["logprobs"],
                "advantages": [sign] * len(old["logprobs"].data),
            },
        )
        for each, old, sign in zip(DATA, before, [1.0, -1.0], strict=True)
    ]
    learn(client, data, loss, config)
    after = said()
    moved = [new["logprobs"].to_numpy().sum() - old["logprobs"].to_numpy().sum() for new, old in zip(after, before)]
    assert moved[0] > 0 > moved[1], moved


def test_a_batch_of_many_requests_keeps_its_order(client: tinker.TrainingClient) -> None:
    data = [datum([5 + i % 7, 6 + i % 5, 7 + i % 3]) for i in range(1100)]
    outputs = client.forward(data, "cross_entropy").result().loss_fn_outputs
    assert len(outputs) == 1100
    assert outputs[1050]["logprobs"].tolist() == outputs[0]["logprobs"].tolist()


def test_failures_say_what_to_do(service: tinker.ServiceClient, client: tinker.TrainingClient) -> None:
    with pytest.raises(tinker.RequestFailedError, match="out of vocabulary"):
        client.forward([datum([5, 900_000])], "cross_entropy").result()
    with pytest.raises(tinker.UnprocessableEntityError, match="dro.* is not supported"):
        client.forward(DATA, "dro").result()
    with pytest.raises(tinker.UnprocessableEntityError, match=f"use .*{MODEL}"):
        service.create_lora_training_client("another", rank=4).result()
    with pytest.raises(tinker.UnprocessableEntityError, match="an engine can load it"):
        service.create_lora_training_client(MODEL, rank=4).result().save_weights_and_get_sampling_client().result()

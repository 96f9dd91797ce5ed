"""An adapter in PEFT and in vLLM: it loads whole, changes what the base says, and both say the same with it."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from conftest import BASE
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

VLLM = os.environ.get("NLAC_VLLM", "")
STATE = [{"role": "user", "content": "i want a refund form empty left 5"}]


def logprobs(model: Any, tokens: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].log_softmax(-1)


@pytest.fixture(scope="module")
def prompt(exported: Path) -> list[int]:
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    text = tokenizer.apply_chat_template(STATE, tokenize=False, add_generation_prompt=True)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.fixture(scope="module")
def adapted(exported: Path) -> PeftModel:
    base = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
    return PeftModel.from_pretrained(base, exported / "adapter").eval()


def test_peft_loads_all_of_it(exported: Path, adapted: PeftModel, prompt: list[int]) -> None:
    stored = load_file(exported / "adapter" / "adapter_model.safetensors")
    loaded = get_peft_model_state_dict(adapted)
    assert stored.keys() == loaded.keys()
    assert all(torch.equal(stored[name], loaded[name]) for name in stored)
    with adapted.disable_adapter():
        before = logprobs(adapted, prompt)
    after = logprobs(adapted, prompt)
    assert (after - before).abs().max() > 0.1, "it changes what the base says"


@pytest.fixture(scope="module")
def engine(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not os.access(VLLM, os.X_OK):
        pytest.skip("no vLLM here; scripts/install-real-stack brings one")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, log = f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("vllm") / "log"
    # On a CPU the last slot must stay empty: rows without an adapter get its weights.
    command = [VLLM, "serve", str(BASE), "--served-model-name", "base", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--dtype", "float32", "--max-model-len", "512", "--enforce-eager"]
    command += ["--enable-lora", "--max-lora-rank", "16", "--max-loras", "4"]
    command += ["--lora-modules", f"exported={exported / 'adapter'}"]
    # Its Python is another one.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {"VLLM_CPU_KVCACHE_SPACE": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env=environment, start_new_session=True
        )
    try:
        until = time.monotonic() + 240
        while not answers(url):
            assert process.poll() is None and time.monotonic() < until, log.read_text()[-3000:]
            time.sleep(0.5)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5).is_success
    except httpx.TransportError:
        return False


def test_vllm_says_the_same_with_it(engine: str, adapted: PeftModel, prompt: list[int]) -> None:
    names = [model["id"] for model in httpx.get(f"{engine}/v1/models").json()["data"]]
    assert names == ["base", "exported"]
    # A whole reply: what the adapter would say.
    spoken = adapted.generate(torch.tensor([prompt]), max_new_tokens=8, do_sample=False)[0].tolist()
    said = {}
    for name in names:
        ask = {"model": name, "prompt": spoken, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
        answer = httpx.post(f"{engine}/v1/completions", json=ask, timeout=120)
        assert answer.is_success, answer.text
        told = answer.json()["choices"][0]["prompt_logprobs"][1:]
        said[name] = [
            at[str(token)]["logprob"] for at, token in zip(told, spoken[1:], strict=True)
        ]
    ours = logprobs(adapted, spoken)
    expected = [ours[i, token].item() for i, token in enumerate(spoken[1:])]
    assert said["exported"] == pytest.approx(expected, abs=1e-3)
    assert max(abs(a - b) for a, b in zip(said["base"], said["exported"], strict=True)) > 0.1

"""Trains one adapter on each trainer (ours, the PyTorch one, SkyRL), loads it into our engine, into vLLM and
into the trainers that read PEFT files (SkyRL reads only its own), and demands the same greedy tokens of both
engines and, on 100 sampled sequences, the same log-probability per token of all. So SkyRL's adapter is compared
in all five. Called by scripts/real-stack."""

import json
import random
import shutil
import sys
import tarfile
import time
import urllib.error
import urllib.request
from itertools import combinations
from pathlib import Path

MODEL, PLACE = sys.argv[1], Path(sys.argv[2])
TOLERANCE = 1e-3
VLLM, OURS = "http://127.0.0.1:18601", "http://127.0.0.1:18603"


def post(url, body, raw=False):
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    text = urllib.request.urlopen(request, timeout=300).read()
    return text if raw else json.loads(text)


def result(base, request_id):
    while True:
        try:
            return post(f"{base}/api/v1/retrieve_future", {"request_id": request_id})
        except urllib.error.HTTPError as error:
            if error.code != 408:
                raise RuntimeError(error.read().decode()) from error


def create(base, seed):
    call = lambda route, body: post(f"{base}/api/v1/{route}", body)
    session = call("create_session", {"tags": [], "user_metadata": {}, "sdk_version": "x", "type": "create_session"})
    made = call("create_model", {
        "session_id": session["session_id"], "model_seq_id": 0, "base_model": MODEL,
        "lora_config": {"rank": 16, "seed": seed}, "type": "create_model"})
    result(base, made["request_id"])
    return made["model_id"]


def train(base):
    """Some steps on a made-up habit, so that the adapter differs from the base."""
    call = lambda route, body: post(f"{base}/api/v1/{route}", body)
    model_id = create(base, 1)
    chance, sequence = random.Random(5), 0
    for _ in range(8):
        data = []
        for _ in range(16):
            tokens = [chance.randrange(6, 72) for _ in range(24)]
            tokens[12:] = [(t * 7 + 3) % 66 + 6 for t in tokens[:12]]
            data.append({
                "model_input": {"chunks": [{"type": "encoded_text", "tokens": tokens[:-1]}]},
                "loss_fn_inputs": {
                    "target_tokens": {"data": tokens[1:], "dtype": "int64", "shape": [23]},
                    "weights": {"data": [1.0] * 23, "dtype": "float32", "shape": [23]}}})
        sequence += 1
        forward = call("forward_backward", {"model_id": model_id, "seq_id": sequence,
            "forward_backward_input": {"data": data, "loss_fn": "cross_entropy"}})
        result(base, forward["request_id"])
        sequence += 1
        step = call("optim_step", {"model_id": model_id, "seq_id": sequence, "adam_params": {
            "learning_rate": 5e-3, "beta1": 0.9, "beta2": 0.98, "eps": 1e-8, "weight_decay": 0.0}})
        result(base, step["request_id"])
    saved = call("save_weights_for_sampler", {"model_id": model_id, "path": "x1", "type": "save_weights_for_sampler"})
    result(base, saved["request_id"])
    return model_id


def begin(base, kept, name, directory):
    """A model that begins from another trainer's adapter, put where this trainer keeps its states."""
    shutil.copytree(directory, kept / name / "weights" / "begun")
    model_id = create(base, 2)
    result(base, post(f"{base}/api/v1/load_weights", {
        "model_id": model_id, "path": f"tinker://{name}/weights/begun", "optimizer": False})["request_id"])
    return model_id


def sampled(engine, model, prompts):
    """Sequences that an engine wrote, with its log-probabilities of what it wrote."""
    for number, prompt in enumerate(prompts):
        choice = post(f"{engine}/v1/completions", {
            "model": model, "prompt": prompt, "max_tokens": 24, "temperature": 1, "seed": number,
            "ignore_eos": True, "return_token_ids": True, "logprobs": 0})["choices"][0]
        yield prompt, choice["token_ids"], choice["logprobs"]["token_logprobs"]


def by_vllm(model, prompt, written):
    answer = post(f"{VLLM}/v1/completions", {
        "model": model, "prompt": prompt + written, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0})
    told = answer["choices"][0]["prompt_logprobs"][len(prompt):]
    return [position[str(token)]["logprob"] for position, token in zip(told, written)]


def by_trainer(base, model_id, texts):
    data = [{
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": (prompt + written)[:-1]}]},
        "loss_fn_inputs": {"target_tokens": {"data": (prompt + written)[1:], "dtype": "int64"}}}
        for prompt, written, _ in texts]
    body = {"model_id": model_id, "forward_input": {"data": data, "loss_fn": "cross_entropy"}}
    made = result(base, post(f"{base}/api/v1/forward", body)["request_id"])
    for (_, written, _), output in zip(texts, made["loss_fn_outputs"]):
        yield output["logprobs"]["data"][-len(written):]


def furthest(one, other):
    return max(abs(a - b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))


def fetch(base, model_id, into):
    url = f"{base}/api/v1/training_runs/{model_id}/checkpoints/x1/archive"
    packed = into.with_suffix(".tar")
    packed.write_bytes(urllib.request.urlopen(url, timeout=120).read())
    into.mkdir()
    with tarfile.open(packed) as archive:
        archive.extractall(into, filter="data")
    return into


def greedy(base, model, prompts):
    return [
        post(f"{base}/v1/completions", {
            "model": model, "prompt": prompt, "max_tokens": 16, "temperature": 0, "ignore_eos": True,
            "return_token_ids": True})["choices"][0]["token_ids"]
        for prompt in prompts
    ]


chance = random.Random(9)
prompts = [[1] + [chance.randrange(6, 72) for _ in range(20)] for _ in range(20)]
more = [[1] + [chance.randrange(6, 72) for _ in range(chance.randrange(4, 60))] for _ in range(100)]
failed = 0
trainers = {
    "our trainer": "http://127.0.0.1:18604",
    "PyTorch": "http://127.0.0.1:18605",
    "SkyRL": "http://127.0.0.1:18602",
}
readers = {"our trainer": PLACE / "ours", "PyTorch": PLACE / "torch"}
for name, base in trainers.items():
    started, served = time.time(), f"from-{name.replace(' ', '-')}"
    model_id = train(base)
    directory = fetch(base, model_id, PLACE / f"adapter-{served}")
    tokens = {}
    for engine in (OURS, VLLM):
        post(f"{engine}/v1/load_lora_adapter", {"lora_name": served, "lora_path": str(directory)}, raw=True)
        tokens[engine] = greedy(engine, served, prompts)
    plain = greedy(OURS, MODEL, prompts)
    same = sum(a == b for a, b in zip(tokens[OURS], tokens[VLLM]))
    changed = sum(a != b for a, b in zip(tokens[OURS], plain))
    texts = list(sampled(OURS, served, more))
    scores = {
        "our engine": [logprobs for _, _, logprobs in texts],
        "vLLM": [by_vllm(served, prompt, written) for prompt, written, _ in texts],
        name: list(by_trainer(base, model_id, texts)),
    }
    for other, kept in readers.items():
        if other != name:
            scores[other] = list(by_trainer(trainers[other], begin(trainers[other], kept, served, directory), texts))
    gaps = {pair: furthest(scores[pair[0]], scores[pair[1]]) for pair in combinations(scores, 2)}
    ok = same == len(prompts) and changed > 0 and max(gaps.values()) < TOLERANCE
    failed += not ok
    print(f"{'ok' if ok else 'FAILED'}: adapter of {name}: {same} of {len(prompts)} greedy answers equal in both "
          f"engines, {changed} differ from the base ({time.time() - started:.0f} s)")
    written = sum(len(tokens) for _, tokens, _ in texts)
    print(f"    log-probabilities of {written} tokens in {len(scores)} places:")
    for (one, other), gap in gaps.items():
        print(f"    {gap:.1e} apart at most: {one} and {other}")
print(f"{len(trainers) - failed} passed, {failed} failed")
sys.exit(failed)

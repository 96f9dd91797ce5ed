"""How fast the trainer learns: tokens per second and the share of the GPU's arithmetic, for random weights in the shape
of a real model. Each variant computes the same losses; how far they are apart is printed too.

    python benches/speed.py --shape 7b --variants padded packed compiled unchecked
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import torch
from accelerate import PartialState
from transformers import AutoModelForCausalLM, Qwen2Config

sys.path.insert(0, str(Path(__file__).parent.parent))

from nlac_trainer import passes, wire
from nlac_trainer.adapters import Adapters
from nlac_trainer.base import Base, BaseSettings
from nlac_trainer.batches import Example, plan
from nlac_trainer.loading import DTYPES

SHAPES = {  # Qwen2.5 and QwQ, as their configurations say.
    "tiny": dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2),
    "7b": dict(
        hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4
    ),
    "32b": dict(
        hidden_size=5120, intermediate_size=27648, num_hidden_layers=64, num_attention_heads=40, num_key_value_heads=8
    ),
}
VARIANTS = {  # attention, compiled, gradient checkpointing
    "padded": ("sdpa", False, True),
    "packed": ("packed", False, True),
    "compiled": ("packed", True, True),
    "unchecked": ("packed", True, False),
}


def told() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--shape", choices=list(SHAPES), default="tiny")
    add("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    add("--batches", type=int, default=3, help="micro-batches of one measured step")
    add("--tokens-per-batch", type=int, default=16384)
    add("--longest", type=int, default=4096, help="tokens of the longest sequence; lengths are log-normal")
    add("--rank", type=int, default=32)
    add("--steps", type=int, default=2, help="measured after one that is not")
    add("--profile", type=int, default=0, metavar="N", help="also print the N kernels that take longest")
    return parser.parse_args()


def sequences(tokens: int, longest: int, vocabulary: int) -> list[Example]:
    """Lengths spread as conversations are; the last quarter of each is learnt from."""
    generator = torch.Generator().manual_seed(0)
    made: list[Example] = []
    while sum(len(example.tokens) for example in made) < 0.95 * tokens:
        length = int(torch.empty(()).log_normal_(5.5 + 0.5 * (longest > 2048), 0.9, generator=generator))
        length = min(max(length, 16), longest)
        line = torch.randint(vocabulary, (length + 1,), generator=generator).tolist()
        weights = [float(place >= 0.75 * length) for place in range(length)]
        made.append(Example(line[:-1], weights, {"target_tokens": line[1:]}))
    return made


def operations(config: Qwen2Config, rank: int, examples: list[Example]) -> float:
    """Floating-point operations that a step needs, without any that are repeated to save memory. Frozen weights have no
    gradients: two operations a weight and token forward, two backward; of an adapter's weights six."""
    hidden, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    keys = hidden * config.num_key_value_heads // config.num_attention_heads
    maps = [(hidden, hidden), (hidden, keys), (hidden, keys), (hidden, hidden)] + [(hidden, inner)] * 2 + [(inner, hidden)]
    frozen = layers * sum(a * b for a, b in maps)
    adapted = layers * rank * sum(a + b for a, b in maps)
    tokens = sum(len(example.tokens) for example in examples)
    learnt = sum(sum(example.weights) for example in examples)
    seen = sum(len(example.tokens) ** 2 / 2 for example in examples)
    head = hidden * config.vocab_size * (2 * tokens + 2 * learnt)
    return tokens * (4 * frozen + 6 * adapted) + head + 12 * layers * hidden * seen


def peak(device: torch.device) -> float:
    """Operations a second of a large product in bfloat16, the ceiling that this machine reaches."""
    side = 8192 if device.type == "cuda" else 512
    a, b = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    for repeats in (3, 20):
        settle(device)
        start = time.perf_counter()
        for _ in range(repeats):
            a @ b
        settle(device)
    return 2 * side**3 * repeats / (time.perf_counter() - start)


def settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    asked = told()
    state = PartialState(cpu=not torch.cuda.is_available())
    device = state.device
    dtype = "bfloat16" if device.type == "cuda" else "float32"
    torch.set_float32_matmul_precision("high")
    config = Qwen2Config(vocab_size=152064 if asked.shape != "tiny" else 60, max_position_embeddings=32768, **SHAPES[asked.shape])
    torch.manual_seed(0)
    with device:
        model = AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype])
    examples = sequences(asked.batches * asked.tokens_per_batch, asked.longest, config.vocab_size)
    lengths = [len(example.tokens) for example in examples]
    needed, ceiling = operations(config, asked.rank, examples), peak(device)
    card = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(json.dumps({"card": card, "shape": asked.shape, "tokens": sum(lengths), "sequences": len(lengths),
                      "peak_tflops": round(ceiling / 1e12, 1)}), flush=True)  # fmt: skip
    first = None
    for name in asked.variants:
        attention, compiles, checkpointing = VARIANTS[name]
        model.set_attn_implementation("sdpa")
        model.gradient_checkpointing_disable()
        for layer in model.model.layers:
            layer._compiled_call_impl = None
        base = Base(model, BaseSettings(dtype, checkpointing, attention, compiles), state)
        adapters = Adapters(base, asked.shape)
        lora = wire.LoraConfig(rank=asked.rank, seed=0)
        adapter = adapters.create(f"speed-{name}", lora, "policy", 0)
        adapters.use(adapter.name)
        batches = plan(lengths, asked.tokens_per_batch, 1, padded=not base.packs)[0]
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        seconds = []
        try:
            for step in range(asked.steps + 1):
                settle(device)
                start = time.perf_counter()
                outputs = passes.run(adapters, adapter, examples, batches, ("cross_entropy", None), learn=True)
                norm = adapter.step(wire.AdamParams(learning_rate=1e-4 if step else 0.0), lambda tensor: None)
                settle(device)
                seconds.append(time.perf_counter() - start)
                if step == 0:
                    said = torch.tensor([x for o in sorted(outputs, key=lambda o: o.row) for x in o.predicted])
                    loss, norm_first = sum(sum(o.losses) for o in outputs), norm
                    first = first or (said, loss, norm)
        except torch.OutOfMemoryError as error:
            print(json.dumps({"variant": name, "error": str(error)[:120]}), flush=True)
            seconds = []
        if seconds:
            took = sum(seconds[1:]) / asked.steps
            gib = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
            print(json.dumps({
                "variant": name, "batches": len(batches), "first_s": round(seconds[0], 2), "step_s": round(took, 3),
                "tokens_per_s": round(sum(lengths) / took), "tflops": round(needed / took / 1e12, 1),
                "share_of_peak": round(needed / took / ceiling, 3), "gib": round(gib, 1),
                "logprob_gap": float((said - first[0]).abs().mean()),
                "loss_gap": abs(loss / first[1] - 1), "norm_gap": abs(norm_first / first[2] - 1),
            }), flush=True)  # fmt: skip
            if asked.profile:
                with torch.profiler.profile() as profile:
                    passes.run(adapters, adapter, examples, batches[:1], ("cross_entropy", None), learn=True)
                    settle(device)
                by = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
                print(profile.key_averages().table(sort_by=by, row_limit=asked.profile, max_name_column_width=60))
        adapters.remove(adapter.name)
        del base, adapters, adapter
        if device.type == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

"""Tokens per second of a trainer through the official SDK of the Tinker API, which sends protobuf.

    sdk_speed.py URL MODEL

The batch is that of crates/local/examples/throughput.rs: gradients of 32 sequences of 95 tokens at rank 8, and a step.
Called by `scripts/real-stack bench`.
"""

from __future__ import annotations

import sys
import time

import tinker
from tinker import types

SEQUENCES, TOKENS, VOCABULARY, BATCHES = 32, 95, 72, 6
ADAM = types.AdamParams(learning_rate=1e-4)


def datum(number: int) -> types.Datum:
    """A sequence whose last quarter is learned."""
    tokens = [(number * 7 + place * 3) % VOCABULARY for place in range(TOKENS + 1)]
    weights = [float(place >= TOKENS * 3 // 4) for place in range(TOKENS)]
    inputs = {"target_tokens": tokens[1:], "weights": weights}
    return types.Datum(model_input=types.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs)


def main(url: str, model: str) -> None:
    """Prints a line for each batch."""
    service = tinker.ServiceClient(base_url=url, api_key="tml-not-checked")
    client = service.create_lora_training_client(model, rank=8, seed=1, train_unembed=False).result()
    data = [datum(number) for number in range(SEQUENCES)]
    trained = SEQUENCES * TOKENS
    for batch in range(BATCHES):
        began = time.monotonic()
        gradients, step = client.forward_backward(data, "cross_entropy"), client.optim_step(ADAM)
        gradients.result(), step.result()
        seconds = time.monotonic() - began
        warming = "" if batch else " (warming up)"
        print(f"{trained} trained tokens in {seconds:.3f} s: {trained / seconds:.0f} per second{warming}")


if __name__ == "__main__":
    main(*sys.argv[1:])

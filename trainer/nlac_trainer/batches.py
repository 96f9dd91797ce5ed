"""Micro-batches of sequences of like length, so that little of a batch is padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Example:
    """A sequence to learn from; all arrays are of the length of `tokens`."""

    tokens: list[int]
    weights: list[float]
    arrays: dict[str, list[float] | list[int]]


@dataclass(frozen=True)
class Batch:
    """Sequences padded on the right. `rows` are their places in the request."""

    rows: list[int]
    tokens: torch.Tensor
    mask: torch.Tensor
    weights: torch.Tensor
    arrays: dict[str, torch.Tensor]


def plan(lengths: Sequence[int], budget: int, ranks: int) -> list[list[list[int]]]:
    """Places of the sequences, per rank its micro-batches, each of at most `budget` padded tokens or one
    sequence. Every rank gets equally many, because ranks that share a model must run in step; an
    empty one stands for no work."""
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    batches: list[list[int]] = []
    for row in order:
        # Longest first: the first of a batch is as long as the batch is padded to.
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= budget:
            batches[-1].append(row)
        else:
            batches.append([row])
    while len(batches) < ranks and any(len(batch) > 1 for batch in batches):
        largest = max(batches, key=len)
        batches.remove(largest)
        half = (len(largest) + 1) // 2
        batches += [largest[:half], largest[half:]]
    shares: list[list[list[int]]] = [[] for _ in range(ranks)]
    for number, batch in enumerate(batches):
        shares[number % ranks].append(batch)
    for share in shares:
        share.extend([] for _ in range(len(shares[0]) - len(share)))
    return shares


def collate(examples: Sequence[Example], rows: list[int], device: torch.device) -> Batch:
    """A padded batch of some of the examples. No rows make a batch of one token without weight."""
    chosen = [examples[row] for row in rows] or [_nothing(examples[0])]
    longest = max(len(example.tokens) for example in chosen)

    def padded(values: Sequence[Sequence[float]], dtype: torch.dtype) -> torch.Tensor:
        rows = [list(row) + [0] * (longest - len(row)) for row in values]
        return torch.tensor(rows, dtype=dtype, device=device)

    mask = padded([[1] * len(example.tokens) for example in chosen], torch.bool)
    arrays = {
        name: padded(
            [example.arrays[name] for example in chosen],
            torch.long if name == "target_tokens" else torch.float32,
        )
        for name in chosen[0].arrays
    }
    tokens = padded([example.tokens for example in chosen], torch.long)
    weights = padded([example.weights for example in chosen], torch.float32)
    return Batch(rows, tokens, mask, weights, arrays)


def _nothing(like: Example) -> Example:
    return Example(like.tokens[:1], [0.0], {name: values[:1] for name, values in like.arrays.items()})

"""Micro-batches of sequences: packed one after the other, or, for models that cannot, padded to one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch


@dataclass(frozen=True)
class Example:
    """A sequence to learn from; all arrays are of the length of `tokens`."""

    tokens: list[int]
    weights: list[float]
    arrays: dict[str, list[float]]


@dataclass(frozen=True)
class Batch:
    """Sequences one after the other, `[tokens]` long. `rows` are their places in the request."""

    rows: list[int]
    lengths: list[int]
    tokens: torch.Tensor
    weights: torch.Tensor
    arrays: dict[str, torch.Tensor]
    starts: torch.Tensor
    """Where each sequence begins, and where the last ends."""
    positions: torch.Tensor
    """Of each token in its sequence."""
    sequences: torch.Tensor
    """The number of each token's sequence in the batch."""
    weighing: torch.Tensor
    """Places of the tokens that are learnt from."""
    still: torch.Tensor
    """Places of the others."""


def plan(lengths: Sequence[int], budget: int, ranks: int, padded: bool) -> list[list[list[int]]]:
    """Places of the sequences, per rank its micro-batches, each of at most `budget` tokens or one sequence. Where batches
    are `padded`, padding counts. Every rank gets equally many, because ranks that share a model must run in step; an
    empty one stands for no work."""
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    batches: list[list[int]] = []
    room: list[int] = []
    for row in order:
        # Longest first. What is padded goes beside its like; what is packed goes wherever there is room.
        tried = range(max(len(batches) - 1, 0), len(batches)) if padded else range(len(batches))
        fits = next((n for n in tried if room[n] >= (lengths[batches[n][0]] if padded else lengths[row])), None)
        if fits is None:
            batches.append([row])
            room.append(budget - lengths[row])
        else:
            batches[fits].append(row)
            room[fits] -= lengths[batches[fits][0]] if padded else lengths[row]
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
    """Some of the examples in a row. No rows make one token without weight. On a GPU the copies run beside what it is
    computing: nothing here waits for it."""
    chosen = [examples[row] for row in rows] or [_nothing(examples[0])]
    lengths = [len(example.tokens) for example in chosen]

    def tensor(values: Sequence[float], dtype: torch.dtype = torch.long) -> torch.Tensor:
        made = torch.tensor(values, dtype=dtype)
        return made.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else made

    def joined(parts: Sequence[Sequence[float]], dtype: torch.dtype) -> torch.Tensor:
        return tensor([value for part in parts for value in part], dtype)

    arrays = {
        name: joined(
            [example.arrays[name] for example in chosen],
            torch.long if name == "target_tokens" else torch.float32,
        )
        for name in chosen[0].arrays
    }
    weights = [weight for example in chosen for weight in example.weights]
    return Batch(
        rows,
        lengths,
        joined([example.tokens for example in chosen], torch.long),
        tensor(weights, torch.float32),
        arrays,
        tensor([0, *accumulate(lengths)], torch.int32),
        tensor([place for length in lengths for place in range(length)]),
        tensor([number for number, length in enumerate(lengths) for _ in range(length)]),
        tensor([place for place, weight in enumerate(weights) if weight != 0]),
        tensor([place for place, weight in enumerate(weights) if weight == 0]),
    )


def _nothing(like: Example) -> Example:
    return Example(like.tokens[:1], [0.0], {name: values[:1] for name, values in like.arrays.items()})

"""Forward and backward passes of an adapter over a request's data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from .adapters import Adapter, Adapters
from .base import Base
from .batches import Batch, Example, collate
from .losses import token_losses

CHUNK = 1024
"""Positions whose logits exist at a time: a vocabulary of 150k makes 0.6 GB of them in float32."""


@dataclass(frozen=True)
class Output:
    """Of one sequence: what was predicted (log-probabilities or values), and weight times loss."""

    row: int
    predicted: list[float]
    losses: list[float]


def run(
    adapters: Adapters,
    adapter: Adapter,
    examples: Sequence[Example],
    batches: Sequence[list[int]],
    loss: tuple[str, Mapping[str, float] | None],
    learn: bool,
) -> list[Output]:
    """Runs this rank's micro-batches; with `learn` the gradients of the summed loss are added."""
    outputs: list[Output] = []
    for rows in batches:
        batch = collate(examples, rows, adapters.base.device)
        with torch.set_grad_enabled(learn):
            predicted = _predict(adapters, adapter, batch)
            losses = token_losses(*loss, predicted, batch.arrays) * batch.weights
        if learn:
            # Where nothing weighs the graph may be empty, but ranks in step must all go backward.
            (losses.sum() + 0.0 * predicted.sum()).backward()
        lengths = batch.mask.sum(dim=1).tolist()
        for row, length, said, lost in zip(
            batch.rows, lengths, predicted.detach().tolist(), losses.detach().tolist(), strict=False
        ):
            outputs.append(Output(row, said[:length], lost[:length]))
    return outputs


def _predict(adapters: Adapters, adapter: Adapter, batch: Batch) -> torch.Tensor:
    base = adapters.base
    hidden = base.hidden(batch.tokens, batch.mask)
    if adapter.role == "critic":
        return adapters.heads[adapter.name](hidden.float()).squeeze(-1)
    targets = batch.arrays["target_tokens"]
    predicted = torch.zeros(targets.shape, device=hidden.device)
    # Positions without weight are told but not learnt from: they need no graph through the output layer.
    weighing = batch.mask & (batch.weights != 0)
    for positions, learnt in [(weighing, True), (batch.mask & ~weighing, False)]:
        if positions.any():
            told = logprobs(base, hidden[positions], targets[positions], learnt)
            predicted = predicted.masked_scatter(positions, told)
    if torch.is_grad_enabled() and not weighing.any():
        predicted = predicted + 0.0 * hidden.float().sum()
    return predicted


def logprobs(base: Base, states: torch.Tensor, targets: torch.Tensor, learnt: bool) -> torch.Tensor:
    """Log-probability of the token after each state, natural log."""
    parts = []
    for start in range(0, len(targets), CHUNK):
        some, tokens = states[start : start + CHUNK], targets[start : start + CHUNK]
        if learnt and torch.is_grad_enabled():
            parts.append(checkpoint(_logprobs, base, some, tokens, use_reentrant=False))
        else:
            parts.append(_logprobs(base, some.detach(), tokens).detach())
    return torch.cat(parts)


def _logprobs(base: Base, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return -F.cross_entropy(base.logits(hidden), targets, reduction="none")

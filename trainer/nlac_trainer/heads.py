"""Value heads of critics: from the last hidden state to one value."""

from __future__ import annotations

import torch
from torch import nn

from . import wire


def value_head(inputs: int, asked: wire.ValueHead | None, device: torch.device) -> nn.Sequential:
    """A head whose values begin at 0, because its last map does. Hidden layers (ReLU) are drawn from torch's
    generator, on the CPU, so that every rank draws the same."""
    layers: list[nn.Module] = []
    for _ in range(asked.layers if asked else 0):
        layers += [nn.Linear(inputs, asked.hidden), nn.ReLU()]
        inputs = asked.hidden
    last = nn.Linear(inputs, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*layers, last).to(device)


def described(rank: int, role: str, head: wire.ValueHead | None) -> str:
    """What two models must have in common so that every tensor of one has its like in the other."""
    inside = f" with a head of {head.layers} × {head.hidden}" if head else ""
    return f"{role} of rank {rank}{inside}"

"""Losses per token, as the Tinker API names and defines them. Reduction is always the sum over tokens of
weight times loss: two calls before a step add up, whatever their sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

Arrays = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Loss:
    """What a loss reads and which settings it has."""

    needs: tuple[str, ...]
    settings: Mapping[str, float | None]
    role: str = "policy"


LOSSES: dict[str, Loss] = {
    "cross_entropy": Loss(("target_tokens",), {}),
    "importance_sampling": Loss(("target_tokens", "logprobs", "advantages"), {}),
    "ppo": Loss(
        ("target_tokens", "logprobs", "advantages"),
        {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2},
    ),
    # Not of the Tinker API: beyond the dual threshold, a token with a negative advantage pulls no further.
    "ppo_dual_clip": Loss(
        ("target_tokens", "logprobs", "advantages"),
        {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2, "clip_dual_threshold": 3.0},
    ),
    "ppo_critic": Loss(("returns",), {"value_clip": None}, role="critic"),
}


def check(name: str, config: Mapping[str, float] | None, role: str) -> None:
    """Refuses a loss that is unknown, misconfigured or for the other kind of model.

    Raises:
        ValueError: with what would be accepted.
    """
    loss = LOSSES.get(name)
    if loss is None:
        raise ValueError(f"loss_fn {name!r} is not supported; use one of {', '.join(LOSSES)}")
    if loss.role != role:
        raise ValueError(f"loss_fn {name!r} needs a model with model_role {loss.role!r}, this is a {role}")
    unknown = sorted(set(config or {}) - set(loss.settings))
    if unknown:
        known = sorted(loss.settings) or "none"
        raise ValueError(f"loss_fn {name!r} has no setting {', '.join(unknown)}; it has {known}")


def token_losses(
    name: str, config: Mapping[str, float] | None, predicted: torch.Tensor, arrays: Arrays
) -> torch.Tensor:
    """Loss of every token, not weighted. `predicted` holds log-probabilities of the targets, or values
    where the model is a critic; all arrays are of its shape."""
    settings = {**LOSSES[name].settings, **(config or {})}
    if name == "cross_entropy":
        return -predicted
    if name == "ppo_critic":
        error = (predicted - arrays["returns"]) ** 2
        clip = settings["value_clip"]
        if clip is not None:
            old = arrays["values"]
            clipped = old + (predicted - old).clamp(-clip, clip)
            error = torch.maximum(error, (clipped - arrays["returns"]) ** 2)
        return 0.5 * error
    ratio = torch.exp(predicted - arrays["logprobs"])
    advantages = arrays["advantages"]
    gain = ratio * advantages
    if name in ("ppo", "ppo_dual_clip"):
        low, high = settings["clip_low_threshold"], settings["clip_high_threshold"]
        gain = torch.minimum(gain, ratio.clamp(low, high) * advantages)
    if name == "ppo_dual_clip":
        bounded = torch.maximum(gain, settings["clip_dual_threshold"] * advantages)
        gain = torch.where(advantages < 0, bounded, gain)
    return -gain

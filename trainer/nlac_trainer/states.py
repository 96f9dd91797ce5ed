"""Saved states of adapters: weights, moments and the number of steps. Rank 0 alone writes and reads the files, so that no
other node needs them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from peft import LoraConfig
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from .adapters import ALPHA, Adapter, Refused
from .checkpoints import publish
from .ranks import Ranks

MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class State:
    """What was saved of an adapter, checked against the one that is to have it."""

    steps: int
    values: dict[str, torch.Tensor]
    """By the path of a parameter."""
    moments: dict[str, dict[str, torch.Tensor]]
    """Of the parameters that have any: AdamW's state."""

    def counts(self) -> dict[str, float]:
        """AdamW's number of steps of each parameter that has moments."""
        return {path: float(moments["step"]) for path, moments in self.moments.items()}


def save(adapter: Adapter, into: Path) -> None:
    """Writes what a later training needs to continue: weights, moments and the number of steps."""
    tensors = {}
    for path, parameter in adapter.parameters.items():
        tensors[f"{path}.value"] = parameter.detach()
        for key, value in adapter.optimizer.state.get(parameter, {}).items():
            tensors[f"{path}.{key}"] = value
    about = {"rank": adapter.rank, "shape": adapter.shape, "alpha": ALPHA, "steps": adapter.steps}

    def write(folder: Path) -> None:
        (folder / "state.json").write_text(json.dumps(about) + "\n")
        save_file({k: v.cpu().contiguous() for k, v in tensors.items()}, folder / "state.safetensors")

    publish(into, write)


def read(adapter: Adapter, source: Path, optimizer: bool) -> State:
    """Reads a saved state, with or without the optimizer's moments, or PEFT files, which have none.

    Raises:
        Refused: the files are damaged or not there, or are another model's.
    """
    try:
        is_peft = (source / "adapter_config.json").exists()
        state = _read_peft(adapter, source, optimizer) if is_peft else _read(adapter, source, optimizer)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"the saved state cannot be read: {type(error).__name__}: {error}") from None
    if state.values.keys() != adapter.parameters.keys():
        raise Refused("the saved state has other tensors than the model")
    for path, parameter in adapter.parameters.items():
        moments = state.moments.get(path)
        for tensor in (state.values[path], *([moments[name] for name in MOMENTS] if moments else [])):
            if tensor.shape != parameter.shape:
                found, wanted = tuple(tensor.shape), tuple(parameter.shape)
                raise Refused(f"{path} has the shape {found} in the saved state, and {wanted} in the model")
    return state


def _read(adapter: Adapter, source: Path, optimizer: bool) -> State:
    about = json.loads((source / "state.json").read_text())
    if about["shape"] != adapter.shape:
        raise Refused(f"the saved state is a {about['shape']}, the model a {adapter.shape}")
    tensors = load_file(source / "state.safetensors")
    named = [key.removesuffix(".value") for key in tensors if key.endswith(".value")]
    with_moments = [path for path in named if optimizer and f"{path}.step" in tensors]
    return State(
        about["steps"] if optimizer else 0,
        {path: tensors[f"{path}.value"] for path in named},
        {path: {name: tensors[f"{path}.{name}"] for name in ("step", *MOMENTS)} for path in with_moments},
    )


def _read_peft(adapter: Adapter, source: Path, optimizer: bool) -> State:
    """An adapter that was made elsewhere."""
    if optimizer:
        raise Refused('PEFT files hold no optimizer: load them with "optimizer": false')
    config = LoraConfig.from_pretrained(str(source))
    plain = LoraConfig(r=adapter.rank, lora_alpha=ALPHA)
    for setting in ("r", "lora_alpha", "use_rslora", "use_dora", "rank_pattern", "alpha_pattern"):
        found, wanted = getattr(config, setting), getattr(plain, setting)
        if found != wanted:
            raise Refused(f"the adapter has {setting} {found!r}, the model {wanted!r}")
    return State(0, load_file(source / "adapter_model.safetensors"), {})


@torch.no_grad()
def take(adapter: Adapter, state: State | None, ranks: Ranks) -> None:
    """Gives an adapter the state that rank 0 has read, on every rank; the others pass none. Gradients are dropped."""
    steps, counts = ranks.share((state.steps, state.counts()) if state else None)

    def received(source: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
        tensor = torch.empty_like(like) if source is None else source.to(like.device, like.dtype)
        ranks.hand(tensor)
        return tensor

    adapter.drop_gradients()
    adapter.optimizer.state.clear()
    for path, parameter in adapter.parameters.items():
        parameter.copy_(received(state.values[path] if state else None, parameter.detach()))
        if path in counts:
            moments = {
                name: received(state.moments[path][name] if state else None, parameter.detach()) for name in MOMENTS
            }
            # AdamW counts on the CPU; its moments lie beside the weights.
            adapter.optimizer.state[parameter] = {"step": torch.tensor(counts[path])} | moments
    adapter.steps = steps

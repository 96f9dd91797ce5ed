"""Several processes as one trainer: rank 0 is told what to do and tells the others; all do the same
operation at the same time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from accelerate import PartialState


WITHIN = timedelta(minutes=30)
"""How long a rank waits for another within an operation."""


class Ranks:
    """This process among the ranks."""

    def __init__(self, state: PartialState) -> None:
        self.rank = state.process_index
        self.count = state.num_processes
        # Operations are Python objects and wait for hours: they travel on the CPU, without a deadline.
        self._control = self._group(timedelta(days=365))
        # Within an operation no rank waits that long for another: a rank that is lost ends the others.
        self._within = self._group(WITHIN)

    def _group(self, deadline: timedelta) -> Any:
        return dist.new_group(backend="gloo", timeout=deadline) if self.count > 1 else None

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def tell(self, operation: Any) -> Any:
        """Hands rank 0's operation to every rank; the others pass nothing and wait for it."""
        if self.count == 1:
            return operation
        box = [operation]
        dist.broadcast_object_list(box, src=0, group=self._control)
        return box[0]

    def total(self, tensor: torch.Tensor) -> None:
        """Sums a tensor over the ranks, in place."""
        if self.count > 1:
            dist.all_reduce(tensor)

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value, on rank 0; elsewhere nothing."""
        if self.count == 1:
            return [value]
        values = [None] * self.count if self.leads else None
        dist.gather_object(value, values, dst=0, group=self._within)
        return values or []

    def share(self, value: Any) -> Any:
        """Hands a value of rank 0 to every rank; what the others pass does not matter."""
        if self.count == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self._within)
        return box[0]

    def hand(self, tensor: torch.Tensor) -> None:
        """Hands a tensor of rank 0 to every rank, in place. It lies where the model is computed."""
        if self.count > 1:
            dist.broadcast(tensor, src=0)

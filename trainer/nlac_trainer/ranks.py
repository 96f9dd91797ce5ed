"""Several processes as one trainer: rank 0 is told what to do and tells the others; all do the same
operation at the same time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from accelerate import PartialState


class Ranks:
    """This process among the ranks."""

    def __init__(self, state: PartialState) -> None:
        self.rank = state.process_index
        self.count = state.num_processes
        # Operations are Python objects and wait for hours: they travel on the CPU, without a deadline.
        self._control = dist.new_group(backend="gloo", timeout=timedelta(days=365)) if self.count > 1 else None

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
        dist.gather_object(value, values, dst=0, group=self._control)
        return values or []

    def wait(self) -> None:
        """Returns when every rank is here."""
        if self.count > 1:
            dist.barrier(group=self._control)




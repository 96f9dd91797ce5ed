"""Tasks: those that an environment declares by split, and OpenEnv's Task API over them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TYPES = {"train": "train", "validation": "validation", "test": "test", "held_out": "test"}
"""Kinds of splits in the Task API; a split of another name is for validation."""


class UnknownTask(ValueError):
    """A split or a task that the environment does not declare."""


@dataclass(frozen=True)
class Tasks:
    """Names of tasks by split; empty where the environment declares none."""

    by_split: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def declared(cls, value: Any) -> Tasks:
        """From a class's `tasks`."""
        if not isinstance(value, Mapping):
            raise TypeError(
                f'tasks is a {type(value).__name__}; write {{"train": [...], "held_out": [...]}}'
            )
        by_split = {str(split): tuple(names) for split, names in value.items()}
        for split, names in by_split.items():
            if not names or not all(isinstance(name, str) for name in names):
                raise TypeError(f"tasks: split {split} is not a list of names of tasks")
        return cls(by_split)

    def __bool__(self) -> bool:
        return bool(self.by_split)

    def names(self, split: str) -> Sequence[str]:
        """The tasks of a split."""
        try:
            return self.by_split[split]
        except KeyError:
            raise UnknownTask(
                f"there is no split {split!r}; splits: {_list(self.by_split)}"
            ) from None

    def chosen(
        self, seed: int, task: str | None, split: str | None, index: int | None
    ) -> str | None:
        """The task of an episode: by name, by split and index, or drawn by the seed from a split.

        Without a split it is drawn from `train`, or from the first split if there is no `train`.
        """
        if not self:
            return task
        if task is not None:
            if not any(task in names for names in self.by_split.values()):
                raise UnknownTask(f"there is no task {task!r}; POST /tasks lists the tasks")
            return task
        default = "train" if "train" in self.by_split else next(iter(self.by_split))
        names = self.names(split or default)
        if index is None:
            return random.Random(seed).choice(names)
        if not 0 <= index < len(names):
            raise UnknownTask(f"there is no task {index}; the split has {len(names)} tasks")
        return names[index]

    def splits(self) -> list[dict[str, str]]:
        """The splits in the Task API's form."""
        return [{"name": name, "type": TYPES.get(name, "validation")} for name in self.by_split]

    def listed(self, split: str) -> list[dict[str, Any]]:
        """A split's tasks in the Task API's form; `id` is what `reset` takes as `task`."""
        return [{"id": name, "index": index} for index, name in enumerate(self.names(split))]


def _list(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"

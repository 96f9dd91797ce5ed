"""Saved states and adapters on disk: DIR/MODEL/weights/NAME and DIR/MODEL/sampler_weights/NAME. They
outlive the server; a name that is being written is reserved, so that none is written twice."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

STATE = re.compile(r"^tinker://([A-Za-z0-9_-]{1,255})/weights/([A-Za-z0-9_-]{1,255})$")
NAME = re.compile(r"^[A-Za-z0-9_-]{1,255}$")


class Checkpoints:
    """The directory with everything that was saved."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pending: set[Path] = set()

    def path(self, model_id: str, kind: str, name: str) -> Path:
        return self.root / model_id / kind / name

    def reserve(self, path: Path) -> bool:
        """Takes a name; false when it is taken."""
        if path.exists() or path in self.pending:
            return False
        self.pending.add(path)
        return True

    def settle(self, path: Path) -> None:
        """The name is written, or free again."""
        self.pending.discard(path)

    def knows(self, model_id: str) -> bool:
        """Whether a model of this or an earlier process has saved anything."""
        return bool(NAME.match(model_id)) and (self.root / model_id).is_dir()

    def list(self, model_id: str) -> list[tuple[str, str]]:
        """What a model has saved: kind and name."""
        found = []
        for kind in ("weights", "sampler_weights"):
            folder = self.root / model_id / kind
            names = sorted(p.name for p in folder.iterdir() if NAME.match(p.name)) if folder.is_dir() else []
            found += [(kind, name) for name in names]
        return found

    @staticmethod
    def rank(path: Path) -> int:
        """Rank of a saved state, or of PEFT files in its place."""
        if (path / "state.json").exists():
            return json.loads((path / "state.json").read_text())["rank"]
        return json.loads((path / "adapter_config.json").read_text())["r"]


def publish(into: Path, write: Callable[[Path], None]) -> None:
    """A directory that is there with all its files, or not at all."""
    partial = into.with_name(f".{into.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    write(partial)
    for path in [*partial.iterdir(), partial]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    partial.rename(into)

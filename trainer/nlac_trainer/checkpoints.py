"""Saved states and adapters on disk: DIR/MODEL/weights/NAME and DIR/MODEL/sampler_weights/NAME. They
outlive the server; a name that is being written is reserved, so that none is written twice."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

STATE = re.compile(r"^tinker://([A-Za-z0-9_-]{1,255})/weights/([A-Za-z0-9_-]{1,255})$")
NAME = re.compile(r"^[A-Za-z0-9_-]{1,255}$")
DAY = 86_400.0
"""Seconds."""


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

    def delete(self, path: Path) -> None:
        """Deletes a checkpoint. Under its name it is gone at once: half of one would look like a checkpoint.

        Raises:
            FileNotFoundError: it is not there.
        """
        doomed = path.with_name(f".{uuid.uuid4().hex}.deleted")
        path.rename(doomed)
        shutil.rmtree(doomed)

    def sweep(self) -> None:
        """Deletes what processes left that ended while they wrote or deleted. Another one may be doing so now, so what is
        younger than a day stays."""
        old = time.time() - DAY
        for left in self.root.glob("*/*/.*"):
            with suppress(OSError):
                if left.suffix in (".partial", ".deleted") and left.stat().st_mtime < old:
                    shutil.rmtree(left)

    @staticmethod
    def rank(path: Path) -> int:
        """Rank of a saved state, or of PEFT files in its place."""
        if (path / "state.json").exists():
            return json.loads((path / "state.json").read_text())["rank"]
        return json.loads((path / "adapter_config.json").read_text())["r"]


def publish(into: Path, write: Callable[[Path], None]) -> None:
    """A directory that is there with all its files, or not at all. Once it is there, it outlives a loss of power."""
    partial = into.with_name(f".{into.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        write(partial)
        for path in [*sorted(partial.iterdir()), partial]:
            flush(path)
        partial.rename(into)
    except BaseException:
        # A full disk needs the place.
        shutil.rmtree(partial, ignore_errors=True)
        raise
    # Its name, and those of its kind and of its model, which may be new.
    for folder in list(into.parents)[:3]:
        flush(folder)


def flush(path: Path) -> None:
    """Has a file or a directory written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

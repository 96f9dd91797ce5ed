"""Directories that are there as a whole or not at all, whenever a process ends."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

from nlac_trainer.checkpoints import Checkpoints, publish


def write(folder: Path) -> None:
    (folder / "a").write_text("a")


class Directories(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        self.kind = self.root / "model" / "weights"
        self.into = self.kind / "one"

    def test_a_saved_directory_is_on_the_disk_with_its_name(self) -> None:
        flushed = []
        with patch("nlac_trainer.checkpoints.flush", lambda path: flushed.append((path, self.into.exists()))):
            publish(self.into, write)
        partial = self.kind / ".one.partial"
        inside = [(partial / "a", False), (partial, False)]
        self.assertEqual(flushed, [*inside, (self.kind, True), (self.kind.parent, True), (self.root, True)])
        self.assertEqual([path.name for path in self.into.iterdir()], ["a"])

    def test_what_cannot_be_written_takes_no_place(self) -> None:
        def full(folder: Path) -> None:
            write(folder)
            raise OSError("no space left on device")

        with self.assertRaises(OSError):
            publish(self.into, full)
        self.assertEqual(list(self.kind.iterdir()), [])

    def test_half_of_a_deleted_one_is_none_and_is_swept_later(self) -> None:
        checkpoints = Checkpoints(self.root)
        publish(self.into, write)
        # As if the process ended in between.
        with patch("nlac_trainer.checkpoints.shutil.rmtree"):
            checkpoints.delete(self.into)
        self.assertFalse(self.into.exists())
        self.assertEqual(checkpoints.list("model"), [])
        with self.assertRaises(FileNotFoundError):
            checkpoints.delete(self.into)
        [left] = self.kind.iterdir()
        checkpoints.sweep()
        self.assertTrue(left.exists(), "another process may be deleting it")
        publish(self.into, write)
        for path in (left, self.into):
            os.utime(path, (0, 0))
        checkpoints.sweep()
        self.assertEqual(checkpoints.list("model"), [("weights", "one")])
        self.assertEqual(list(self.kind.iterdir()), [self.into])


if __name__ == "__main__":
    unittest.main()

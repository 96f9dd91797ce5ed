"""TensorBoard: event files, by its own writer."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from ..errors import NlacError
from ..job import Job
from ..rest.models import CheckpointView
from .following import Point


class TensorBoard:
    """A directory of event files, one for each job below `logdir`."""

    def __init__(self, job: Job, url: str, logdir: str | os.PathLike[str] = "runs") -> None:
        self.directory = Path(logdir) / f"{job.name}-{job.id}"
        self._last, self._texts = _written(self.directory)
        self._writer = EventFileWriter(str(self.directory))
        if "job" not in self._texts:
            spec = json.dumps(job.spec, indent=2).replace("\n", "\n    ")
            self._text("job", f"[{job.name}]({url})\n\n    {spec}", job.view.created_at.timestamp())

    def write(self, point: Point) -> None:
        new = {n: v for n, v in point.values.items() if point.step > self._last.get(n, -1)}
        values = [Summary.Value(tag=name, simple_value=value) for name, value in new.items()]
        if values:
            event = Event(wall_time=point.at.timestamp(), step=point.step)
            event.summary.CopyFrom(Summary(value=values))
            self._writer.add_event(event)
            self._writer.flush()
            self._last.update(dict.fromkeys(new, point.step))

    def keep(self, adapter: Path, checkpoint: CheckpointView) -> None:
        raise NlacError("TensorBoard keeps no files", remedy="keep the adapter elsewhere")

    def finish(self, job: Job) -> None:
        at = job.view.finished_at or job.view.created_at
        if "status" not in self._texts:
            self._text("status", job.error or job.status, at.timestamp())
        self._writer.close()

    def leave(self) -> None:
        self._writer.close()

    def _text(self, tag: str, text: str, at: float) -> None:
        self._writer.add_event(Event(wall_time=at, step=0, summary=text_pb(tag, text)))


def _written(directory: Path) -> tuple[dict[str, int], list[str]]:
    """The last step of each series that is there already, and the texts."""
    if not directory.is_dir():
        return {}, []
    events = EventAccumulator(str(directory), size_guidance={"scalars": 0})
    events.Reload()
    tags = events.Tags()
    return {tag: events.Scalars(tag)[-1].step for tag in tags["scalars"]}, tags["tensors"]

"""Following a job: its points, in order, each once it is complete."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from ..job import Job
from ..job_state import Patience
from ..rest.models import CheckpointView, Metric


@dataclass(frozen=True)
class Point:
    """What was measured in an iteration."""

    step: int
    at: datetime
    values: dict[str, float]


class Tracker(Protocol):
    """Where points go. It knows what it has, from its own files or server."""

    def write(self, point: Point) -> None:
        """Writes what it does not have yet of a point."""

    def keep(self, adapter: Path, checkpoint: CheckpointView) -> None:
        """Keeps an adapter's files beside the run."""

    def finish(self, job: Job) -> None:
        """Ends the run as its job ended."""

    def leave(self) -> None:
        """Leaves the run as it is, for somebody to go on with."""


def points(job: Job, after: int = -1) -> Iterator[Point]:
    """Points of iterations after `after`, oldest first: of those that are over; of all once the job is."""
    ended = {row.index: row.finished_at for row in job.iterations()}
    by_step: defaultdict[int, dict[str, float]] = defaultdict(dict)
    usual = job.spec["evaluation"]["temperature"]
    for metric in job.metrics(from_iteration=after + 1):
        by_step[metric.iteration][_series(metric, usual)] = metric.value
    for step in sorted(by_step):
        at = ended.get(step)
        if at is None and not job.over:
            return
        yield Point(step, at or datetime.now(timezone.utc), by_step[step])


def follow(
    job: Job,
    trackers: Sequence[Tracker],
    *,
    poll: float = 5.0,
    until_over: bool = True,
    at_end: Callable[[], None] | None = None,
) -> None:
    """Writes a job's points until it is over, then ends the trackers' runs as the job ended; `at_end` comes
    before that.

    With `until_over=False` it writes what there is, and leaves the runs open unless the job is over. A server
    that is away for less than a minute is waited for.
    """
    patience = Patience(job, None, poll)
    written = -1
    while True:
        with patience.forgiving():
            job.refresh()
            for point in points(job, after=written):
                for tracker in trackers:
                    tracker.write(point)
                written = point.step
            if job.over or not until_over:
                break
        time.sleep(patience.pause())
    if job.over and at_end:
        at_end()
    for tracker in trackers:
        if job.over:
            tracker.finish(job)
        else:
            tracker.leave()


def _series(metric: Metric, usual: float) -> str:
    """A name that trackers group: `eval/success`; away from the usual temperature `eval/success_at_1`."""
    name = metric.name.replace(".", "/", 1)
    if metric.temperature is None or metric.temperature == usual:
        return name
    return f"{name}_at_{metric.temperature:g}"

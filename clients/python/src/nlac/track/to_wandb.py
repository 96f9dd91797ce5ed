"""Weights & Biases, by its own client; WANDB_API_KEY, WANDB_ENTITY, WANDB_MODE and the others are its."""

from __future__ import annotations

import os
from pathlib import Path

import wandb

from ..job import Job
from ..rest.models import CheckpointView
from .following import Point


class WeightsAndBiases:
    """The run of a job; its id is the job's."""

    def __init__(self, job: Job, url: str, project: str | None = None) -> None:
        self._run = wandb.init(
            project=project or os.environ.get("WANDB_PROJECT") or "nlac",
            id=str(job.id),
            name=job.name,
            resume="allow",
            config=job.spec,
            notes=url,
            reinit="create_new",
        )
        # The server knows how far a run is. Offline nobody does, so a file beside the runs says it.
        self._cursor = Path(self._run.dir).parents[1] / f"nlac-{job.id}.step"
        self._next: int = self._run.step
        if self._run.offline and self._cursor.exists():
            self._next = int(self._cursor.read_text()) + 1

    def write(self, point: Point) -> None:
        if point.step < self._next:
            return
        self._run.log(point.values, step=point.step, commit=True)
        self._next = point.step + 1
        if self._run.offline:
            self._cursor.write_text(str(point.step))

    def keep(self, adapter: Path, checkpoint: CheckpointView) -> None:
        facts = {"checkpoint_id": str(checkpoint.id), "sha256": checkpoint.sha256}
        artifact = wandb.Artifact(f"adapter-{checkpoint.job_id}", type="model", metadata=facts)
        artifact.add_dir(str(adapter))
        self._run.log_artifact(artifact, aliases=[f"v{checkpoint.version}"])

    def finish(self, job: Job) -> None:
        self._run.summary["status"] = job.status
        if job.error:
            self._run.summary["error"] = job.error
        self._run.finish(exit_code=0 if job.status == "succeeded" else 1)

    def leave(self) -> None:
        # It has no state for a run whose teller went away: one that is resumed counts as running again.
        self._run.finish(exit_code=255)

"""MLflow, by its own client; MLFLOW_TRACKING_URI says where."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run

from ..job import Job
from ..rest.models import CheckpointView
from .following import Point

TAG = "nlac.job_id"
STATUS = {"succeeded": "FINISHED", "failed": "FAILED", "cancelled": "KILLED"}


class MLflow:
    """The run of a job: the one with its id as a tag, or a new one."""

    def __init__(self, job: Job, url: str, experiment: str | None = None) -> None:
        self._client = MlflowClient()
        name = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "nlac"
        known = self._client.get_experiment_by_name(name)
        place = known.experiment_id if known else self._client.create_experiment(name)
        found = self._client.search_runs([place], f"tags.`{TAG}` = '{job.id}'", max_results=1)
        run = found[0] if found else self._begin(job, url, place)
        self.run_id: str = run.info.run_id
        self._last = {name: self._last_step(name) for name in run.data.metrics}
        if found:
            self._client.update_run(self.run_id, status="RUNNING")

    def _begin(self, job: Job, url: str, place: str) -> Run:
        run = self._client.create_run(
            place,
            start_time=_milliseconds(job.view.started_at or job.view.created_at),
            run_name=job.name,
            tags={TAG: str(job.id), "nlac.owner": job.owner, "mlflow.note.content": url},
        )
        params = [Param(key, value) for key, value in _flat(job.spec)]
        for first in range(0, len(params), 100):
            self._client.log_batch(run.info.run_id, params=params[first : first + 100])
        self._client.log_dict(run.info.run_id, job.spec, "spec.json")
        return run

    def _last_step(self, name: str) -> int:
        history = self._client.get_metric_history(self.run_id, name)
        return max(int(metric.step) for metric in history)

    def write(self, point: Point) -> None:
        new = {n: v for n, v in point.values.items() if point.step > self._last.get(n, -1)}
        at = _milliseconds(point.at)
        self._client.log_batch(
            self.run_id,
            metrics=[Metric(name, value, at, point.step) for name, value in new.items()],
        )
        self._last.update(dict.fromkeys(new, point.step))

    def keep(self, adapter: Path, checkpoint: CheckpointView) -> None:
        self._client.log_artifacts(self.run_id, str(adapter), "adapter")
        self._client.set_tag(self.run_id, "nlac.adapter", checkpoint.name)

    def finish(self, job: Job) -> None:
        if job.error:
            self._client.set_tag(self.run_id, "nlac.error", job.error[:5000])
        ended = job.view.finished_at
        self._client.set_terminated(
            self.run_id, STATUS[job.status], _milliseconds(ended) if ended else None
        )

    def leave(self) -> None:
        """It stays RUNNING, as its job is."""


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _flat(spec: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in spec.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif value is not None:
            text = value if isinstance(value, str) else json.dumps(value)
            yield f"{prefix}{key}", text[:500]

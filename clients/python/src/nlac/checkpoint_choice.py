"""Which checkpoint of a job is meant."""

from __future__ import annotations

from typing import Literal

from .errors import NlacError
from .job_state import JobState
from .rest.models import CheckpointView
from .wire import Id

Choice = Literal["newest", "promoted"] | int | Id
"""The newest published checkpoint, the promoted one, a version number, or an id."""


def is_chosen(checkpoint: CheckpointView, choice: Choice) -> bool:
    """Whether the choice means this checkpoint. Lists are newest first, so the first one counts."""
    if checkpoint.role != "online":
        return False
    if choice == "newest":
        return checkpoint.published_at is not None and checkpoint.expired_at is None
    if choice == "promoted":
        return checkpoint.promoted
    if isinstance(choice, int) or (isinstance(choice, str) and choice.isdecimal()):
        return checkpoint.version == int(choice)
    return str(checkpoint.id) == str(choice)


def found(checkpoint: CheckpointView | None, choice: Choice, job: JobState) -> CheckpointView:
    """The checkpoint that was found, or an error that says what to do."""
    if checkpoint is not None:
        return checkpoint
    remedy = f"`nlac checkpoints list {job.id}` lists them"
    if choice == "newest":
        remedy = "wait until the job has published its first checkpoint"
    elif choice == "promoted":
        remedy = "promote a checkpoint first, or choose another one"
    raise NlacError(f"job {job.name} ({job.id}) has no checkpoint {choice!s}", remedy=remedy)

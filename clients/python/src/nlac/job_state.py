"""A job as it was last read, and how long to wait for it: what `Job` and `AsyncJob` share."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from .errors import JobFailed, NlacError, NotReachable
from .rest.models import JobView

FINAL = ("succeeded", "failed", "cancelled")


class JobState:
    """A job as it was last read. `refresh` reads it again."""

    def __init__(self, view: JobView) -> None:
        self.view = view
        """All that the API says of it."""
        self.seen = 0
        """The last event that `wait` handed out."""

    def __repr__(self) -> str:
        where = f", iteration {self.iteration}" if self.iteration is not None else ""
        return f"<{type(self).__name__} {self.name} {self.id} {self.status}{where}>"

    @property
    def id(self) -> UUID:
        return self.view.id

    @property
    def status(self) -> str:
        """queued, running, paused, succeeded, failed or cancelled."""
        return self.view.status

    @property
    def over(self) -> bool:
        """Whether it has come to its end, good or bad."""
        return self.status in FINAL

    @property
    def spec(self) -> dict[str, Any]:
        """What was asked for, with every default filled in; a copy, to be changed and submitted."""
        return copy.deepcopy(self.view.spec.to_dict())

    @property
    def name(self) -> str:
        return str(self.view.spec["name"])

    @property
    def owner(self) -> str:
        """Name of the key that submitted it; local where nobody signs in."""
        return self.view.owner

    @property
    def error(self) -> str | None:
        """Why it failed, with the remedy."""
        return self.view.error

    @property
    def iteration(self) -> int | None:
        """The iteration under way, or the last one."""
        return self.view.iteration

    @property
    def phase(self) -> str | None:
        return self.view.phase

    @property
    def success_before(self) -> float | None:
        """Success on held-out episodes before training."""
        return self.view.success_before

    @property
    def success(self) -> float | None:
        """The newest success on held-out episodes."""
        return self.view.success

    def failure(self) -> JobFailed | None:
        """What `wait` raises when it is over."""
        return None if self.status == "succeeded" else JobFailed(self)


class Patience:
    """How long `wait` goes on: until its timeout, and a while without any answer."""

    SILENCE = 60.0
    """Seconds in which a server may be away: jobs outlive its restarts, and so should their watchers."""

    def __init__(self, job: JobState, timeout: float | None, poll: float) -> None:
        self._job = job
        self._timeout = timeout
        self._poll = poll
        self._began = self._answered = time.monotonic()

    @contextmanager
    def forgiving(self) -> Iterator[None]:
        """Lets a server that is away for a short time be away."""
        try:
            yield
        except NlacError as error:
            away = isinstance(error, NotReachable) or error.status in (502, 503, 504)
            if not away or time.monotonic() - self._answered > self.SILENCE:
                raise
        else:
            self._answered = time.monotonic()

    def pause(self) -> float:
        """Seconds until the next look; raises when the time is up."""
        if self._timeout is None:
            return self._poll
        left = self._began + self._timeout - time.monotonic()
        if left <= 0:
            raise TimeoutError(
                f"job {self._job.name} ({self._job.id}) is {self._job.status} after "
                f"{self._timeout:g} s; it goes on: wait again, or cancel it"
            )
        return min(self._poll, left)

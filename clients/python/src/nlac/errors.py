"""What can go wrong, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from .rest.models import FieldError, Problem

if TYPE_CHECKING:
    from .job_state import JobState


class NlacError(Exception):
    """What is wrong, and what to do. Everything that this package raises about a server is one."""

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        title: str | None = None,
        code: str | None = None,
        remedy: str | None = None,
        errors: list[FieldError] | None = None,
        request_id: str | None = None,
    ) -> None:
        self.detail = detail
        self.status = status
        """HTTP status; None where there was no answer."""
        self.title = title
        self.code = code
        """What kind of error it is, in a word for programs; None where nlac did not answer."""
        self.remedy = remedy
        self.errors = errors or []
        """The fields that are wrong, each with its `path` and `message`."""
        self.request_id = request_id
        """The name of the request in the server's log; None where there was no answer."""
        super().__init__(self._text())

    def _text(self) -> str:
        head = f"{self.status} {self.title or ''}".strip() + ": " if self.status else ""
        lines = [head + self.detail]
        # One wrong field is the detail already.
        if len(self.errors) > 1:
            lines += [f"  {error.path}: {error.message}" for error in self.errors]
        if self.remedy:
            lines.append(f"what to do: {self.remedy}")
        if self.request_id and (self.status or 0) >= 500:
            lines.append(f"request in the server's log: {self.request_id}")
        return "\n".join(lines)


class NotReachable(NlacError):
    """The server did not answer."""


class JobFailed(NlacError):
    """A job that was waited for failed or was cancelled."""

    def __init__(self, job: JobState) -> None:
        self.job = job
        what = f"job {job.name} ({job.id})"
        if job.status == "cancelled":
            super().__init__(f"{what} was cancelled", remedy="submit its spec as a new job")
        else:
            super().__init__(f"{what} failed: {job.error or 'no reason was given'}")


def of_response(response: httpx.Response) -> NlacError:
    """The error that a response is; its body must have been read."""
    status, title = response.status_code, response.reason_phrase
    request_id = response.headers.get("x-request-id")
    try:
        body: Any = response.json()
        problem = Problem.from_dict(body)
    except (ValueError, KeyError, TypeError, AttributeError):
        # Not from nlac: a proxy, or another service at this address.
        text = " ".join(response.text.split())[:200] or "no text"
        remedy = f"check that {response.url.copy_with(path='/', query=None)} is an nlac server"
        return NlacError(text, status=status, title=title, remedy=remedy, request_id=request_id)
    return NlacError(
        problem.detail,
        status=status,
        title=problem.title,
        code=problem.code,
        remedy=problem.remedy or None,
        errors=problem.errors or None,
        request_id=request_id,
    )

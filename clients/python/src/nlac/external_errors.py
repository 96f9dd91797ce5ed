"""What an error says about an agent: that it failed its task, or only that a server failed."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import httpx

from .errors import NlacError, NotReachable

_SDKS = ("openai", "anthropic")


def is_technical(error: BaseException) -> bool:
    """Whether a server or an engine failed: the error then says nothing about the agent.

    Recognises the errors of this package, of httpx, and of the packages `openai` and `anthropic`, also as
    the cause of another error.
    """
    return any(_is_outage(cause) for cause in _chain(error))


def is_too_long(error: BaseException) -> bool:
    """Whether the agent's conversation no longer fits into the model's context."""
    return any(
        getattr(cause, "code", None) == "context_length_exceeded"
        or "prompt is too long" in str(cause)  # Anthropic's API has no code for it.
        for cause in _chain(error)
        if _is_of_an_sdk(cause)
    )


def summary(error: BaseException) -> str:
    """The error in one line of at most 200 characters."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:200] if text else type(error).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes."""
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__


def _is_outage(error: BaseException) -> bool:
    if isinstance(error, NotReachable | httpx.TransportError):
        return True
    if isinstance(error, NlacError):
        return error.status is not None and _is_unavailable(error.status)
    if isinstance(error, httpx.HTTPStatusError):
        return _is_unavailable(error.response.status_code)
    if _is_of_an_sdk(error):
        status = getattr(error, "status_code", None)
        # Without a status there was no answer.
        return status is None or _is_unavailable(status)
    return False


def _is_of_an_sdk(error: BaseException) -> bool:
    # A package that was never imported raises nothing, so there is no need to import it.
    modules = (sys.modules.get(name) for name in _SDKS)
    kinds = (getattr(module, "APIError", None) for module in modules if module)
    return any(isinstance(error, kind) for kind in kinds if isinstance(kind, type))


def _is_unavailable(status: int) -> bool:
    return status in (408, 429) or status >= 500

"""A thread for each environment."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any


class Worker:
    """Calls plain functions in one thread of its own, and awaits the asynchronous ones.

    It is always the same thread, because libraries such as SQLite and Playwright insist on that. The
    thread is a daemon: a step that never returns must not keep the process alive.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The function's result."""
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="environment", daemon=True)
            self._thread.start()
        future: Future[Any] = Future()
        self._calls.put((future, partial(function, *args, **kwargs)))
        returned = await asyncio.wrap_future(future)
        return await returned if inspect.isawaitable(returned) else returned

    def end(self) -> None:
        """Ends the thread after the calls that wait."""
        self._calls.put(None)

    def _work(self) -> None:
        while (waiting := self._calls.get()) is not None:
            future, function = waiting
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(_as_error(error))


def _as_error(error: BaseException) -> Exception:
    """`SystemExit` would end the server, and a future cannot carry `StopIteration`."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"the environment raised {type(error).__name__}: {error}")

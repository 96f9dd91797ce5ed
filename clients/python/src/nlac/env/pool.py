"""The sessions of a server, at most so many at once."""

from __future__ import annotations

import time
import uuid

from .definition import Definition
from .session import Session, described

IDLE = 900.0
"""Seconds after which a session of MCP that nobody uses makes room: its client may be gone."""


class NoSession(Exception):
    """There is no session for a client: its code, its message, and what OpenEnv adds to them."""

    def __init__(self, code: str, message: str, **more: object) -> None:
        super().__init__(message)
        self.code = code
        self.more = more


class Pool:
    """Opens and closes sessions. There is no queue: OpenEnv's clients wait and try again."""

    def __init__(self, definition: Definition, limit: int) -> None:
        self._definition = definition
        self._limit = limit
        self._active = 0
        self._named: dict[str, Session] = {}
        """Sessions that MCP opened, by id."""
        self._used: dict[str, float] = {}
        """When each was asked for last."""
        self._attached: set[str] = set()

    async def open(self) -> Session:
        """A session with a new instance. Raises `NoSession`."""
        if self._active >= self._limit:
            await self._make_room()
        if self._active >= self._limit:
            raise NoSession(
                "CAPACITY_REACHED",
                f"Server at capacity: {self._active}/{self._limit} sessions active. "
                "Cannot accept new connections.",
                active_sessions=self._active,
                max_sessions=self._limit,
            )
        self._active += 1
        session = Session(self._definition)
        try:
            await session.open()
        except Exception as error:
            await self.close(session)
            name = self._definition.title
            message = f"{name} cannot be made: {described(error)}"
            raise NoSession("FACTORY_ERROR", message, factory_name=name) from error
        return session

    async def close(self, session: Session) -> None:
        """Closes a session. Its place is free once its instance has closed."""
        try:
            await session.close()
        finally:
            self._active -= 1

    async def open_named(self) -> str:
        """Opens a session for MCP, and returns its id."""
        session, name = await self.open(), str(uuid.uuid4())
        self._named[name] = session
        self._used[name] = time.monotonic()
        return name

    def named(self, name: str) -> Session:
        """A session of MCP. Raises `NoSession`."""
        if name not in self._named:
            raise NoSession("SESSION_ERROR", f"Unknown session_id: {name}")
        self._used[name] = time.monotonic()
        return self._named[name]

    def attach(self, name: str) -> Session:
        """A session of MCP for a WebSocket, which then ends it. Raises `NoSession`."""
        session = self.named(name)
        if name in self._attached:
            message = f"Session {name} already has an attached WebSocket"
            raise NoSession("SESSION_ERROR", message)
        self._attached.add(name)
        return session

    async def detach(self, name: str) -> None:
        """Closes a session whose WebSocket has left, as nobody may ever close it otherwise."""
        self._attached.discard(name)
        await self._drop(name)

    async def close_named(self, name: str) -> bool:
        """Closes a session of MCP, or leaves that to its WebSocket. True if it is closed."""
        self.named(name)
        if name in self._attached:
            return False
        await self._drop(name)
        return True

    async def _drop(self, name: str) -> None:
        del self._used[name]
        await self.close(self._named.pop(name))

    async def _make_room(self) -> None:
        """Closes the sessions of MCP that nobody uses."""
        for name in list(self._named):
            # Others may use or close it while one before it is closed.
            if name in self._named and self._is_idle(name):
                await self._drop(name)

    def _is_idle(self, name: str) -> bool:
        if name in self._attached or self._named[name].busy:
            return False
        return time.monotonic() - self._used[name] > IDLE

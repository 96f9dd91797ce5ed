"""The sessions of a server, at most so many at once."""

from __future__ import annotations

import uuid

from .definition import Definition
from .session import Session, described


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
        self._attached: set[str] = set()

    async def open(self) -> Session:
        """A session with a new instance. Raises `NoSession`."""
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
        return name

    def named(self, name: str) -> Session:
        """A session of MCP. Raises `NoSession`."""
        try:
            return self._named[name]
        except KeyError:
            raise NoSession("SESSION_ERROR", f"Unknown session_id: {name}") from None

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
        await self.close(self._named.pop(name))

    async def close_named(self, name: str) -> bool:
        """Closes a session of MCP, or leaves that to its WebSocket. True if it is closed."""
        session = self.named(name)
        if name in self._attached:
            return False
        del self._named[name]
        await self.close(session)
        return True

"""OpenEnv's WebSocket: a connection has a session of its own, or shares one that MCP opened."""

from __future__ import annotations

import json

from starlette.websockets import WebSocket, WebSocketDisconnect

from ..frames import Frame, answer, failure
from ..pool import NoSession, Pool


class Sockets:
    """The route `/ws`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def serve(self, socket: WebSocket) -> None:
        """Plays with a client until it leaves."""
        await socket.accept()
        try:
            await self._play(socket)
            await socket.close()
        except WebSocketDisconnect:
            pass

    async def _play(self, socket: WebSocket) -> None:
        name = socket.query_params.get("session_id")
        try:
            session = self._pool.attach(name) if name else await self._pool.open()
        except NoSession as error:
            await _send(socket, failure(error.code, str(error), **error.more))
            return
        try:
            while (reply := await answer(session, await socket.receive_text())) is not None:
                await _send(socket, reply)
        finally:
            await (self._pool.detach(name) if name else self._pool.close(session))


async def _send(socket: WebSocket, frame: Frame) -> None:
    await socket.send_text(json.dumps(frame, ensure_ascii=False))

"""`POST /mcp`: tools over HTTP, in sessions that a WebSocket can share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ..definition import Definition
from ..mcp import INVALID_PARAMS, INVALID_REQUEST, SERVER_ERROR, Reply, error, respond, result
from ..pool import NoSession, Pool
from ..session import Session
from .request_body import body


class McpRoute:
    """The route, over the same sessions as `/ws`."""

    def __init__(self, definition: Definition, pool: Pool) -> None:
        self._definition = definition
        self._pool = pool

    async def post(self, request: Request) -> Response:
        """A JSON-RPC reply; its errors have status 200 as in OpenEnv."""
        asked = await body(request)
        try:
            return JSONResponse(await self._reply(asked))
        except NoSession as failed:
            code = INVALID_PARAMS if failed.code == "SESSION_ERROR" else SERVER_ERROR
            return JSONResponse(error(asked, code, str(failed), **failed.more))

    async def _reply(self, asked: Mapping[str, Any]) -> Reply:
        params = asked.get("params") or {}
        if asked.get("jsonrpc") != "2.0" or not isinstance(params, Mapping):
            return error(asked, INVALID_REQUEST, "Invalid request: this is no JSON-RPC 2.0")
        method, name = asked.get("method"), params.get("session_id")
        if method == "openenv/session/create":
            return result(asked, {"session_id": await self._pool.open_named()})
        if method == "openenv/session/close":
            closed = await self._pool.close_named(str(name))
            return result(asked, {"session_id": name, "closed": closed, "closing": not closed})
        if name is not None:
            return await respond(self._pool.named(str(name)), asked)
        return await self._alone(asked)

    async def _alone(self, asked: Mapping[str, Any]) -> Reply:
        """Answers in a session that ends with the request."""
        session = Session(self._definition)
        try:
            await session.open()
            if asked.get("method") == "tools/call":
                await session.reset({})
            return await respond(session, asked)
        finally:
            await session.close()

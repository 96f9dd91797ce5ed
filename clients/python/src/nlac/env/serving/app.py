"""OpenEnv's routes over HTTP, for one environment. Episodes are played over `/ws`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute

from ..actions import Invalid, StepRequest, read
from ..definition import Definition
from ..pool import Pool
from ..session import Session, described
from ..tasks import UnknownTask
from .access import BearerToken
from .mcp_route import McpRoute
from .request_body import body
from .sockets import Sockets
from .task_routes import task_routes

Handler = Callable[[Request], Awaitable[Response]]


def application(definition: Definition, *, sessions: int, api_key: str | None = None) -> Starlette:
    """The ASGI application that `serve` runs, for another server or beside other routes."""
    pool = Pool(definition, sessions)
    routes = Stateless(definition)
    guard = [Middleware(BearerToken, api_key=api_key)] if api_key else []
    return Starlette(
        routes=[
            Route("/health", constant({"status": "healthy"})),
            Route("/metadata", constant(definition.metadata())),
            Route("/schema", constant(definition.schemas())),
            Route("/state", constant(Session(definition).state())),
            Route("/reset", routes.reset, methods=["POST"]),
            Route("/step", routes.step, methods=["POST"]),
            Route("/mcp", McpRoute(definition, pool).post, methods=["POST"]),
            WebSocketRoute("/ws", Sockets(pool).serve),
            *task_routes(definition),
        ],
        middleware=guard,
        exception_handlers={Invalid: _invalid, UnknownTask: _unknown, HTTPException: _refused},
    )


class Stateless:
    """`POST /reset` and `POST /step`: each request has a fresh instance, as in OpenEnv."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition

    async def reset(self, request: Request) -> Response:
        """The first observation of an episode that ends with the request."""
        data = await body(request, empty={})
        return await self._answer(lambda session: session.reset(data))

    async def step(self, request: Request) -> Response:
        """The answer to the first action of an episode that ends with the request."""
        asked = read(StepRequest, await body(request))

        async def first_step(session: Session) -> dict[str, Any]:
            self._definition.read_action(asked.action)
            await session.reset({})
            return await session.step(asked.action)

        return await self._answer(first_step)

    async def _answer(self, play: Callable[[Session], Awaitable[dict[str, Any]]]) -> Response:
        session = Session(self._definition)
        try:
            await session.open()
            data = await play(session)
        except (Invalid, UnknownTask):
            raise
        except Exception as error:
            return JSONResponse({"detail": described(error)}, 500)
        finally:
            await session.close()
        return JSONResponse({**data, "metadata": data.get("metadata")})


def constant(value: Mapping[str, Any]) -> Handler:
    """A route whose reply is known from the start."""

    async def reply(_: Request) -> Response:
        return JSONResponse(value)

    return reply


async def _invalid(_: Request, error: Exception) -> Response:
    errors = error.errors if isinstance(error, Invalid) else []
    return JSONResponse({"detail": errors}, 422)


async def _unknown(_: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, 400)


async def _refused(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else described(error)
    return JSONResponse({"detail": detail}, status)

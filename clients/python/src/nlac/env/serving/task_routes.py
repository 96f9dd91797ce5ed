"""OpenEnv's Task API, which the ORS standard shares: lists of tasks by split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..actions import IndexRequest, RangeRequest, SplitRequest, read
from ..definition import Definition
from .request_body import body

_Model = TypeVar("_Model", bound=BaseModel)


def task_routes(definition: Definition) -> list[Route]:
    """The Task API's routes; 501 where the environment declares no tasks."""
    tasks = definition.tasks

    def listed(asked: SplitRequest) -> dict[str, Any]:
        return {"tasks": tasks.listed(asked.split), "env_name": definition.name}

    def counted(asked: SplitRequest) -> dict[str, Any]:
        return {"num_tasks": len(tasks.names(asked.split))}

    def one(asked: IndexRequest) -> dict[str, Any]:
        all_of_split = tasks.listed(asked.split)
        if not 0 <= asked.index < len(all_of_split):
            raise HTTPException(400, "Invalid task index")
        return {"task": all_of_split[asked.index]}

    def some(asked: RangeRequest) -> dict[str, Any]:
        if min(asked.start or 0, asked.stop or 0) < 0:
            raise HTTPException(400, "Invalid task index")
        return {"tasks": tasks.listed(asked.split)[asked.start : asked.stop]}

    async def environments(_: Request) -> Response:
        return JSONResponse([definition.name])

    async def splits(request: Request) -> Response:
        _check(definition, request, "list_splits")
        return JSONResponse(tasks.splits())

    return [
        Route("/list_environments", environments),
        Route("/{env}/splits", splits),
        _route(definition, "tasks", "list_tasks", SplitRequest, listed),
        _route(definition, "num_tasks", "num_tasks", SplitRequest, counted),
        _route(definition, "task", "get_task", IndexRequest, one),
        _route(definition, "task_range", "get_task_range", RangeRequest, some),
    ]


def _route(
    definition: Definition,
    path: str,
    method: str,
    model: type[_Model],
    reply: Callable[[_Model], dict[str, Any]],
) -> Route:
    async def handle(request: Request) -> Response:
        _check(definition, request, method)
        return JSONResponse(reply(read(model, await body(request))))

    return Route(f"/{{env}}/{path}", handle, methods=["POST"])


def _check(definition: Definition, request: Request, method: str) -> None:
    name = request.path_params["env"]
    if name.lower() != definition.name:
        raise HTTPException(404, f"unknown environment {name!r}")
    if not definition.tasks:
        raise HTTPException(501, f"{method} is not supported for this environment")

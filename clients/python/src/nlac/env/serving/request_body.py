"""The JSON body of a request."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from ..actions import Invalid


async def body(request: Request, empty: dict[str, Any] | None = None) -> dict[str, Any]:
    """The body, an object; `empty` where there is none."""
    raw = await request.body()
    if not raw and empty is not None:
        return empty
    try:
        value = await request.json()
    except ValueError as error:
        raise _invalid("json_invalid", f"Invalid JSON: {error}") from error
    if not isinstance(value, dict):
        raise _invalid("dict_type", "Input should be a valid dictionary")
    return value


def _invalid(kind: str, message: str) -> Invalid:
    return Invalid([{"type": kind, "loc": ["body"], "msg": message}])

"""The body of a pass, in JSON as SkyRL speaks it or in protobuf as the Tinker SDK does."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from . import protobuf, wire

SDK_PATIENCE = 30.0
"""Seconds that a poll of the SDK is held: it gives up after 45."""

Body = TypeVar("Body", wire.Forward, wire.ForwardBackward)


def wants_protobuf(request: Request) -> bool:
    return protobuf.CONTENT_TYPE in request.headers.get("accept", "").lower()


async def read_pass(request: Request, route: type[Body]) -> wire.Forward | wire.ForwardBackward:
    """The body; of the forward route it asks for no gradients, whatever its format.

    Raises:
        HTTPException: 415 for another format, 422 for a message that makes no sense.
        RequestValidationError: the body does not validate.
    """
    if request.headers.get("content-encoding", "identity") != "identity":
        raise HTTPException(415, "Content-Encoding is not supported; send the body uncompressed")
    kind = request.headers.get("content-type", "").lower()
    body = await request.body()
    if kind.startswith("application/json"):
        return await asyncio.to_thread(_validated, lambda: route.model_validate_json(body))
    if not kind.startswith(protobuf.CONTENT_TYPE):
        raise HTTPException(415, f"send application/json or {protobuf.CONTENT_TYPE}, not {kind or 'nothing'}")
    return await asyncio.to_thread(_message, body, route)


def _message(body: bytes, route: type[Body]) -> wire.Forward | wire.ForwardBackward:
    try:
        named, given, forward_only = protobuf.read(body)
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    if forward_only or route is wire.Forward:
        return _validated(lambda: wire.Forward.model_validate(named | {"forward_input": given}))
    return _validated(lambda: wire.ForwardBackward.model_validate(named | {"forward_backward_input": given}))


def _validated(read):
    try:
        return read()
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError([one | {"loc": ("body", *one["loc"])} for one in found]) from None

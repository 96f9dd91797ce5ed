"""MCP's requests about tools, as JSON-RPC 2.0: in `mcp` frames and in `POST /mcp`.

A call counts as a step of the episode. Its reward is not in MCP's reply, so training uses `step` frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .session import Session, described

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000

Reply = dict[str, Any]


async def respond(session: Session, request: Mapping[str, Any]) -> Reply:
    """The reply to `tools/list` or `tools/call`."""
    method, params = request.get("method"), request.get("params") or {}
    if not isinstance(params, Mapping):
        return error(request, INVALID_PARAMS, "params is no object")
    try:
        if method == "tools/list":
            return result(request, {"tools": await _tools(session)})
        if method == "tools/call":
            return await _call(session, request, params)
    except Exception as failed:
        return error(request, INTERNAL_ERROR, described(failed))
    return error(request, METHOD_NOT_FOUND, f"Method not found: {method}")


def result(request: Mapping[str, Any], value: Any) -> Reply:
    """A reply with a result."""
    return {"jsonrpc": "2.0", "id": request.get("id"), "result": value}


def error(request: Mapping[str, Any], code: int, message: str, **data: Any) -> Reply:
    """A reply with an error."""
    said = {"code": code, "message": message, **({"data": data} if data else {})}
    return {"jsonrpc": "2.0", "id": request.get("id"), "error": said}


async def _tools(session: Session) -> list[dict[str, Any]]:
    listed = await session.step({"type": "list_tools"})
    return [
        {
            "name": tool["name"],
            "description": tool["description"],
            "inputSchema": tool["input_schema"],
        }
        for tool in listed["observation"]["tools"]
    ]


async def _call(session: Session, request: Mapping[str, Any], params: Mapping[str, Any]) -> Reply:
    action = {
        "type": "call_tool",
        "tool_name": params.get("name"),
        "arguments": params.get("arguments") or {},
    }
    observation = (await session.step(action))["observation"]
    failed = observation["error"]
    if failed is None:
        return result(request, observation["result"])
    code = INTERNAL_ERROR if failed["error_type"] == "execution_error" else INVALID_PARAMS
    return error(request, code, failed["message"])

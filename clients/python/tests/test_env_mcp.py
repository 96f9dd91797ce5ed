"""Tools over MCP: `POST /mcp`, `mcp` frames, and a session that both share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from served import Shop, Socket, post, serving

from nlac.env import pool


@pytest.fixture
def url() -> Iterator[str]:
    with serving(Shop, sessions=1) as url:
        yield url


def rpc(url: str, method: str, **params: Any) -> Any:
    request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 7}
    reply = post(f"{url}/mcp", request).json()
    assert (reply["jsonrpc"], reply["id"]) == ("2.0", 7)
    return reply.get("result") or reply["error"]


def test_tools_without_a_session(url: str) -> None:
    tools = rpc(url, "tools/list")["tools"]
    assert [tool["name"] for tool in tools] == ["price", "buy", "give_up"]
    assert tools[0]["inputSchema"]["required"] == ["item"]
    assert rpc(url, "tools/call", name="price", arguments={"item": "pear"})["data"] == {"price": 4}


def test_errors(url: str) -> None:
    assert rpc(url, "initialize")["code"] == -32601
    assert rpc(url, "tools/call", name="nope")["code"] == -32602
    assert rpc(url, "tools/call", name="buy", arguments={"item": "x", "count": 9})["code"] == -32603
    assert rpc(url, "tools/list", session_id="unknown")["code"] == -32602
    assert rpc(url, "openenv/session/close", session_id="unknown")["code"] == -32602
    assert post(f"{url}/mcp", {"method": "tools/list"}).json()["error"]["code"] == -32600


def test_a_session_that_a_socket_shares(url: str) -> None:
    name = rpc(url, "openenv/session/create")["session_id"]
    assert rpc(url, "openenv/session/create")["code"] == -32000, "the only place is taken"
    with Socket(url, f"/ws?session_id={name}") as socket:
        socket.ask("reset", seed=1)
        rpc(url, "tools/call", name="buy", arguments={"item": "apple", "count": 2}, session_id=name)
        with Socket(url, f"/ws?session_id={name}") as second:
            assert second.next()["data"]["code"] == "SESSION_ERROR"
        closing = rpc(url, "openenv/session/close", session_id=name)
        assert closing == {"session_id": name, "closed": False, "closing": True}
        assert socket.ask("step", action="here")["data"]["reward"] == 1.0


def test_a_session_is_closed_once(url: str) -> None:
    name = rpc(url, "openenv/session/create")["session_id"]
    assert rpc(url, "openenv/session/close", session_id=name)["closed"] is True
    assert rpc(url, "openenv/session/create")["session_id"] != name


def test_frames(url: str) -> None:
    with Socket(url) as socket:
        socket.ask("reset", seed=1)
        params = {"name": "price", "arguments": {"item": "apple"}}
        reply = socket.ask("mcp", jsonrpc="2.0", method="tools/call", params=params, id=3)
        assert reply["type"] == "mcp"
        assert reply["data"]["result"]["data"] == {"price": 5}
        assert socket.ask("state")["data"]["step_count"] == 1


def test_a_session_that_nobody_uses_makes_room(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten = rpc(url, "openenv/session/create")["session_id"]
    assert rpc(url, "openenv/session/create")["code"] == -32000, "it may be in use"
    monkeypatch.setattr(pool, "IDLE", -1.0)
    name = rpc(url, "openenv/session/create")["session_id"]
    assert rpc(url, "tools/list", session_id=forgotten)["code"] == -32602
    with Socket(url, f"/ws?session_id={name}") as socket:
        assert socket.ask("state")["type"] == "state"
        assert rpc(url, "openenv/session/create")["code"] == -32000, "its WebSocket is there"

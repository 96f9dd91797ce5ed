"""A client of the package openenv plays a served environment, as it would play any other."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from served import Desk, Number, Shop, serving

pytest.importorskip("openenv", reason="openenv is not installed: pip install openenv==0.10.0")


def client(kind: str, url: str, **settings: Any) -> Any:
    """A synchronous client of OpenEnv. Its package has no types."""
    module, _, name = kind.rpartition(".")
    made = getattr(importlib.import_module(f"openenv.core.{module}"), name)
    return made(base_url=url, **settings).sync()


def test_the_generic_client_plays_episodes() -> None:
    with serving(Number) as url, client("generic_client.GenericEnvClient", url) as player:
        for seed in range(5):
            result = player.reset(seed=seed, task="low")
            assert result.observation["text"].startswith("guess a low number")
            guess = 0
            while not result.done:
                result = player.step({"action": str(guess)})
                guess += 1
            assert result.reward == 1.0
            assert result.metadata["success"] is True
            assert player.state()["step_count"] == guess


def test_the_generic_client_solves_the_example() -> None:
    actions = [f"what is your {field} ?" for field in ("card", "email", "date")]
    with serving(Desk) as url, client("generic_client.GenericEnvClient", url) as player:
        result = player.reset(seed=1, task="refund")
        assert result.observation["text"] == "i want a refund form empty left 5"
        for action in [*actions, "do it now ."]:
            assert not result.done
            result = player.step({"action": action})
        assert (result.observation["text"], result.reward) == ("done solved", 1.0)


def test_the_mcp_client_calls_tools() -> None:
    with serving(Shop) as url, client("mcp_client.MCPToolClient", url) as player:
        player.reset(seed=1)
        assert [tool.name for tool in player.list_tools()] == ["price", "buy", "give_up"]
        assert player.call_tool("buy", item="apple", count=2) == "2 apple"
        assert player.call_tool("price", item="pear") == {"price": 4}
        with pytest.raises(RuntimeError, match="there are only three"):
            player.call_tool("buy", item="apple", count=4)


def test_an_error_is_raised_and_the_session_goes_on() -> None:
    with serving(Number) as url, client("generic_client.GenericEnvClient", url) as player:
        player.reset(seed=1)
        with pytest.raises(RuntimeError, match="RuntimeError: boom"):
            player.step({"action": "boom"})
        assert player.step({"action": "later"}).reward is None


def test_a_full_server_says_so() -> None:
    with (
        serving(Number, sessions=1) as url,
        client("generic_client.GenericEnvClient", url) as first,
        client("generic_client.GenericEnvClient", url) as second,
    ):
        first.reset()
        with pytest.raises(Exception, match=r"at capacity"):
            second.reset()


def test_the_key_is_sent_as_a_header() -> None:
    headers = {"Authorization": "Bearer k"}
    with serving(Number, api_key="k") as url:
        with client("generic_client.GenericEnvClient", url, headers=headers) as player:
            assert not player.reset().done
        with pytest.raises(ConnectionError), client("generic_client.GenericEnvClient", url):
            pass

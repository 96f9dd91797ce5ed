"""Tools: schemas by signature, calls, and errors that are observations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from served import Number, Shop, Socket, get, post, serving

from nlac import env
from nlac.env.definition import Definition


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(Shop) as url:
        yield url


@pytest.fixture
def socket(url: str) -> Iterator[Socket]:
    with Socket(url) as socket:
        yield socket


def call(socket: Socket, name: str, **arguments: Any) -> Any:
    return socket.ask("step", type="call_tool", tool_name=name, arguments=arguments)["data"]


def test_the_schema_says_that_there_are_tools(url: str) -> None:
    schema = get(f"{url}/schema").json()["action"]
    assert schema["title"] == "CallToolAction"
    assert schema["properties"].keys() >= {"type", "tool_name", "arguments", "action"}
    assert schema["anyOf"] == [{"required": ["tool_name"]}, {"required": ["action"]}]


def test_tools_are_listed_before_an_episode(socket: Socket) -> None:
    data = socket.ask("step", type="list_tools")["data"]
    assert (data["reward"], data["done"]) == (None, False)
    price, buy, give_up = data["observation"]["tools"]
    assert price == {
        "name": "price",
        "description": "The price of an item.",
        "input_schema": {
            "additionalProperties": False,
            "properties": {"item": {"enum": ["apple", "pear"], "type": "string"}},
            "required": ["item"],
            "type": "object",
        },
    }
    assert buy["input_schema"]["properties"]["count"] == {"default": 1, "type": "integer"}
    assert give_up["input_schema"]["properties"] == {}


def test_an_episode_of_calls_and_text(socket: Socket) -> None:
    first = socket.ask("reset", seed=1)["data"]
    assert first["observation"]["text"] == "You sell apples.\n\ntwo apples please"
    assert first["metadata"]["messages"][1] == {"role": "user", "content": "two apples please"}
    priced = call(socket, "price", item="apple")
    assert priced["observation"]["result"] == {
        "content": [{"type": "text", "text": '{"price": 5}', "annotations": None, "meta": None}],
        "structured_content": {"price": 5},
        "meta": None,
        "data": {"price": 5},
        "is_error": False,
    }
    assert priced["observation"]["error"] is None
    bought = call(socket, "buy", item="apple", count="2")
    assert bought["observation"]["result"]["data"] == "2 apple", "the count is a number by now"
    assert (bought["reward"], bought["done"]) == (0.0, False)
    last = socket.ask("step", action="here you are")["data"]
    assert (last["observation"]["text"], last["reward"], last["done"]) == ("thank you", 1.0, True)


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "message"),
    [
        ("nope", {}, "tool_not_found", "Unknown tool: 'nope'"),
        (
            "price",
            {"thing": 1},
            "invalid_args",
            "item: This argument is missing; thing: There is no such",
        ),
        ("price", {"item": "plum"}, "invalid_args", "item: Input should be 'apple' or 'pear'"),
        ("buy", {"item": "apple", "count": 9}, "execution_error", "ValueError: there are only"),
        ("step", {"action": "x"}, "tool_not_found", "Unknown tool: 'step'"),
    ],
)
def test_a_failed_call_is_an_observation(
    socket: Socket, name: str, arguments: dict[str, Any], kind: str, message: str
) -> None:
    socket.ask("reset", seed=1)
    data = call(socket, name, **arguments)
    observation = data["observation"]
    assert observation["error"]["error_type"] == kind
    assert message in observation["error"]["message"]
    assert observation["text"] == f"Error: {observation['error']['message']}"
    assert observation["result"] is None
    assert not data["done"]


def test_a_tool_can_end_the_episode(socket: Socket) -> None:
    socket.ask("reset", seed=1)
    data = call(socket, "give_up")
    assert (data["reward"], data["done"], data["metadata"]["success"]) == (-1.0, True, False)
    assert data["observation"]["result"]["data"] == "the customer leaves"
    assert call_error(socket, "give_up") == "EXECUTION_ERROR"


def call_error(socket: Socket, name: str) -> str:
    reply = socket.ask("step", type="call_tool", tool_name=name, arguments={})
    assert reply["type"] == "error"
    return str(reply["data"]["code"])


def test_tools_over_http(url: str) -> None:
    listed = post(f"{url}/step", {"action": {"type": "list_tools"}}).json()
    assert [tool["name"] for tool in listed["observation"]["tools"]] == ["price", "buy", "give_up"]


def test_an_environment_without_step_takes_no_text() -> None:
    class OnlyTools(env.Environment):
        def reset(self, seed: int, task: str | None) -> str:
            return "go"

        @env.tool
        def go(self) -> str:
            return "gone"

    schema = Definition.of(OnlyTools).schemas()["action"]
    assert schema["required"] == ["tool_name"]
    assert "action" not in schema["properties"]
    with serving(OnlyTools) as url, Socket(url) as socket:
        socket.ask("reset")
        assert socket.ask("step", action="hello")["data"]["code"] == "VALIDATION_ERROR"
        assert call(socket, "go")["observation"]["text"] == "gone"


def test_what_cannot_be_a_tool_is_refused() -> None:
    class Reserved(Number):
        @env.tool
        def state(self) -> str:
            return ""

    class Variadic(Number):
        @env.tool
        def add(self, *numbers: int) -> int:
            return sum(numbers)

    with pytest.raises(TypeError, match="Rename the method"):
        Definition.of(Reserved)
    with pytest.raises(TypeError, match="Annotate the parameters"):
        Definition.of(Variadic)

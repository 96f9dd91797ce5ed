"""A served environment speaks OpenEnv 0.10: the frames and replies of a recorded server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from served import Number, Socket, post, serving
from websockets.exceptions import ConnectionClosedOK

KEYS = {"observation", "reward", "done", "metadata"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(Number, sessions=2) as url:
        yield url


@pytest.fixture
def socket(url: str) -> Iterator[Socket]:
    with Socket(url) as socket:
        yield socket


def test_an_episode(socket: Socket) -> None:
    first = socket.ask("reset", seed=1, task="high", episode_id="e1")
    assert first["type"] == "observation"
    data = first["data"]
    assert data.keys() == KEYS
    assert data["observation"]["text"] == "guess a high number e1"
    assert data["metadata"] == data["observation"]["metadata"]
    assert data["metadata"] == {
        "seed": 1,
        "task": "high",
        "terminated": False,
        "truncated": False,
        "admissible": ["0", "1", "2"],
    }
    assert (data["reward"], data["done"]) == (None, False)

    rewards: list[float] = []
    while not data["done"]:
        data = socket.ask("step", action=str(len(rewards)))["data"]
        rewards.append(data["reward"])
    assert rewards[-1] == 1.0
    assert data["metadata"] == {"terminated": True, "truncated": False, "success": True}
    state = socket.ask("state")
    assert state["data"]["step_count"] == len(rewards)
    assert state["data"]["episode_id"] == "e1"


def test_the_same_seed_gives_the_same_episode(url: str) -> None:
    def played(seed: int) -> list[object]:
        with Socket(url) as socket:
            return [socket.ask("reset", seed=seed), *(socket.ask("step", action="0"),)]

    assert played(3) == played(3)


def test_a_drawn_seed_is_told(socket: Socket) -> None:
    metadata = socket.ask("reset")["data"]["metadata"]
    assert metadata["task"] in ("low", "high"), "never a held-out task without being asked"
    again = socket.ask("reset", seed=metadata["seed"])["data"]["metadata"]
    assert again == metadata


def test_truncation_and_a_pending_reward(socket: Socket) -> None:
    socket.ask("reset", seed=0)
    pending = socket.ask("step", action="later", metadata={"k": 1})["data"]
    assert pending["reward"] is None
    assert pending["metadata"]["reward_pending"] is True
    assert pending["metadata"]["achieved_goals"] == ["said later"]
    for _ in range(3):
        data = socket.ask("step", action="wrong")["data"]
    assert data["done"]
    assert data["metadata"] == {"terminated": False, "truncated": True}


def test_errors_leave_the_session_alive(socket: Socket) -> None:
    def code(reply: dict[str, dict[str, object]]) -> object:
        return reply["data"]["code"]

    early = socket.ask("step", action="0")
    assert code(early) == "EXECUTION_ERROR"
    assert early["data"]["message"] == "NoEpisode: no episode has started; send a reset first"
    socket.ask("reset", seed=1)
    failed = socket.ask("step", action="boom")
    assert failed == {
        "type": "error",
        "data": {"message": "RuntimeError: boom", "code": "EXECUTION_ERROR"},
    }
    assert "SystemExit" in socket.ask("step", action="leave")["data"]["message"]
    assert socket.say("notjson")["data"] == {
        "message": "Invalid JSON: Expecting value: line 1 column 1 (char 0)",
        "code": "INVALID_JSON",
    }
    assert socket.say('{"type": "zzz"}')["data"] == {
        "message": "Unknown message type: zzz",
        "code": "UNKNOWN_TYPE",
    }
    wrong = socket.ask("step", bad="5")
    assert code(wrong) == "VALIDATION_ERROR"
    assert [(e["type"], e["loc"]) for e in wrong["data"]["errors"]] == [
        ("missing", ["action"]),
        ("extra_forbidden", ["bad"]),
    ]
    for text in ("5", '{"type": "step"}', '{"type": "step", "data": 5}'):
        assert code(socket.say(text)) == "VALIDATION_ERROR"
    # The HTTP form is wrong here.
    assert code(socket.ask("step", action={"action": "0"})) == "VALIDATION_ERROR"
    assert socket.ask("step", action="later")["type"] == "observation"
    assert code(socket.ask("reset", seed="x")) == "VALIDATION_ERROR"
    unknown = socket.ask("reset", seed=1, task="nowhere")
    assert code(unknown) == "VALIDATION_ERROR"
    assert "no task 'nowhere'" in unknown["data"]["message"]


def test_close(url: str) -> None:
    before = Number.closed
    with Socket(url) as socket:
        socket.raw.send('{"type": "close"}')
        with pytest.raises(ConnectionClosedOK):
            socket.raw.recv(30)
        assert socket.raw.close_code == 1000
    until = time.monotonic() + 10
    while Number.closed == before and time.monotonic() < until:
        time.sleep(0.01)
    assert Number.closed > before


def test_capacity(url: str) -> None:
    with Socket(url), Socket(url), Socket(url) as third:
        assert third.next() == {
            "type": "error",
            "data": {
                "message": "Server at capacity: 2/2 sessions active. Cannot accept new connections.",
                "code": "CAPACITY_REACHED",
                "active_sessions": 2,
                "max_sessions": 2,
            },
        }
        with pytest.raises(ConnectionClosedOK):
            third.raw.recv(30)
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with Socket(url) as freed:
            if freed.ask("reset")["type"] == "observation":
                return
    pytest.fail("a closed session frees its place")


def test_sessions_of_mcp_are_unknown(url: str) -> None:
    with Socket(url, "/ws?session_id=unknown") as socket:
        assert socket.next()["data"] == {
            "message": "Unknown session_id: unknown",
            "code": "SESSION_ERROR",
        }


def test_an_environment_that_cannot_be_made() -> None:
    class Broken(Number):
        def __init__(self) -> None:
            raise OSError("no licence")

    with serving(Broken) as url:
        with Socket(url) as socket:
            data = socket.next()["data"]
        assert (data["code"], data["factory_name"]) == ("FACTORY_ERROR", "Broken")
        assert post(f"{url}/reset").json() == {"detail": "OSError: no licence"}


def test_what_is_sent_is_json_for_every_client(socket: Socket) -> None:
    """No NaN, and no escaped text where none is needed."""
    socket.ask("reset", seed=1)
    socket.raw.send(json.dumps({"type": "step", "data": {"action": "später"}}))
    assert "NaN" not in str(socket.raw.recv(30))

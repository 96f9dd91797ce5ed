"""Environments for tests, and a served one in a thread of this process."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
from websockets.sync.client import ClientConnection, connect

from nlac import env
from nlac.env.loading import load
from nlac.env.serving.server import Server

EXAMPLE = Path(__file__).parents[3] / "examples" / "environments" / "desk.py"
Desk = load(f"{EXAMPLE}:Desk")


class Number(env.Environment):
    """Guess the number."""

    tasks = {"train": ["low", "high"], "held_out": ["middle"]}  # noqa: RUF012
    closed = 0

    def reset(self, seed: int, task: str | None, episode_id: str | None = None) -> env.Step:
        self.secret = random.Random(f"{seed} {task}").randrange(3)
        self.left = 3
        return env.Step(f"guess a {task} number {episode_id}", admissible=["0", "1", "2"])

    def step(self, action: str) -> env.Step:
        if action == "boom":
            raise RuntimeError("boom")
        if action == "leave":
            raise SystemExit(3)
        if action == "later":
            return env.Step("we will see", env.PENDING, achieved_goals=["said later"])
        self.left -= 1
        solved = action == str(self.secret)
        return env.Step(
            "yes" if solved else "no",
            float(solved),
            terminated=solved,
            truncated=not solved and not self.left,
            success=solved or None,
        )

    def close(self) -> None:
        Number.closed += 1


class Shop(env.Environment):
    """A shop with tools; text goes to the customer."""

    def reset(self, seed: int, task: str | None) -> list[dict[str, str]]:
        self.bought = 0
        return [
            {"role": "system", "content": "You sell apples."},
            {"role": "user", "content": "two apples please"},
        ]

    def step(self, action: str) -> env.Step:
        return env.Step("thank you", float(self.bought == 2), terminated=True)

    @env.tool
    def price(self, item: Literal["apple", "pear"]) -> dict[str, int]:
        """The price of an item."""
        return {"price": len(item)}

    @env.tool
    async def buy(self, item: str, count: int = 1) -> str:
        """Buys items."""
        await asyncio.sleep(0)
        if count > 3:
            raise ValueError("there are only three")
        self.bought += count
        return f"{count} {item}"

    @env.tool
    def give_up(self) -> env.Step:
        """Ends the episode."""
        return env.Step("the customer leaves", -1.0, terminated=True, success=False)


@contextmanager
def serving(environment: Callable[[], Any], **settings: Any) -> Iterator[str]:
    """The URL of a server on a port that the system chooses."""
    server = Server(environment, port=0, **settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 30
        while not server.started:
            assert thread.is_alive(), "the server does not start"
            assert time.monotonic() < until, "the server does not start in time"
            time.sleep(0.01)
        yield server.url
    finally:
        server.should_exit = True
        thread.join(30)


class Socket:
    """A WebSocket that sends and receives frames."""

    raw: ClientConnection

    def __init__(self, url: str, path: str = "/ws", **settings: Any) -> None:
        self._opening = connect(url.replace("http", "ws") + path, proxy=None, **settings)

    def ask(self, kind: str, **data: Any) -> Any:
        """The reply to a frame."""
        return self.say(json.dumps({"type": kind, "data": data}))

    def say(self, text: str) -> Any:
        """The reply to any text."""
        self.raw.send(text)
        return self.next()

    def next(self) -> Any:
        """The next frame."""
        return json.loads(self.raw.recv(30))

    def __enter__(self) -> Socket:
        self._opening.__enter__()
        self.raw = self._opening
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()


def get(url: str, **settings: Any) -> httpx.Response:
    return httpx.get(url, timeout=30, **settings)


def post(url: str, body: Any = None, **settings: Any) -> httpx.Response:
    return httpx.post(url, json=body, timeout=30, **settings)

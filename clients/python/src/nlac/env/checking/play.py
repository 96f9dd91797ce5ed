"""Random episodes, and the same episodes again, for `check`."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .channels import Channel, Frame

MAX_STEPS = 200
"""Steps after which an episode counts as one that never ends."""
TIMEOUT = 60.0
"""Seconds that a reset or a step may take."""
WORDS = ("hello", "yes", "no", "help", "look", "wait", "1", "2", "What is next?", "I do not know.")
"""What is said to an environment that shows no example of an action."""


@dataclass
class Played:
    """An episode."""

    seed: int
    task: str | None
    actions: list[Frame] = field(default_factory=list)
    said: list[tuple[str, Any, bool]] = field(default_factory=list)
    """Text, reward and whether the episode is over: of the reset, then of each step."""
    seconds: list[float] = field(default_factory=list)
    """Of each step."""
    error: str | None = None

    @property
    def ended(self) -> bool:
        """Whether the environment ended the episode."""
        return bool(self.said) and self.said[-1][2]


class Chooser:
    """Draws actions that the environment shows: admissible ones, tools, or its schema's examples."""

    def __init__(self, schema: Mapping[str, Any], given: Sequence[str] = ()) -> None:
        properties = schema.get("properties", {})
        texts = [name for name, kind in properties.items() if kind.get("type") == "string"]
        self.has_tools = "tool_name" in properties
        texts = [name for name in texts if name not in ("type", "tool_name")]
        self._field = texts[0] if texts else None
        examples = properties[self._field].get("examples", []) if self._field else []
        self._texts = [*given] or [*examples] or [*WORDS]
        self.knows_actions = bool(given or examples or self.has_tools)

    def choose(self, rng: random.Random, reply: Frame, tools: Sequence[Mapping[str, Any]]) -> Frame:
        """An action after a reply."""
        admissible = (reply.get("metadata") or {}).get("admissible")
        if tools and (self._field is None or (not admissible and rng.random() < 0.8)):
            tool = rng.choice(tools)
            arguments = _value(rng, tool.get("input_schema", {}))
            return {"type": "call_tool", "tool_name": tool["name"], "arguments": arguments}
        return {self._field or "action": rng.choice(admissible or self._texts)}


async def play(
    channel: Channel, chooser: Chooser, seed: int, task: str | None, again: Sequence[Frame] | None
) -> Played:
    """Plays an episode with random actions, or with the actions that are given."""
    # Another stream than random.Random(seed), from which the environment draws.
    played, rng = Played(seed, task), random.Random(f"play {seed}")
    start = {"seed": seed} if task is None else {"seed": seed, "task": task}
    try:
        reply = await _ask(channel, {"type": "reset", "data": start})
        _note(played, reply)
        tools: list[Mapping[str, Any]] = []
        if chooser.has_tools:
            listed = await _ask(channel, {"type": "step", "data": {"type": "list_tools"}})
            tools = listed["observation"]["tools"]
        limit = MAX_STEPS if again is None else len(again)
        while not played.ended and len(played.actions) < limit:
            index = len(played.actions)
            action = chooser.choose(rng, reply, tools) if again is None else again[index]
            played.actions.append(action)
            began = time.perf_counter()
            reply = await _ask(channel, {"type": "step", "data": action})
            played.seconds.append(time.perf_counter() - began)
            _note(played, reply)
    except _Failed as error:
        played.error = str(error)
    return played


class _Failed(Exception):
    """A frame that was answered with an error, or not in time."""


async def _ask(channel: Channel, frame: Frame) -> Frame:
    try:
        reply = await asyncio.wait_for(channel.ask(frame), TIMEOUT)
    except asyncio.TimeoutError:
        raise _Failed(f"no answer to {frame['type']} within {TIMEOUT:.0f} seconds") from None
    data: Frame = reply["data"]
    if reply["type"] == "error":
        raise _Failed(f"{frame['type']}: {data['code']}: {data['message']}")
    return data


def _note(played: Played, reply: Frame) -> None:
    observation = reply["observation"]
    texts = [value for key, value in observation.items() if isinstance(value, str)]
    text = observation.get("text")
    played.said.append(
        (text if isinstance(text, str) else "\n".join(texts), reply["reward"], reply["done"])
    )


def _value(rng: random.Random, schema: Mapping[str, Any]) -> Any:
    """A value of a JSON schema; a string where the schema says nothing."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return _value(rng, rng.choice(schema["anyOf"]))
    if schema.get("examples"):
        return rng.choice(schema["examples"])
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            return {name: _value(rng, properties[name]) for name in schema.get("required", [])}
        case "array":
            return [_value(rng, schema.get("items", {})) for _ in range(rng.randrange(3))]
        case "integer":
            return rng.randrange(10)
        case "number":
            return round(rng.uniform(0, 10), 2)
        case "boolean":
            return rng.random() < 0.5
        case "null":
            return None
    return rng.choice(WORDS)

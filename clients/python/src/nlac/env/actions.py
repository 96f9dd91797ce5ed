"""What clients may send and what they get, as models and as the JSON schemas of `GET /schema`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Metadata = dict[str, Any]
_Model = TypeVar("_Model", bound=BaseModel)


class Invalid(ValueError):
    """What a client sent does not fit the schema. `errors` is pydantic's list."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        super().__init__("Invalid message")
        self.errors = errors


def read(model: type[_Model], data: Any) -> _Model:
    """What a client sent, as a model."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise Invalid(json.loads(error.json())) from error


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid")

    metadata: Metadata = Field(
        default_factory=dict, description="Additional metadata for the action"
    )


class TextAction(_Sent):
    """What the agent says."""

    model_config = ConfigDict(title="Action")

    action: str = Field(description="The agent's text")


class ListToolsAction(_Sent):
    """Request list of available tools from the environment."""

    type: Literal["list_tools"]


class CallToolAction(_Sent):
    """Call a specific tool via MCP."""

    type: Literal["call_tool"] = Field("call_tool", description="Action type discriminator")
    tool_name: str = Field(description="Name of the tool to call")
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="Arguments to pass to the tool"
    )


class Reset(BaseModel):
    """How an episode starts. Fields that are not named here reach the environment's `reset` as well."""

    model_config = ConfigDict(extra="allow")

    seed: int | None = Field(None, description="Decides all chance; drawn if it is missing")
    task: str | None = Field(None, description="Name of a task")
    split: str | None = Field(None, description="Split of the task, instead of its name")
    index: int | None = Field(None, description="Index of the task in its split")
    episode_id: str | None = Field(None, description="The client's name for the episode")


class Known(BaseModel):
    """The metadata of an observation. A key is missing where the environment says nothing."""

    model_config = ConfigDict(extra="allow", title="Metadata")

    terminated: bool = Field(description="The task ended the episode")
    truncated: bool = Field(description="Something outside the task cut the episode")
    success: bool | None = Field(None, description="Whether the task is solved")
    reward_pending: bool = Field(False, description="The reward of this step comes later")
    admissible: list[str] = Field([], description="The actions that are possible now")
    achieved_goals: list[str] = Field([], description="Goals that this step achieved")
    messages: list[dict[str, Any]] = Field([], description="The text as chat messages")
    seed: int | None = Field(None, description="After a reset: the episode's seed")
    task: str | None = Field(None, description="After a reset: the episode's task")
    info: dict[str, Any] = Field({}, description="What else the environment said")


class Observation(BaseModel):
    """What the agent is told."""

    text: str = Field(description="What the agent is told")
    done: bool = Field(False, description="Whether the episode has terminated")
    reward: bool | int | float | None = Field(
        None, description="Reward signal from the last action"
    )
    metadata: Known


class ToolObservation(Observation):
    """What the agent is told, with the tools or with the result of a call."""

    tools: list[dict[str, Any]] | None = Field(None, description="After `list_tools`")
    tool_name: str | None = Field(None, description="After `call_tool`")
    result: Any = Field(None, description="The tool's result")
    error: dict[str, str] | None = Field(
        None, description="error_type and message of a failed call"
    )


class StepRequest(BaseModel):
    """The body of `POST /step`."""

    model_config = ConfigDict(extra="allow")

    action: dict[str, Any]


class SplitRequest(BaseModel):
    """The body of the Task API's lists."""

    split: str


class IndexRequest(SplitRequest):
    """The body of `POST /{env}/task`."""

    index: int


class RangeRequest(SplitRequest):
    """The body of `POST /{env}/task_range`."""

    start: int | None = None
    stop: int | None = None


class State(BaseModel):
    """The state of a session."""

    episode_id: str | None = Field(None, description="Unique identifier for the current episode")
    step_count: int = Field(0, ge=0, description="Number of steps taken in the current episode")
    seed: int | None = None
    task: str | None = None


Action = TextAction | ListToolsAction | CallToolAction


def read_action(data: Mapping[str, Any], *, tools: bool, text: bool) -> Action:
    """The action that a client sent."""
    if not tools or (text and "action" in data):
        return read(TextAction, data)
    if data.get("type") == "list_tools":
        return read(ListToolsAction, data)
    return read(CallToolAction, data)


def action_schema(*, tools: bool, text: bool, examples: Sequence[str]) -> dict[str, Any]:
    """A generic client reads it: one string field takes the agent's text; the title tells of tools."""
    said = TextAction.model_json_schema()
    if examples:
        said["properties"]["action"]["examples"] = list(examples)
    if not tools:
        return said
    called = CallToolAction.model_json_schema()
    if text:
        called["properties"]["action"] = said["properties"]["action"]
        called["anyOf"] = [{"required": called.pop("required")}, {"required": said["required"]}]
    return called


def schemas(*, tools: bool, text: bool, examples: Sequence[str]) -> dict[str, Any]:
    """The reply of `GET /schema`."""
    step = ToolObservation if tools else Observation
    return {
        "action": action_schema(tools=tools, text=text, examples=examples),
        "observation": step.model_json_schema(),
        "state": State.model_json_schema(),
        "reset_observation": Observation.model_json_schema(),
    }

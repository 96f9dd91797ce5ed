"""Transitions as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .rest.models import ChatMessage, TransitionView

if TYPE_CHECKING:
    from pandas import DataFrame

# As one reads them: what was the state, what was done, what came, and what was said about it.
COLUMNS = (
    "iteration",
    "step",
    "state",
    "action",
    "observation",
    "reward",
    "done",
    "verdict",
    "critique",
    "refinement",
    "changed",
    "loss",
    "uses",
    "episode_id",
)


def need_pandas() -> Any:
    """pandas, or what to install."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("transitions_frame needs pandas: pip install nlac[pandas]") from error
    return pandas


def transitions_frame(transitions: Iterable[TransitionView]) -> DataFrame:
    """One row per transition, under its id."""
    pandas = need_pandas()
    listed = list(transitions)
    index = pandas.Index([str(transition.id) for transition in listed], name="transition")
    frame: DataFrame = pandas.DataFrame(
        [_row(transition) for transition in listed], index=index, columns=list(COLUMNS)
    )
    return frame


def _row(transition: TransitionView) -> dict[str, Any]:
    row = {column: getattr(transition, column) for column in COLUMNS}
    row["state"] = "\n".join(f"{said.role}: {_written(said)}" for said in transition.state)
    row["episode_id"] = str(transition.episode_id)
    return row


def _written(said: ChatMessage) -> str:
    """The text of a message, and the tools that it calls."""
    parts = [said.content] if isinstance(said.content, str) else []
    if isinstance(said.tool_calls, list):
        parts += [f"{call.function.name}({call.function.arguments})" for call in said.tool_calls]
    return " ".join(parts)

from typing import Literal, cast

EventKind = Literal[
    "budget_spent",
    "cancelled",
    "continued",
    "demoted",
    "evaluated",
    "extended",
    "failed",
    "guard_tripped",
    "iteration_finished",
    "paused",
    "phase_started",
    "plan_failed",
    "promoted",
    "published",
    "reclaimed",
    "resumed",
    "retried",
    "rolled_back",
    "started",
    "submitted",
    "succeeded",
    "waiting",
    "warned",
]


def check_event_kind(value: str) -> EventKind:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(EventKind, value)

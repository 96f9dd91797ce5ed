from typing import Literal, cast

OpenedState = Literal["discarded", "ended", "open"]


def check_opened_state(value: str) -> OpenedState:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(OpenedState, value)

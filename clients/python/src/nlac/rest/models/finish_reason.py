from typing import Literal, cast

FinishReason = Literal["length", "stop", "unanswered"]


def check_finish_reason(value: str) -> FinishReason:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(FinishReason, value)

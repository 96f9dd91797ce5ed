from typing import Literal, cast

TruncatedBy = Literal["context", "deadline", "environment", "idle", "steps", "unreadable"]


def check_truncated_by(value: str) -> TruncatedBy:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(TruncatedBy, value)

from typing import Literal, cast

ProcessRole = Literal["api", "scheduler", "worker"]


def check_process_role(value: str) -> ProcessRole:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(ProcessRole, value)

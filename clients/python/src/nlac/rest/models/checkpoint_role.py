from typing import Literal, cast

CheckpointRole = Literal["online", "target"]


def check_checkpoint_role(value: str) -> CheckpointRole:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(CheckpointRole, value)

from typing import Literal, cast

EnvironmentKind = Literal["openenv"]


def check_environment_kind(value: str) -> EnvironmentKind:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(EnvironmentKind, value)

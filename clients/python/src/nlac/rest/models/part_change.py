from typing import Literal, cast

PartChange = Literal["added", "changed", "removed", "unchanged"]


def check_part_change(value: str) -> PartChange:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(PartChange, value)

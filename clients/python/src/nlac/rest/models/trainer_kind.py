from typing import Literal, cast

TrainerKind = Literal["skyrl_jax", "tinker"]


def check_trainer_kind(value: str) -> TrainerKind:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(TrainerKind, value)

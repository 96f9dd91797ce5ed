from typing import Literal, cast

EngineKind = Literal["openai", "sglang", "tgi", "vllm"]


def check_engine_kind(value: str) -> EngineKind:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(EngineKind, value)

from typing import Literal, cast

PredictionUse = Literal["bootstrap", "critique"]


def check_prediction_use(value: str) -> PredictionUse:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(PredictionUse, value)

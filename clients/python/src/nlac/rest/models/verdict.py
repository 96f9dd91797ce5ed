from typing import Literal, cast

Verdict = Literal["no", "unparseable", "yes"]


def check_verdict(value: str) -> Verdict:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(Verdict, value)

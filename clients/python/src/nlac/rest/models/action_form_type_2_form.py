from typing import Literal, cast

ActionFormType2Form = Literal["tools"]


def check_action_form_type_2_form(value: str) -> ActionFormType2Form:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(ActionFormType2Form, value)

from typing import Literal, cast

ActionFormType1Form = Literal["json"]


def check_action_form_type_1_form(value: str) -> ActionFormType1Form:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(ActionFormType1Form, value)

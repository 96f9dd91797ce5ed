from typing import Literal, cast

ActionFormType0Form = Literal["text"]


def check_action_form_type_0_form(value: str) -> ActionFormType0Form:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(ActionFormType0Form, value)

from typing import Literal, cast

ExportJobForm = Literal["preferences", "sft", "transitions"]


def check_export_job_form(value: str) -> ExportJobForm:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(ExportJobForm, value)

from typing import Literal, cast

ExportJobFormat = Literal["jsonl", "parquet"]


def check_export_job_format(value: str) -> ExportJobFormat:
    # Values that a newer server knows are passed on: an old client goes on reading.
    return cast(ExportJobFormat, value)

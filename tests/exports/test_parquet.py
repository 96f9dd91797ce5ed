"""Parquet in polars: the rows of the lines of JSON, typed."""

import json
from pathlib import Path

import polars as pl
import pytest
from conftest import FORMS

MESSAGES = pl.List(pl.Struct({"role": pl.String, "content": pl.String}))
SCHEMAS = {
    "transitions": {
        "id": pl.String,
        "job_id": pl.String,
        "episode_id": pl.String,
        "iteration": pl.Int32,
        "step": pl.Int32,
        "context": pl.Int32,
        "state": MESSAGES,
        "action": pl.String,
        "env_action": pl.String,
        "observation": pl.String,
        "reward": pl.Float64,
        "reward_status": pl.String,
        "done": pl.Boolean,
        "truncated": pl.Boolean,
        "generation_id": pl.String,
        "choice_logprob": pl.Float64,
        "admissible": pl.List(pl.String),
        "next_admissible": pl.List(pl.String),
        "achieved_goals": pl.List(pl.String),
        "loss": pl.Float32,
        "uses": pl.Int32,
        "success": pl.Boolean,
        "annotated_in": pl.Int32,
        "verdict": pl.String,
        "critique": pl.String,
        "refinement": pl.String,
        "valid": pl.Boolean,
        "changed": pl.Boolean,
    },
    "sft": {"messages": MESSAGES},
    "preferences": {"prompt": MESSAGES, "chosen": MESSAGES, "rejected": MESSAGES},
}


@pytest.mark.parametrize("form", FORMS)
def test_polars_reads_what_the_lines_say(exported: Path, form: str) -> None:
    table = pl.read_parquet(exported / f"{form}.parquet")
    assert dict(table.schema) == SCHEMAS[form]
    lines = [json.loads(line) for line in (exported / f"{form}.jsonl").open()]
    assert table.height == len(lines) > 10
    assert list(lines[0]) == table.columns
    # Of the same types, so that a loss of 32 bits is one here too.
    assert table.equals(pl.DataFrame(lines, schema=SCHEMAS[form]))


def test_polars_computes_on_it(exported: Path) -> None:
    table = pl.scan_parquet(exported / "transitions.parquet")
    judged = table.filter(pl.col("verdict").is_not_null()).select("critique", "loss").collect()
    assert judged.height > 10
    assert judged["critique"].null_count() == 0
    solved = table.filter(pl.col("done")).group_by("iteration").agg(pl.col("success").mean()).collect()
    assert set(solved["iteration"]) == {1, 2}

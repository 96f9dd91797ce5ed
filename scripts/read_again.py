"""Reads the texts of a job again, from their tokens and without nlac's code, and compares what nlac read.

    read_again.py SERVER JOB.json MODEL_DIRECTORY

Prints tables for docs/src/benchmarks.md: time of each phase, tokens, verdicts and targets by outcome, and what the probes
of published adapters measured. Exits with 1 if nlac read a verdict or a target otherwise, or if an iteration or a probe is
missing. Called by scripts/real-stack.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tokenizers import Tokenizer

ENDS = ("<|im_end|>", "<|endoftext|>")


class Text:
    """A text as the engine wrote it: reasoning and answer by the marks alone."""

    def __init__(self, tokenizer: Tokenizer, provenance: dict[str, Any]) -> None:
        whole = tokenizer.decode(provenance["token_ids"], skip_special_tokens=False)
        for end in ENDS:
            whole = whole.removesuffix(end)
        reasoning, closed, answer = whole.partition("</think>")
        self.cut = provenance["finish_reason"] == "length"
        self.whole = whole
        self.endless = not closed and "<think>" in reasoning
        self.answer = answer if closed else whole

    def why(self) -> str | None:
        """Why it says nothing at all; none if it says something."""
        if self.endless:
            return "the reasoning never ended"
        return "the answer was cut at its limit" if self.cut else None


def verdict(text: Text) -> tuple[str, str]:
    """What the evaluator wrote, and in which words."""
    if why := text.why():
        return "unparseable", why
    # Anywhere, so that what nlac overlooks is found.
    said = re.search(r"optimal\W{0,3}(yes|no)\b", text.answer, re.IGNORECASE)
    return (said[1].lower(), "as written") if said else ("unparseable", "no verdict was written")


def target(text: Text) -> tuple[str, str]:
    """Whether a target names its outcome and a reward."""
    if why := text.why():
        return "unparseable", why
    said = re.search(r"outcome\W+(success|failure)\W+reward\W+-?\d+(\.\d+)?\s*$", text.answer, re.IGNORECASE)
    return ("accepted", "as written") if said else ("unparseable", "no outcome was written")


def get(server: str, path: str) -> Any:
    """An answer of nlac."""
    with urlopen(f"{server}{path}", timeout=60) as answer:
        return json.load(answer)


def pages(server: str, path: str) -> Iterator[dict[str, Any]]:
    """All rows of a list."""
    after = ""
    while True:
        page = get(server, f"{path}?limit=200{after}")
        yield from page["data"]
        if page["next"] is None:
            return
        after = f"&after={page['next']}"


def table(*rows: list[Any]) -> None:
    """Prints a Markdown table, the first row on top."""
    head, *body = [[str(cell) for cell in row] for row in rows]
    for row in [head, ["---", *["--:"] * (len(head) - 1)], *body]:
        print("| " + " | ".join(row) + " |")
    print()


def phases(events: list[dict[str, Any]]) -> list[list[Any]]:
    """Seconds of each phase, by iteration."""
    marks = [e for e in events if e["kind"] in ("phase_started", "iteration_finished", "succeeded", "failed")]
    spent: dict[str, dict[int, float]] = {}
    for mark, after in itertools.pairwise(marks):
        if mark["kind"] == "phase_started":
            start, end = (datetime.fromisoformat(e["at"]) for e in (mark, after))
            by_iteration = spent.setdefault(mark["data"]["phase"], {})
            iteration = mark["data"]["iteration"]
            by_iteration[iteration] = by_iteration.get(iteration, 0.0) + (end - start).total_seconds()
    numbers = sorted({iteration for by_iteration in spent.values() for iteration in by_iteration})
    head = ["seconds", *(f"iteration {n}" for n in numbers)]
    return [head, *([phase, *(f"{of.get(n, 0):.0f}" for n in numbers)] for phase, of in spent.items())]


def main() -> int:
    """Prints the tables; the exit status."""
    server, job_file, model = sys.argv[1:]
    job = get(server, f"/v1/jobs/{json.loads(Path(job_file).read_text())['id']}")
    path = f"/v1/jobs/{job['id']}"
    tokenizer = Tokenizer.from_file(f"{model}/tokenizer.json")
    events = list(pages(server, f"{path}/events"))
    wrong = []
    if job["status"] != "succeeded":
        wrong.append(f"the job is {job['status']}: {job['error']}")

    done = [event["data"] for event in events if event["kind"] == "iteration_finished"]
    wanted = job["spec"]["budget"]["iterations"]
    if len(done) != wanted + 1:
        wrong.append(f"{len(done) - 1} of {wanted} iterations are done")
    table(*phases(events))
    names = ["tokens.generated", "tokens.prompt", "tokens.trained", "learn.steps", "critic.loss", "policy.loss"]
    named = [[name, *(f"{data[name]:,.5g}" if name in data else "" for data in done)] for name in names]
    table(["", *(f"iteration {data['iteration']}" for data in done)], *named)

    rows: list[list[Any]] = [["adapter", "effect, nats", "noise, nats", "seen"]]
    for event in events:
        if event["kind"] != "published":
            continue
        data = event["data"]
        for role, probe in zip(("online", "target"), data["probes"], strict=True):
            told = (
                [f"{probe['effect']:.3f}", f"{probe['noise']:.3f}", probe["seen"]] if probe else ["", "", "untrained"]
            )
            rows.append([data[role], *told])
            if data["iteration"] > 0 and not probe:
                wrong.append(f"adapter {data[role]} changes too little to be probed")
    table(*rows)

    counts: dict[str, Counter[tuple[Any, ...]]] = {
        "critiques": Counter(),
        "targets": Counter(),
        "refinements": Counter(),
    }
    for transition in pages(server, f"{path}/transitions"):
        made = get(server, f"/v1/transitions/{transition['id']}/critiques?job_id={job['id']}")
        for critique in made["critiques"]:
            text = Text(tokenizer, critique["provenance"])
            read, why = verdict(text)
            counts["critiques"][critique["iteration"], critique["verdict"], why] += 1
            if read != critique["verdict"]:
                wrong.append(f"a verdict was read as {critique['verdict']}: {text.whole!r}")
        for row in made["targets"]:
            text = Text(tokenizer, row["provenance"])
            read, why = target(text)
            counts["targets"][row["iteration"], row["status"], why] += 1
            # Of what has the form, nlac also rejects what quotes or knows too much.
            if (read == "unparseable") != (row["status"] == "unparseable"):
                wrong.append(f"a target was read as {row['status']}: {text.whole!r}")
        for row in made["refinements"]:
            text = Text(tokenizer, row["provenance"])
            call = "a tool call" if "<tool_call>" in text.answer else "a text"
            counts["refinements"][row["iteration"], "valid" if row["valid"] else "invalid", text.why() or call] += 1
    for what, counted in counts.items():
        table(
            [what, "iteration", "nlac's reading", "why", "count"],
            *(["", *key, n] for key, n in sorted(counted.items())),
        )
    if not counts["critiques"]:
        wrong.append("no verdict was asked for")
    for line in wrong:
        print("wrong:", line)
    print(f"{sum(counts['critiques'].values())} verdicts read again, {len(wrong)} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

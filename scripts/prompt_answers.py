#!/usr/bin/env python3
"""Measures how many answers of a real model each part of a prompt set can be read.

    scripts/prompt_answers.py [--prompts DIR] [--count N] [--out FILE] --engine URL --model NAME JOB...

Takes steps of the episodes that evaluation jobs played, renders the files of a set on them as nlac does, asks a chat
endpoint, and reads the answers by the files' own expressions. A part whose prompt holds another part's answer gets the
model's own. Unlike a dry run it needs no stored transition. Needs Python with pyyaml and jinja2; NLAC_SERVER names the
service.
"""
import argparse
import json
import os
import re
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jinja2
import yaml

API = os.environ.get("NLAC_SERVER", "http://127.0.0.1:8470") + "/v1"
# Most tokens of an answer.
PARTS = {"successor": 160, "bellman": 160, "bellman_terminal": 160, "evaluator": 96, "refiner": 96, "corrector": 160}
GREEDY = {"bellman", "bellman_terminal", "evaluator", "corrector"}


def call(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=900) as answer:
        return json.load(answer)


def load(directory):
    """The expressions and the body of each part."""
    parts = {}
    for part in PARTS:
        _, front, body = (Path(directory) / f"{part}.md").read_text().split("---\n", 2)
        reply = yaml.load(front, Loader=yaml.BaseLoader).get("reply", {})
        parts[part] = {name: re.compile(form.replace(r"\z", r"\Z")) for name, form in reply.items()}, jinja2.Template(body)
    return parts


def steps(job, count):
    """Steps of a job's episodes: as many endings as others, where there are enough."""
    done, rest = [], []
    for listed in call(f"{API}/jobs/{job}/episodes?limit=50")["data"]:
        episode = call(f"{API}/episodes/{listed['id']}")
        said = [{"role": m["role"], "content": m.get("content") or ""} for m in episode["contexts"][-1]["messages"]]
        actions = [i for i, message in enumerate(said) if message["role"] == "assistant"]
        for place, after in zip(actions, actions[1:] + [len(said)]):
            ended = after == len(said) and episode["end_reason"] == "terminated"
            observed = "\n".join(message["content"] for message in said[place + 1:after])
            reward = (episode["return"] or 0) if ended else 0
            step = {"state": said[:place], "action": said[place], "observed": observed, "reward": reward, "done": ended}
            (done if ended else rest).append(step)
    ends = min(len(done), max(count // 2, count - len(rest)))
    spread = lambda found, wanted: [found[i * len(found) // wanted] for i in range(wanted)]
    return spread(done, ends) + spread(rest, min(count - ends, len(rest)))


def bare(line):
    return re.sub(r"^\W+|\W+$", "", line).lower()


def is_action(environment, text, state):
    """Whether the environment could read the text: as the codec of its kind, roughly."""
    if environment["kind"] == "mathematics":
        return "\\boxed{" in text or "final answer is" in text.lower()
    if environment["kind"] == "playground":
        possible = [line for message in state for line in re.findall("Possible actions: (.*)", message["content"])]
        named = {bare(line) for line in text.splitlines()} & {bare(action) for action in possible[-1].split(", ")}
        return len(named) == 1
    if environment.get("form") == "react":
        return text.rpartition("Action:")[1:] > ("Action:", "")
    return text != ""


def why_not(parts, part, text, step, environment):
    """Why an answer cannot be used; none if it can."""
    forms = parts["successor"][0]
    if part == "refiner":
        return None if is_action(environment, text, step["state"]) else "no action"
    if part == "evaluator":
        said = [name for name in ("yes", "no") if parts[part][0][name].search(text)]
        return None if len(said) == 1 else "no verdict"
    named = forms["conclusion"].search(text)
    if not named:
        return "no end and reward"
    wrong = step["done"] and part != "successor" and abs(float(named["reward"]) - step["reward"]) > 0.01
    return "another reward" if wrong else None


def try_on(args, parts, environment, step):
    said = {}

    def ask(part, **values):
        asked = {"role": "user", "content": parts[part][1].render(**values).strip()}
        body = {"model": args.model, "messages": [*step["state"], step["action"], asked], "max_tokens": PARTS[part],
                "temperature": 0.0 if part in GREEDY else 1.0}
        answer = call(f"{args.engine}/v1/chat/completions", body)
        choice = answer["choices"][0]
        text = (choice["message"]["content"] or "").strip()
        why = why_not(parts, part, text, step, environment)
        if why is None and choice["finish_reason"] == "length":
            why = "cut"
        tokens = answer["usage"]["completion_tokens"]
        said[part] = {"asked": asked["content"], "text": text, "why_not": why, "tokens": tokens}
        return text

    happened = {"observation": step["observed"], "reward": f"{step['reward']:g}"}
    future = ask("successor")
    target = ask("bellman_terminal", **happened) if step["done"] else ask("bellman", **happened, prediction=future)
    ask("corrector", target=target)
    ask("refiner", critique=ask("evaluator", futures=[future]))
    return said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("jobs", nargs="+")
    parser.add_argument("--engine", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompts", default=Path(__file__).parent.parent / "prompts/standard")
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    parts, everything = load(args.prompts), {}
    for job in args.jobs:
        spec = call(f"{API}/jobs/{job}")["spec"]
        played = steps(job, args.count)
        with ThreadPoolExecutor(len(played)) as pool:
            tried = list(pool.map(lambda step: try_on(args, parts, spec["environment"], step), played))
        everything[spec["name"]] = [{**step, "said": said} for step, said in zip(played, tried)]
        for part in PARTS:
            answers = [said[part] for said in tried if part in said]
            if answers:
                reasons = Counter(answer["why_not"] for answer in answers)
                tokens = sum(answer["tokens"] for answer in answers) / len(answers)
                print(spec["name"], part, f"{reasons.pop(None, 0)}/{len(answers)}", f"{tokens:.0f} tokens", dict(reasons), flush=True)
    if args.out:
        args.out.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()

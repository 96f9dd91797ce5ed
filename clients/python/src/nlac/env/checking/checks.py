"""`check`: plays an environment and reports what would spoil training on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, takewhile
from statistics import quantiles
from typing import Any

from .channels import InProcess, Remote, Target
from .play import MAX_STEPS, Chooser, Played, play

SLOW = 1.0
"""Seconds; slower steps leave the engine without work."""
LONG = 16_000
"""Characters, about 4 000 tokens; a longer observation fills a context in a few turns."""
REPLAY_EVERY = 4
"""Every so many episodes, one is played again with the same seed, task and actions."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with an environment."""

    code: str
    """A stable word for programs."""
    problem: str
    remedy: str
    severity: str = "error"
    """`error`, or `warning` where training is possible."""

    def __str__(self) -> str:
        return f"{self.severity}: {self.code}: {self.problem}\n  what to do: {self.remedy}"


def check(
    environment: str | Callable[[], Any],
    episodes: int = 20,
    *,
    actions: Sequence[str] = (),
    api_key: str | None = None,
) -> list[Finding]:
    """Plays random episodes of a class, or of the server at a URL, and some of them twice.

    `actions` are texts to play, where the environment lists no admissible actions and no examples.
    """
    target = (
        Remote(environment, api_key) if isinstance(environment, str) else InProcess(environment)
    )
    # A thread of its own, as a notebook's thread runs an event loop already.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _check(target, max(episodes, 1), actions)).result()


async def _check(target: Target, episodes: int, actions: Sequence[str]) -> list[Finding]:
    chooser = Chooser(await target.schema(), actions)
    tasks = await target.tasks()
    names = [name for split in tasks.values() for name in split]
    played: list[Played] = []
    pairs: list[tuple[Played, Played]] = []
    for seed, task in zip(range(episodes), cycle(names or [None])):
        async with target.session() as session:
            episode = await play(session, chooser, seed, task, None)
            played.append(episode)
            if seed % REPLAY_EVERY == 0 and episode.error is None:
                # In the same session: a reset must forget the episode before it.
                again = await play(session, chooser, seed, task, episode.actions)
                pairs.append((episode, again))
    return [
        *_errors(played),
        *_replays(pairs),
        *_ends(played),
        *_rewards(played, chooser),
        *_splits(tasks),
        *_speed(played),
        *_length(played),
    ]


def _errors(played: Sequence[Played]) -> Iterator[Finding]:
    failed = [episode for episode in played if episode.error]
    if failed:
        first = failed[0]
        task = f", task {first.task}" if first.task is not None else ""
        last = f", after the action {first.actions[-1]}" if first.actions else ""
        yield Finding(
            "error",
            f"{len(failed)} of {len(played)} episodes failed: {first.error} "
            f"(seed {first.seed}{task}{last})",
            "Answer wrong actions with an observation that says what is wrong, instead of raising.",
        )


def _replays(pairs: Sequence[tuple[Played, Played]]) -> Iterator[Finding]:
    different = [(one, two) for one, two in pairs if one.said != two.said]
    if different:
        one, two = different[0]
        same = takewhile(lambda pair: pair[0] == pair[1], zip(one.said, two.said, strict=False))
        at = len(list(same))
        where = f"step {at}" if at else "the reset"
        yield Finding(
            "not_replayable",
            f"{len(different)} of {len(pairs)} episodes went another way with the same seed, task and "
            f"actions, first at {where} of seed {one.seed}",
            "Draw everything from random.Random(seed) in reset, and set all state there: no time, no "
            "global random, nothing left from the episode before.",
        )


def _ends(played: Sequence[Played]) -> Iterator[Finding]:
    endless = [e for e in played if e.error is None and not e.ended]
    if endless:
        yield Finding(
            "never_ends",
            f"{len(endless)} of {len(played)} episodes did not end within {MAX_STEPS} steps",
            "Return truncated=True after a limit of turns.",
        )


def _rewards(played: Sequence[Played], chooser: Chooser) -> Iterator[Finding]:
    steps = [reward for episode in played for _, reward, _ in episode.said[1:]]
    known = {float(reward) for reward in steps if reward is not None}
    if len(known) == 1 and None not in steps and len(steps) > 1:
        hint = (
            ""
            if chooser.knows_actions
            else " Set `examples` to texts that are actions, or name some with `actions`."
        )
        yield Finding(
            "constant_reward",
            f"the reward was {known.pop():g} in all {len(steps)} steps of random play",
            "Check that success is rewarded. If random play cannot reach it, add easier tasks or give "
            f"a reward for partial success.{hint}",
            "warning",
        )


def _splits(tasks: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    train = set(tasks.get("train", ()))
    for split, names in tasks.items():
        shared = sorted(train.intersection(names)) if split != "train" else []
        if shared:
            yield Finding(
                "held_out_in_training",
                f"{len(shared)} tasks of split {split} are in train as well: {', '.join(shared[:5])}",
                "Remove them from one of the splits. Otherwise the evaluation measures memory.",
            )


def _speed(played: Sequence[Played]) -> Iterator[Finding]:
    seconds = [second for episode in played for second in episode.seconds]
    p95 = quantiles(seconds, n=20)[-1] if len(seconds) > 1 else sum(seconds)
    if p95 > SLOW:
        yield Finding(
            "slow_steps",
            f"the 95th percentile of a step's time is {p95:.1f} seconds; the limit is {SLOW:g}",
            "Load data once per process instead of once per step, or serve more sessions at once.",
            "warning",
        )


def _length(played: Sequence[Played]) -> Iterator[Finding]:
    longest = max((len(text) for episode in played for text, _, _ in episode.said), default=0)
    if longest > LONG:
        yield Finding(
            "long_text",
            f"an observation has {longest} characters; the limit is {LONG}",
            "Shorten the observation, or let the agent ask for parts of it.",
            "warning",
        )

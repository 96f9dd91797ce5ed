"""What both kinds of external evaluation share: the outcome of each case, and the rate that follows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from .episode_state import EpisodeState
from .errors import NlacError
from .external_errors import is_technical, is_too_long, summary
from .job_state import JobState
from .rest.models import CheckpointView, ExternalResult
from .rest.types import UNSET

Z = 1.959964
"""Of the normal distribution: 95 % lie within so many standard deviations."""


@dataclass(frozen=True)
class Case:
    """An episode that was played for an evaluation."""

    task: str
    episode: UUID
    success: bool | None
    """Whether the task was solved; None if a server or an engine failed."""
    reward: float | None
    """The return of the episode, if the agent's code gave rewards."""
    reason: str = ""
    """The error that ended the episode."""


class Played(EpisodeState):
    """An episode of an evaluation: its rewards stay here, because no job learns from the episode."""

    def __init__(self, episode: EpisodeState) -> None:
        super().__init__(episode.view)
        self.truncated = False
        self._steps: dict[int, float] = {}

    def note(self, reward: float, success: bool | None, step: int | None) -> None:
        """Keeps a reward: of a step, or of the last step."""
        if step is None:
            self.keep(reward, success)
        else:
            self._steps[step] = reward
            self._success = self._success if success is None else success

    def note_end(self, reward: float | None, success: bool | None, truncated: bool) -> None:
        """Keeps what `close` says."""
        self._reward = self._reward if reward is None else reward
        self._success = self._success if success is None else success
        self.truncated = self.truncated or truncated

    def kept(self, error: NlacError) -> str:
        """The warning that the episode could not be discarded."""
        idle = self.view.idle_seconds
        return f"episode {self.id} was not discarded, so it stays open for {idle} s: {error}"

    def case(self, success: bool | None, reason: str) -> Case:
        known = [*self._steps.values(), *([] if self._reward is None else [self._reward])]
        return Case(self.view.task, self.id, success, sum(known) if known else None, reason)

    def judged(self) -> Case:
        """The case of an episode that ended without an error."""
        if self.truncated:
            return self.case(None, "the episode was truncated")
        if self._success is None and (self._steps or self._reward is not None):
            raise NlacError(
                f"episode {self.id} has a reward, but nobody said whether its task was solved",
                remedy="pass `success=True` or `success=False` with the reward",
            )
        solved = self._success is not False
        return self.case(solved, "" if solved else "the agent's code said so")


class ExternalState:
    """The cases that were played, and the success rate of the checkpoint."""

    def __init__(
        self,
        job: JobState,
        checkpoint: CheckpointView,
        unsolved: Iterable[type[BaseException]] = (),
        post: bool | None = None,
    ) -> None:
        self.job_id = job.id
        self.job_name = job.name
        self.posts = job.spec["evaluation"]["from"] == "external" if post is None else post
        """Whether the end of the block posts the result."""
        self.checkpoint = checkpoint
        """The checkpoint that answers the agent."""
        self.unsolved: tuple[type[BaseException], ...] = (AssertionError, *unsolved)
        """Errors that mean: the agent did not solve its task."""
        self.cases: list[Case] = []
        """All cases that have ended, in the order of their ends."""
        self.incomplete = False
        """Whether a case is missing: it could not be opened, or the agent's code had an error of its own."""
        self.posted: CheckpointView | None = None
        """The checkpoint with its posted result."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} version {self.checkpoint.version}, {len(self.cases)} cases>"

    @property
    def unjudged(self) -> list[Case]:
        """Cases in which a server or an engine failed. The success rate leaves them out."""
        return [case for case in self.cases if case.success is None]

    @property
    def episodes(self) -> int:
        """The number of episodes that count."""
        return len(self.cases) - len(self.unjudged)

    @property
    def solved(self) -> int:
        """The number of episodes whose task was solved."""
        return sum(case.success is True for case in self.cases)

    @property
    def success(self) -> float:
        """The share of the counted episodes that were solved. Raises if no episode counts."""
        if not self.episodes:
            why = f": {self.unjudged[0].reason}" if self.unjudged else ""
            raise NlacError(f"the evaluation of {self.job_name} has no judged episode{why}")
        return self.solved / self.episodes

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of `success` (Wilson), for independent episodes."""
        rate, count = self.success, self.episodes
        spread = Z * math.sqrt(rate * (1 - rate) / count + (Z / (2 * count)) ** 2)
        middle, scale = rate + Z**2 / (2 * count), 1 + Z**2 / count
        return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)

    def check(self, at_least: float) -> None:
        """Raises `AssertionError` if the success rate is lower than `at_least`, with all that is known."""
        if self.success < at_least:
            raise AssertionError(f"success is below {at_least:.1%}\n{self.report()}")

    def report(self) -> str:
        """The result in a few lines of text."""
        lines = [f"checkpoint version {self.checkpoint.version} of job {self.job_name}"]
        if self.episodes:
            low, high = self.interval
            lines[0] += f": {self.solved} of {self.episodes} cases solved"
            lines.append(f"success {self.success:.1%}, 95 % interval {low:.1%} to {high:.1%}")
        else:
            lines[0] += ": no case was judged"
        lines += [f"not solved: {c.task}: {c.reason}" for c in self.cases if c.success is False]
        lines += [f"not judged: {c.task}: {c.reason}" for c in self.unjudged]
        return "\n".join(lines)

    def outcome(self, played: Played, error: BaseException | None) -> Case | None:
        """The case that an episode and its error make; None for an error that the caller has to see."""
        if error is None:
            return played.judged()
        if isinstance(error, self.unsolved) or is_too_long(error):
            return played.case(False, summary(error))
        return played.case(None, summary(error)) if is_technical(error) else None

    def result(self) -> ExternalResult:
        """The body that posts the result. It has a mean return if each episode has a return."""
        rewards = [case.reward for case in self.cases if case.success is not None]
        known = [reward for reward in rewards if reward is not None]
        return ExternalResult(
            checkpoint_id=self.checkpoint.id,
            success=self.success,
            episodes=self.episodes,
            return_=sum(known) / len(known) if known and len(known) == len(rewards) else UNSET,
        )

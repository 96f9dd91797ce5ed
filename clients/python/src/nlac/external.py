"""Measuring a checkpoint with an agent and test cases of yours."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .agent_clients import AgentClients
from .errors import NlacError
from .external_state import Case, ExternalState, Played
from .job import Job
from .rest.api.gateway import discard_episode
from .rest.api.jobs import post_external_evaluation
from .rest.models import CheckpointView

if TYPE_CHECKING:
    from .client import Nlac


class EvaluationEpisode(Played, AgentClients):
    """An episode that is measured. It has the methods of `nlac.Episode`, but no job learns from it."""

    def reward(
        self, reward: float, *, success: bool | None = None, step: int | None = None
    ) -> None:
        """Keeps the reward of a step, or of the last step."""
        self.note(reward, success, step)

    def close(
        self,
        reward: float | None = None,
        *,
        success: bool | None = None,
        messages: Sequence[dict[str, Any]] = (),
        truncated: bool = False,
    ) -> None:
        """Says how the episode ended. `messages` are not stored, because nothing is learned from them."""
        self.note_end(reward, success, truncated)


class Evaluation(ExternalState):
    """The evaluation of a checkpoint: your agent plays test cases, and the success rate is posted.

    As a context manager it posts the result at the end of the block, if the job has
    `evaluation: {from: external}`. A block that raises posts nothing. Several threads may play episodes at
    the same time.
    """

    def __init__(
        self,
        server: Nlac,
        job: Job,
        checkpoint: CheckpointView,
        *,
        unsolved: Iterable[type[BaseException]] = (),
        post: bool | None = None,
    ) -> None:
        super().__init__(job, checkpoint, unsolved, post)
        self._server = server

    @contextmanager
    def episode(self, task: str = "", **settings: Any) -> Iterator[EvaluationEpisode]:
        """Plays a case. Settings are those of `Nlac.open_episode`.

        The case counts as solved if the block ends normally, unless `close` or `reward` said
        `success=False`. A failed assertion, or an error of a type in `unsolved`, ends the block and counts as
        not solved. An error of a server or an engine ends the block, and the case does not count. Any other
        error is raised.
        """
        played = self.begin(task, **settings)
        try:
            yield played
        except BaseException as error:
            if self.end(played, error) is None:
                raise
        else:
            self.end(played)

    def begin(self, task: str = "", **settings: Any) -> EvaluationEpisode:
        """Opens an episode. `end` has to follow; the method `episode` does both."""
        settings = {
            **settings,
            "task": task,
            "checkpoint": self.checkpoint.id,
            "purpose": "evaluate",
        }
        try:
            opened = self._server.open_episode(self.job_id, **settings)
        except NlacError:
            self.incomplete = True
            raise
        return EvaluationEpisode(opened)

    def end(self, played: EvaluationEpisode, error: BaseException | None = None) -> Case | None:
        """Adds the case that an episode and its error make. None: the error says nothing about the case."""
        self.discard(played)
        case = self.outcome(played, error)
        if case is not None:
            self.cases.append(case)
        elif isinstance(error, Exception):
            self.incomplete = True
        return case

    def discard(self, played: EvaluationEpisode) -> None:
        """Throws an episode away, so that no job learns from it and it does not count."""
        played.is_open = False
        try:
            self._server.ask(discard_episode.sync_detailed, played.id, client=self._server.rest)
        except NlacError as error:
            warnings.warn(played.kept(error), stacklevel=2)

    def post(self) -> CheckpointView:
        """Posts the result. It replaces an earlier result of the same checkpoint."""
        self.posted = self._server.ask(
            post_external_evaluation.sync_detailed,
            self.job_id,
            client=self._server.rest,
            body=self.result(),
        )
        return self.posted

    def __enter__(self) -> Evaluation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None and self.posts:
            self.post()

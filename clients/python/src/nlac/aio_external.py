"""The same as `external`, for asyncio."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .agent_clients import AsyncAgentClients
from .aio_job import AsyncJob
from .errors import NlacError
from .external_state import Case, ExternalState, Played
from .rest.api.gateway import discard_episode
from .rest.api.jobs import post_external_evaluation
from .rest.models import CheckpointView

if TYPE_CHECKING:
    from .aio import AsyncNlac


class AsyncEvaluationEpisode(Played, AsyncAgentClients):
    """An episode that is measured. It has the methods of `nlac.AsyncEpisode`, but no job learns from it."""

    async def reward(
        self, reward: float, *, success: bool | None = None, step: int | None = None
    ) -> None:
        """Keeps the reward of a step, or of the last step."""
        self.note(reward, success, step)

    async def close(
        self,
        reward: float | None = None,
        *,
        success: bool | None = None,
        messages: Sequence[dict[str, Any]] = (),
        truncated: bool = False,
    ) -> None:
        """Says how the episode ended. `messages` are not stored, because nothing is learned from them."""
        self.note_end(reward, success, truncated)


class AsyncEvaluation(ExternalState):
    """The evaluation of a checkpoint: your agent plays test cases, and the success rate is posted.

    As a context manager it posts the result at the end of the block, if the job has
    `evaluation: {from: external}`. A block that raises posts nothing. Several tasks of asyncio may play
    episodes at the same time.
    """

    def __init__(
        self,
        server: AsyncNlac,
        job: AsyncJob,
        checkpoint: CheckpointView,
        *,
        unsolved: Iterable[type[BaseException]] = (),
        post: bool | None = None,
    ) -> None:
        super().__init__(job, checkpoint, unsolved, post)
        self._server = server

    @asynccontextmanager
    async def episode(
        self, task: str = "", **settings: Any
    ) -> AsyncIterator[AsyncEvaluationEpisode]:
        """Plays a case. Settings are those of `AsyncNlac.open_episode`.

        The case counts as solved if the block ends normally, unless `close` or `reward` said
        `success=False`. A failed assertion, or an error of a type in `unsolved`, ends the block and counts as
        not solved. An error of a server or an engine ends the block, and the case does not count. Any other
        error is raised.
        """
        played = await self.begin(task, **settings)
        try:
            yield played
        except BaseException as error:
            if await self.end(played, error) is None:
                raise
        else:
            await self.end(played)

    async def begin(self, task: str = "", **settings: Any) -> AsyncEvaluationEpisode:
        """Opens an episode. `end` has to follow; the method `episode` does both."""
        settings = {
            **settings,
            "task": task,
            "checkpoint": self.checkpoint.id,
            "purpose": "evaluate",
        }
        try:
            opened = await self._server.open_episode(self.job_id, **settings)
        except NlacError:
            self.incomplete = True
            raise
        return AsyncEvaluationEpisode(opened)

    async def end(
        self, played: AsyncEvaluationEpisode, error: BaseException | None = None
    ) -> Case | None:
        """Adds the case that an episode and its error make. None: the error says nothing about the case."""
        await self.discard(played)
        case = self.outcome(played, error)
        if case is not None:
            self.cases.append(case)
        elif isinstance(error, Exception):
            self.incomplete = True
        return case

    async def discard(self, played: AsyncEvaluationEpisode) -> None:
        """Throws an episode away, so that no job learns from it and it does not count."""
        played.is_open = False
        try:
            await self._server.ask(
                discard_episode.asyncio_detailed, played.id, client=self._server.rest
            )
        except NlacError as error:
            warnings.warn(played.kept(error), stacklevel=2)

    async def post(self) -> CheckpointView:
        """Posts the result. It replaces an earlier result of the same checkpoint."""
        self.posted = await self._server.ask(
            post_external_evaluation.asyncio_detailed,
            self.job_id,
            client=self._server.rest,
            body=self.result(),
        )
        return self.posted

    async def __aenter__(self) -> AsyncEvaluation:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None and self.posts:
            await self.post()

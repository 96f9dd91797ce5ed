"""An episode or an evaluation in one line, with a client of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from .aio import AsyncNlac
from .aio_external import AsyncEvaluation
from .aio_gateway import AsyncEpisode
from .client import Nlac
from .external import Evaluation
from .gateway import Episode
from .job_state import JobState
from .wire import Id


def _id(job: JobState | Id) -> Id:
    return job.id if isinstance(job, JobState) else job


@contextmanager
def episode(
    job: JobState | Id, *, url: str | None = None, api_key: str | None = None, **settings: Any
) -> Iterator[Episode]:
    """An episode of a job for the length of a block; settings are those of `Nlac.open_episode`."""
    with Nlac(url, api_key) as server, server.open_episode(_id(job), **settings) as opened:
        yield opened


@asynccontextmanager
async def aepisode(
    job: JobState | Id, *, url: str | None = None, api_key: str | None = None, **settings: Any
) -> AsyncIterator[AsyncEpisode]:
    """The same, for asyncio."""
    async with (
        AsyncNlac(url, api_key) as server,
        await server.open_episode(_id(job), **settings) as opened,
    ):
        yield opened


@contextmanager
def evaluation(
    job: JobState | Id, *, url: str | None = None, api_key: str | None = None, **settings: Any
) -> Iterator[Evaluation]:
    """An evaluation for the length of a block; settings are those of `Nlac.open_evaluation`.

    The end of the block posts the result, if the job has `evaluation: {from: external}`.
    """
    with Nlac(url, api_key) as server, server.open_evaluation(_id(job), **settings) as opened:
        yield opened


@asynccontextmanager
async def aevaluation(
    job: JobState | Id, *, url: str | None = None, api_key: str | None = None, **settings: Any
) -> AsyncIterator[AsyncEvaluation]:
    """The same, for asyncio."""
    async with (
        AsyncNlac(url, api_key) as server,
        await server.open_evaluation(_id(job), **settings) as opened,
    ):
        yield opened

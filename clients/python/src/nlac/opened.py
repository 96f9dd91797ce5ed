"""An episode in one line, with a client of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from .aio import AsyncNlac
from .aio_gateway import AsyncEpisode
from .client import Nlac
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

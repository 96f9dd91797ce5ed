"""Client of nlac, which trains LLM agents by Natural Language Actor-Critic."""

from .aio import AsyncNlac
from .aio_gateway import AsyncEpisode
from .aio_job import AsyncJob
from .client import Nlac
from .errors import JobFailed, NlacError, NotReachable
from .gateway import Episode
from .job import Job
from .opened import aepisode, episode

__version__ = "0.1.0"

__all__ = [
    "AsyncEpisode",
    "AsyncJob",
    "AsyncNlac",
    "Episode",
    "Job",
    "JobFailed",
    "Nlac",
    "NlacError",
    "NotReachable",
    "aepisode",
    "episode",
]

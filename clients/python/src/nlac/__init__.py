"""Client of nlac, which trains LLM agents by Natural Language Actor-Critic."""

from .aio import AsyncNlac
from .aio_job import AsyncJob
from .client import Nlac
from .errors import JobFailed, NlacError, NotReachable
from .job import Job

__version__ = "0.1.0"

__all__ = ["AsyncJob", "AsyncNlac", "Job", "JobFailed", "Nlac", "NlacError", "NotReachable"]

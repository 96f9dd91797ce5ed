"""Client of nlac, which trains LLM agents by Natural Language Actor-Critic."""

from .aio import AsyncNlac
from .aio_external import AsyncEvaluation, AsyncEvaluationEpisode
from .aio_gateway import AsyncEpisode
from .aio_job import AsyncJob
from .client import Nlac
from .errors import JobFailed, NlacError, NotReachable
from .external import Evaluation, EvaluationEpisode
from .external_state import Case
from .gateway import Episode
from .job import Job
from .opened import aepisode, aevaluation, episode, evaluation

__version__ = "0.1.0"

__all__ = [
    "AsyncEpisode",
    "AsyncEvaluation",
    "AsyncEvaluationEpisode",
    "AsyncJob",
    "AsyncNlac",
    "Case",
    "Episode",
    "Evaluation",
    "EvaluationEpisode",
    "Job",
    "JobFailed",
    "Nlac",
    "NlacError",
    "NotReachable",
    "aepisode",
    "aevaluation",
    "episode",
    "evaluation",
]

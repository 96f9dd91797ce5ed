"""What this process has been asked to do: sessions, models, and the numbered requests that must not
happen twice."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import BaseModel

from .heads import described
from .wire import ValueHead


class Conflict(Exception):
    """A request's number was used for something else."""


@dataclass
class Model:
    """A model that was created in this process."""

    session: str
    rank: int
    role: str
    seed: int
    head: ValueHead | None = None
    touched: bool = False
    unloading: bool = False
    submitted: dict[int, tuple[bytes, str]] = field(default_factory=dict)

    @property
    def shape(self) -> str:
        return described(self.rank, self.role, self.head)


class Registry:
    """Sessions and their models; used on the event loop only."""

    def __init__(self) -> None:
        self.sessions: dict[str, float] = {}
        self.models: dict[str, Model] = {}

    @staticmethod
    def fresh(kind: str) -> str:
        return f"{kind}_{secrets.token_hex(4)}"

    def open_session(self) -> str:
        name = self.fresh("session")
        self.sessions[name] = time.monotonic()
        return name

    def beat(self, session: str) -> bool:
        """Notes a sign of life; false for an unknown session."""
        if session not in self.sessions:
            return False
        self.sessions[session] = time.monotonic()
        return True

    def expire(self, silence: float) -> list[str]:
        """Ends sessions that were silent for that many seconds; returns the models to be unloaded."""
        now = time.monotonic()
        gone = {name for name, seen in self.sessions.items() if now - seen > silence}
        for name in gone:
            del self.sessions[name]
        return [name for name, model in self.models.items() if model.session in gone and not model.unloading]

    def numbered(self, model_id: str, seq_id: int | None, body: BaseModel, submit: Callable[[], str]) -> str:
        """Submits a request once per number; the same number with the same body is the same request.

        Raises:
            Conflict: the number was used with another body.
        """
        model = self.models.get(model_id)
        if model is None:
            return submit()
        model.touched = True
        if seq_id is None:
            return submit()
        digest = hashlib.sha256(type(body).__name__.encode() + body.model_dump_json().encode()).digest()
        if seq_id in model.submitted:
            seen, future = model.submitted[seq_id]
            if seen != digest:
                raise Conflict(f"seq_id {seq_id} of {model_id} was used for another request")
            return future
        future = submit()
        model.submitted[seq_id] = (digest, future)
        return future

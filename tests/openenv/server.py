"""Tasks of reasoning_gym behind the real OpenEnv server. Run with uvicorn."""

from __future__ import annotations

import os
from typing import Any

import reasoning_gym
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

FAMILY = os.environ.get("FAMILY", "basic_arithmetic")
TASKS = 64


class Answer(Action):
    answer: str


class Question(Observation):
    text: str = ""


class Reasoning(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self.tasks = reasoning_gym.create_dataset(FAMILY, size=TASKS, seed=1)
        self.task: dict[str, Any] = {}

    def reset(self, seed: int | None = None, **_: Any) -> Question:
        self.task = self.tasks[(seed or 0) % TASKS]
        return Question(text=self.task["question"])

    def step(self, action: Answer, **_: Any) -> Question:
        score = self.tasks.score_answer(action.answer, self.task)
        return Question(text="right" if score == 1 else "wrong", reward=float(score), done=True)

    @property
    def state(self) -> State:
        return State()


app = create_app(Reasoning, Answer, Question, env_name="reasoning", max_concurrent_envs=4)

"""What is known of an environment before an episode: its name, tools, tasks and schemas."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .actions import Action, read_action, schemas
from .environment import Environment
from .tasks import Tasks
from .tools import Tool, tools_of


@dataclass(frozen=True)
class Definition:
    """A class of environments, or a function that makes them."""

    make: Callable[[], Any]
    title: str
    description: str
    tools: Mapping[str, Tool]
    takes_text: bool
    tasks: Tasks
    examples: tuple[str, ...]

    @classmethod
    def of(cls, make: Callable[[], Any]) -> Definition:
        """Reads a class, or the instance that a function makes. Raises `TypeError` with a remedy."""
        source = make if isinstance(make, type) else make()
        kind = source if isinstance(source, type) else type(source)
        title = kind.__name__
        if getattr(kind, "reset", Environment.reset) is Environment.reset:
            raise TypeError(f"{title} has no reset(seed, task). Write one that starts an episode.")
        takes_text = getattr(kind, "step", Environment.step) is not Environment.step
        tools = tools_of(kind)
        if not takes_text and not tools:
            raise TypeError(f"{title} has no step(action) and no @env.tool. Write one of them.")
        return cls(
            make,
            title,
            inspect.cleandoc(kind.__doc__ or f"{title} environment"),
            tools,
            takes_text,
            Tasks.declared(getattr(source, "tasks", {})),
            tuple(getattr(source, "examples", ())),
        )

    @property
    def name(self) -> str:
        """The name in the Task API: `HelpDesk` is `help_desk`."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.title).lower()

    def metadata(self) -> dict[str, Any]:
        """The reply of `GET /metadata`."""
        return {
            "name": self.title,
            "description": self.description,
            "readme_content": None,
            "version": "1.0.0",
            "author": None,
            "documentation_url": None,
        }

    def schemas(self) -> dict[str, Any]:
        """The reply of `GET /schema`."""
        return schemas(tools=bool(self.tools), text=self.takes_text, examples=self.examples)

    def read_action(self, data: Mapping[str, Any]) -> Action:
        """The action that a client sent. Raises `Invalid`."""
        return read_action(data, tools=bool(self.tools), text=self.takes_text)

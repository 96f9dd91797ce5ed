"""Tools: the JSON schema of a method, its arguments, and the result in OpenEnv's MCP form."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from .environment import is_tool

RESERVED = frozenset({"reset", "step", "state", "close"})
"""Names that OpenEnv keeps for itself."""


PLAIN = {
    "missing_keyword_only_argument": "This argument is missing",
    "unexpected_keyword_argument": "There is no such argument",
}
"""Pydantic's errors that speak of Python, in words for an agent."""


class WrongArguments(ValueError):
    """Arguments that do not fit a tool's signature."""


class _Untitled(GenerateJsonSchema):
    """Without a title for each field: the model reads the schema, and a title repeats the name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@dataclass(frozen=True)
class Tool:
    """A method that the agent may call."""

    name: str
    description: str
    input_schema: dict[str, Any]
    _arguments: TypeAdapter[Any]

    def described(self) -> dict[str, Any]:
        """The tool as `list_tools` shows it."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
        }

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with the types of the signature.

        Raises `WrongArguments`, in words for the agent.
        """
        try:
            return cast("dict[str, Any]", self._arguments.validate_python(dict(arguments)))
        except ValidationError as error:
            wrong = [
                f"{'.'.join(map(str, e['loc']))}: {PLAIN.get(e['type'], e['msg'])}"
                for e in error.errors()
            ]
            raise WrongArguments("; ".join(wrong)) from error


def tools_of(kind: type) -> dict[str, Tool]:
    """The tools of a class, by name, in the order of their definition."""
    names = dict.fromkeys(name for base in reversed(kind.__mro__) for name in vars(base))
    marked = {name: getattr(kind, name) for name in names if is_tool(getattr(kind, name, None))}
    for name in marked:
        if name in RESERVED:
            raise TypeError(f"tool {name}: OpenEnv reserves this name. Rename the method.")
    return {name: _tool(name, method) for name, method in marked.items()}


def result(value: Any, text: str) -> dict[str, Any]:
    """A tool's result in the form that OpenEnv gives to the results of MCP tools."""
    structured = value if isinstance(value, dict) else {"result": value}
    return {
        "content": [{"type": "text", "text": text, "annotations": None, "meta": None}],
        "structured_content": structured,
        "meta": None,
        "data": value,
        "is_error": False,
    }


def written(value: Any) -> str:
    """A tool's result as the model reads it: text stays as it is, all else is JSON."""
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
    )


def _tool(name: str, method: Callable[..., Any]) -> Tool:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(_collector(method))
        schema = adapter.json_schema(schema_generator=_Untitled)
    except (NameError, PydanticUserError) as error:
        raise TypeError(
            f"tool {name}: its signature has no JSON schema ({error}). "
            "Annotate the parameters with types such as str, int, list[str] or Literal."
        ) from error
    return Tool(name, inspect.getdoc(method) or "", schema, adapter)


def _collector(method: Callable[..., Any]) -> Any:
    """A function with the method's signature that returns its arguments.

    Pydantic would call the method itself. Then an error inside the method could not be told from
    wrong arguments.
    """

    def collect(**arguments: Any) -> dict[str, Any]:
        return arguments

    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[1:]
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in parameters
        if parameter.kind not in variadic
    ]
    if len(named) < len(parameters):
        raise PydanticUserError("*args and **kwargs have no schema", code=None)
    collect.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    collect.__annotations__ = get_type_hints(method, include_extras=True)
    return collect

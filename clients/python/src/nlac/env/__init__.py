"""Your own environment: write a class, serve it over OpenEnv's protocol.

    from nlac import env

    class Desk(env.Environment):
        def reset(self, seed, task): ...
        def step(self, action): ...

    env.serve(Desk, port=8100)

To write a class needs no other package; `serve` and `check` need `pip install 'nlac[env]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .environment import PENDING, Environment, Observation, Step, tool

if TYPE_CHECKING:
    from .checking.checks import Finding, check
    from .serving.server import serve

__all__ = ["PENDING", "Environment", "Finding", "Observation", "Step", "check", "serve", "tool"]

_LATER = {"Finding": "checking.checks", "check": "checking.checks", "serve": "serving.server"}


def __getattr__(name: str) -> Any:
    """Imports what needs the extra `env` when it is first used."""
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"env.{name} needs {error.name}: pip install 'nlac[env]'", name=error.name
        ) from error

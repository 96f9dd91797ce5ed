"""Environments by name: `module:Class`, or `path/to/file.py:Class`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast


class NotFound(Exception):
    """There is no such environment."""


def load(name: str) -> Callable[[], Any]:
    """Imports a class, or a function that makes environments."""
    module_name, colon, attribute = name.rpartition(":")
    if not colon:
        raise NotFound(f"{name} names no class. Write module:Class or file.py:Class.")
    module = _from_file(module_name) if module_name.endswith(".py") else _imported(module_name)
    found = getattr(module, attribute, None)
    if not callable(found):
        raise NotFound(f"{module_name} has no class {attribute}.")
    return cast("Callable[[], Any]", found)


def _imported(name: str) -> Any:
    # A console script does not look for modules in the working directory.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise NotFound(f"{error}. Is it installed, or in the working directory?") from error


def _from_file(name: str) -> Any:
    path = Path(name)
    if not path.is_file():
        raise NotFound(f"there is no file {name}.")
    # As for a script, modules beside the file can be imported.
    sys.path.insert(0, str(path.resolve().parent))
    name = f"environment_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NotFound(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module by its name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

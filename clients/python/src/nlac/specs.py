"""A job's spec or a dataset's lines as a request's body."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from .errors import NlacError
from .rest.models import ImportEpisodesFormat, JobSpec
from .rest.types import File

Spec = Mapping[str, Any] | str | os.PathLike[str]
"""A spec, or the path of a YAML or JSON file that holds one."""

Episodes = Iterable[Mapping[str, Any]] | str | os.PathLike[str]
"""Logged episodes, or the path of a file: one episode per line, or a log in its own format."""


def spec_body(spec: Spec) -> JobSpec | File:
    """A dictionary is sent as JSON; a file as it is, for the server reads YAML, and JSON is YAML."""
    if isinstance(spec, Mapping):
        return JobSpec.from_dict(spec)
    return _bytes(_content(spec))


def spec_file(spec: Spec) -> File:
    """The same where only a file will do."""
    if isinstance(spec, Mapping):
        return _bytes(json.dumps(dict(spec)).encode())
    return _bytes(_content(spec))


def episodes_body(episodes: Episodes) -> File:
    """One JSON object per line."""
    if isinstance(episodes, str | os.PathLike):
        return _bytes(_content(episodes))
    return _bytes("".join(json.dumps(dict(episode)) + "\n" for episode in episodes).encode())


def log_format(name: str) -> ImportEpisodesFormat:
    """Any name: the server says which ones it knows."""
    return cast(ImportEpisodesFormat, name)


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NlacError(
            f"{os.fspath(path)} cannot be read: {error.strerror}",
            remedy="give the path of a file that exists, or the content itself",
        ) from error


def _bytes(content: bytes) -> File:
    # Bytes rather than a stream: both of httpx's clients take them.
    return File(payload=cast(BinaryIO, content))

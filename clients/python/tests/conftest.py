"""One server for all tests, and a job that is done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from live import Server

from nlac import Job, Nlac

HELP_DESK = Path(__file__).parents[3] / "examples" / "help-desk.yaml"
# Waits of tests: long enough for a machine that is busy.
LONG = 300.0


def tiny(iterations: int = 3, **changes: Any) -> dict[str, Any]:
    """The help desk, as small as it still collects, criticises, refines and learns."""
    spec: dict[str, Any] = yaml.safe_load(HELP_DESK.read_text())
    spec["name"] = "tiny"
    spec["algorithm"]["warmup_iterations"] = 1
    spec["algorithm"]["replay"]["batch"] = 24
    spec["rollout"]["episodes"] = 8
    spec["optimizer"]["epochs"] = 1
    spec["evaluation"] = {"every": 1, "episodes": 4, "interim_episodes": 4, "also": []}
    spec["health"] = {"states": 0}
    spec["budget"] = {"iterations": iterations}
    return {**spec, **changes}


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is set outside must not reach the tests."""
    monkeypatch.delenv("NLAC_SERVER", raising=False)
    monkeypatch.delenv("NLAC_API_KEY", raising=False)


@pytest.fixture(scope="session")
def live() -> Iterator[Server]:
    binary = os.environ.get("NLAC_BIN", "")
    if not os.access(binary, os.X_OK):
        pytest.skip("NLAC_BIN does not name a server: build one with `cargo build --release`")
    server = Server(binary)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def server(live: Server) -> Iterator[Nlac]:
    with Nlac(live.url) as client:
        yield client


@pytest.fixture(scope="session")
def done_id(live: Server) -> str:
    """A job that ran to its end, for tests that only read."""
    with Nlac(live.url) as client:
        return str(client.submit(tiny(), "done").wait(LONG, poll=0.2).id)


@pytest.fixture
def done(server: Nlac, done_id: str) -> Job:
    return server.job(done_id)

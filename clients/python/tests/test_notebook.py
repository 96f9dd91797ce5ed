"""The notebooks run from top to bottom against a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live import Server

NOTEBOOKS = Path(__file__).parents[1] / "notebook"
# Smaller than what the notebooks show; NLAC_TEST_NOTEBOOK=whole runs them as they stand.
LOOK = "iterations, episodes, batch = 3, 8, 24"
AGENT = "iterations, steps, batch, players, cases = 4, 24, 24, 4, 4"


@pytest.fixture
def tool_desk() -> Iterator[Server]:
    """A server whose base model calls tools."""
    binary = os.environ.get("NLAC_BIN", "")
    if not os.access(binary, os.X_OK):
        pytest.skip("NLAC_BIN does not name a server: build one with `cargo build --release`")
    server = Server(binary, "--base-model", "tool-desk-base")
    try:
        server.start()
        yield server
    finally:
        server.remove()


def run(name: str, small: str, url: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a notebook with other parameters."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.setenv("NLAC_SERVER", url)
    monkeypatch.setenv("IPYTHONDIR", str(place))
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    parameters = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    assert len(parameters) == 1
    if os.environ.get("NLAC_TEST_NOTEBOOK") != "whole":
        parameters[0].source = small
    nbclient.NotebookClient(
        notebook, timeout=1200, resources={"metadata": {"path": str(place)}}
    ).execute()
    return notebook


def outputs(notebook: Any) -> tuple[str, list[dict[str, str]]]:
    """What the cells print, and what they show."""
    found = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    printed = "".join(o["text"] for o in found if o["output_type"] == "stream")
    return printed, [output["data"] for output in found if "data" in output]


def test_training_and_looking(
    live: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = run("train_and_look.ipynb", LOOK, live.url, tmp_path, monkeypatch)
    printed, shown = outputs(notebook)
    assert "held-out episodes solved" in printed
    assert sum("image/png" in data for data in shown) == 1, "the learning curve"
    tables = [data["text/html"] for data in shown if "<table" in data.get("text/html", "")]
    assert "critique" in tables[0]
    assert "refined action" in tables[0]
    assert "<td>" in tables[0], "with rows"


def test_training_an_agent_of_a_framework(
    tool_desk: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("agents", reason="openai-agents is not installed")
    notebook = run("train_your_agent.ipynb", AGENT, tool_desk.url, tmp_path, monkeypatch)
    printed, shown = outputs(notebook)
    assert "version 0, held-out cases: " in printed
    assert "iteration 4" in printed
    # A later version than the untrained one serves the same customers.
    assert printed.count(", held-out cases: ") == 2
    assert printed.count("version 0, held-out cases: ") == 1
    assert sum("image/png" in data for data in shown) == 1, "success over iterations"
    tables = [data["text/html"] for data in shown if "<table" in data.get("text/html", "")]
    assert "critique" in tables[0]
    assert "<td>" in tables[0], "with rows"
    assert "user refund order 31" in printed
    assert printed.rstrip().endswith("solved")

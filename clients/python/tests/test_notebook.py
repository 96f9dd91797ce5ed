"""The notebook runs from top to bottom against a server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from live import Server

NOTEBOOK = Path(__file__).parents[1] / "notebook" / "train_and_look.ipynb"
# Smaller than what the notebook shows; NLAC_TEST_NOTEBOOK=whole runs it as it stands.
SMALL = "iterations, episodes, batch = 3, 8, 24"


def test_the_notebook(live: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.setenv("NLAC_SERVER", live.url)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    parameters = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    assert len(parameters) == 1
    if os.environ.get("NLAC_TEST_NOTEBOOK") != "whole":
        parameters[0].source = SMALL
    nbclient.NotebookClient(
        notebook, timeout=1200, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [output["data"] for output in outputs if "data" in output]
    printed = "".join(o["text"] for o in outputs if o["output_type"] == "stream")
    assert "held-out episodes solved" in printed
    assert sum("image/png" in data for data in shown) == 1, "the learning curve"
    tables = [data["text/html"] for data in shown if "<table" in data.get("text/html", "")]
    assert "critique" in tables[0]
    assert "refined action" in tables[0]
    assert "<td>" in tables[0], "with rows"

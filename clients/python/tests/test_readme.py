"""Every Python snippet of the README runs. scripts/check-release installs the wheel."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import tiny
from live import Server

from nlac import Job

README = Path(__file__).parents[1] / "README.md"
ROOT = README.parents[2]


def snippets() -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README.read_text(), re.M | re.S)
    assert {kind for kind, _ in found} == {"python", "text"}, "Python runs here, text does not"
    return [text for kind, text in found if kind == "python"]


def test_python(
    live: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.setenv("NLAC_SERVER", live.url)
    monkeypatch.chdir(tmp_path)
    Path("help-desk.yaml").write_text(yaml.safe_dump(tiny()))
    names: dict[str, Any] = {}
    for snippet in snippets():
        exec(compile(snippet, str(README), "exec"), names)
    printed = capsys.readouterr().out
    assert "job tiny was submitted" in printed
    assert re.search(r"success: \d+\.\d% before, \d+\.\d% after", printed)
    assert re.search(r"  refinement  \w+", printed)
    assert "1 stored; []" in printed
    assert "422 algorithm" in printed
    assert "local EngineCapabilities" in printed
    assert [iteration for iteration, _ in names["curve"]] == [0, 1, 2, 3]
    assert sorted(os.listdir("adapter")) == ["adapter_config.json", "adapter_model.safetensors"]
    assert isinstance(names["other"], Job)
    assert names["other"].status == "cancelled"

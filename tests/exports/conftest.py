"""A server, a small job that is done, and all that it exports."""

import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from live import Server

from nlac import Nlac

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "models" / "help-desk-base"
FORMS = ("transitions", "sft", "preferences")
collect_ignore = [] if find_spec("torch") else ["test_adapter.py", "test_trl.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tells what was left out, and why, to whoever ran the tests: a part is not all."""
    skipped = terminalreporter.stats.get("skipped", [])
    left_out = {f"{report.nodeid}: {report.longrepr[2]}" for report in skipped}
    if collect_ignore:
        why = "there is no PyTorch for CPUs; scripts/install-real-stack brings one"
        left_out.add(f"{' and '.join(collect_ignore)}: {why}")
    Path(os.environ["NLAC_LEFT_OUT"]).write_text("\n".join(sorted(left_out)))


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with each form as lines of JSON and as Parquet, and with an adapter."""
    binary = os.environ["NLAC_BIN"]
    spec = yaml.safe_load((ROOT / "tests" / "contract" / "job.yaml").read_text())
    into = tmp_path_factory.mktemp("exported")
    server = Server(binary)
    try:
        server.start()
        with Nlac(server.url) as client:
            job = client.submit(spec).wait(300, poll=0.2)
            for form in FORMS:
                for ending in ("jsonl", "parquet"):
                    subprocess.run(
                        [binary, "export", str(job.id), "--server", server.url, "--form", form]
                        + ["--out", str(into / f"{form}.{ending}")],
                        check=True,
                    )
            trained = next(c for c in job.checkpoints() if c.role == "online")
            assert trained.optimizer_steps > 0
            client.download_adapter(trained.id, into / "adapter")
        yield into
    finally:
        server.remove()

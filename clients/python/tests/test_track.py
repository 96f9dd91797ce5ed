"""A job's curves in trackers, written by their own clients and read back by their own readers."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import LONG, tiny
from live import Server

from nlac import Job, JobFailed, Nlac
from nlac.track import Point, follow, points
from nlac.track.__main__ import main


class Memory:
    """A tracker that only remembers."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.ended: str | None = None

    def write(self, point: Point) -> None:
        self.points.append(point)

    def keep(self, adapter: Path, checkpoint: Any) -> None:
        raise AssertionError("nobody asked for that")

    def finish(self, job: Job) -> None:
        self.ended = job.status

    def leave(self) -> None:
        self.ended = "left"


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live: Server) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NLAC_SERVER", live.url)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for kind in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"WANDB_{kind}_DIR", str(tmp_path / kind.lower()))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")


@pytest.fixture
def paused(server: Nlac) -> Iterator[Job]:
    """A job with some iterations behind it and some before it."""
    yield from _paused(server, "local")


def _paused(server: Nlac, trainer: str) -> Iterator[Job]:
    spec = tiny(4)
    job = server.submit({**spec, "model": {**spec["model"], "trainer": trainer}})
    while len(list(points(job))) < 2:
        job.refresh()
        assert not job.over
        time.sleep(0.1)
    job.pause()
    yield job
    if not job.refresh().over:
        job.cancel()


class Locked(BaseHTTPRequestHandler):
    """A trainer that lets nobody in."""

    def do_POST(self) -> None:
        self.send_error(401)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def failed(server: Nlac) -> Iterator[Job]:
    """A job that was locked out of its trainer after some iterations."""

    def register(url: str) -> None:
        place = f"{server.url}/v1/trainers/locking"
        body = {"kind": "tinker", "url": url, "base_model": "help-desk-base"}
        httpx.put(place, json=body).raise_for_status()

    trainers = httpx.get(f"{server.url}/v1/trainers").json()["data"]
    register(next(trainer["url"] for trainer in trainers if trainer["name"] == "local"))
    locked = ThreadingHTTPServer(("127.0.0.1", 0), Locked)
    threading.Thread(target=locked.serve_forever, daemon=True).start()
    for job in _paused(server, "locking"):
        register(f"http://127.0.0.1:{locked.server_port}")
        job.resume()
        with pytest.raises(JobFailed, match="401"):
            job.wait(LONG, poll=0.2)
        yield job
    locked.shutdown()
    locked.server_close()


def test_points_are_complete_in_order_and_each_comes_once(paused: Job) -> None:
    memory = Memory()
    follower = threading.Thread(target=follow, args=(paused, [memory]), kwargs={"poll": 0.1})
    follower.start()
    time.sleep(1)
    seen = len(memory.points)
    assert 2 <= seen < 5
    paused.resume()
    follower.join(LONG)
    assert memory.ended == "succeeded"
    assert [point.step for point in memory.points] == [0, 1, 2, 3, 4]
    assert memory.points == list(points(paused)), "what was written early was complete"
    assert {"eval/success", "critic/loss", "time/iteration"} <= memory.points[2].values.keys()
    at = [point.at for point in memory.points]
    assert at == sorted(at)


def test_other_temperatures_are_series_of_their_own(server: Nlac) -> None:
    evaluation = {"every": 1, "episodes": 4, "interim_episodes": 4, "temperature": 0.5}
    job = server.submit(tiny(1, evaluation={**evaluation, "also": [0, 1]})).wait(LONG, poll=0.2)
    last = list(points(job))[-1].values
    assert {"eval/success", "eval/success_at_0", "eval/success_at_1"} <= last.keys()


def test_what_a_cancelled_job_left_is_written(paused: Job) -> None:
    memory = Memory()
    follow(paused, [memory], until_over=False)
    assert memory.ended == "left"
    before = len(memory.points)
    paused.cancel()
    follow(paused, [memory], poll=0.1)
    assert memory.ended == "cancelled"
    assert len(memory.points) >= 2 * before


def test_tensorboard(paused: Job) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def read() -> EventAccumulator:
        (directory,) = Path("runs").iterdir()
        events = EventAccumulator(str(directory), size_guidance={"scalars": 0})
        return events.Reload()

    def steps(tag: str) -> list[int]:
        return [event.step for event in read().Scalars(tag)]

    assert main([str(paused.id), "--to", "tensorboard", "--once"]) == 0
    written = steps("time/iteration")
    assert written == list(range(len(written)))
    assert len(written) in (2, 3, 4)
    paused.resume()
    assert main([str(paused.id), "--to", "tensorboard", "--poll", "0.2"]) == 0
    assert main([str(paused.id), "--to", "tensorboard"]) == 0, "once more, to no effect"
    events = read()
    for tag in events.Tags()["scalars"]:
        of_tag = [event.step for event in events.Scalars(tag)]
        assert of_tag == sorted(set(of_tag)), tag
    assert steps("time/iteration") == [0, 1, 2, 3, 4]
    expected = {point.step: point for point in points(paused.refresh())}
    for event in events.Scalars("eval/success"):
        point = expected[event.step]
        assert event.value == pytest.approx(point.values["eval/success"])
        assert event.wall_time == pytest.approx(point.at.timestamp())
    (text,) = events.Tensors("job")
    assert f"/jobs/{paused.id}" in str(text.tensor_proto)
    (status,) = events.Tensors("status")
    assert "succeeded" in str(status.tensor_proto)


def test_mlflow(paused: Job) -> None:
    mlflow = pytest.importorskip("mlflow")
    track = [str(paused.id), "--to", "mlflow", "--project", "desk", "--adapter", "--poll", "0.2"]
    assert main([*track, "--once"]) == 0
    client = mlflow.MlflowClient()
    place = client.get_experiment_by_name("desk").experiment_id
    assert [run.info.status for run in client.search_runs([place])] == ["RUNNING"]
    paused.resume()
    assert main(track) == 0
    (run,) = client.search_runs([place])
    assert (run.info.status, run.info.run_name) == ("FINISHED", "tiny")
    assert run.data.params["budget.iterations"] == "4"
    assert run.data.params["algorithm.replay.batch"] == "24"
    assert f"/jobs/{paused.id}" in run.data.tags["mlflow.note.content"]
    history = client.get_metric_history(run.info.run_id, "eval/success")
    expected = [(p.step, p.values["eval/success"]) for p in points(paused.refresh())]
    assert [(metric.step, metric.value) for metric in history] == expected
    files = {file.path for file in client.list_artifacts(run.info.run_id, "adapter")}
    assert files == {"adapter/adapter_config.json", "adapter/adapter_model.safetensors"}
    newest = next(c for c in paused.checkpoints() if c.role == "online")
    assert run.data.tags["nlac.adapter"] == newest.name
    spec = client.download_artifacts(run.info.run_id, "spec.json", ".")
    assert json.loads(Path(spec).read_text()) == paused.spec


def test_a_cancelled_job_is_no_success(paused: Job) -> None:
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("wandb")
    paused.cancel()
    assert process(str(paused.id), "--to", "mlflow", "--to", "wandb") == 1
    client = mlflow.MlflowClient()
    place = client.get_experiment_by_name("nlac").experiment_id
    assert [run.info.status for run in client.search_runs([place])] == ["KILLED"]
    (path,) = Path("wandb").glob("offline-run-*/run-*.wandb")
    assert [r.exit.exit_code for r in records(path) if r.WhichOneof("record_type") == "exit"] == [1]


def test_a_failed_job_is_told_with_its_error(failed: Job) -> None:
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("wandb")
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    every = ["--to", "mlflow", "--to", "wandb", "--to", "tensorboard"]
    assert process(str(failed.id), *every) == 1
    # With what it came to before, and what the iteration that failed had measured.
    expected = {p.step: p.values["time/collect"] for p in points(failed) if p.step}
    assert 1 in expected

    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("nlac").experiment_id])
    assert (run.info.status, run.data.tags["nlac.error"]) == ("FAILED", failed.error)
    history = client.get_metric_history(run.info.run_id, "time/collect")
    assert {metric.step: metric.value for metric in history} == expected

    (path,) = Path("wandb").glob(f"offline-run-*-{failed.id}/run-*.wandb")
    told = list(records(path))
    assert [r.exit.exit_code for r in told if r.WhichOneof("record_type") == "exit"] == [1]
    summaries = [r.summary.update for r in told if r.WhichOneof("record_type") == "summary"]
    summary = {item.key: json.loads(item.value_json) for update in summaries for item in update}
    assert (summary["status"], summary["error"]) == ("failed", failed.error)

    (directory,) = Path("runs").iterdir()
    events = EventAccumulator(str(directory), size_guidance={"scalars": 0}).Reload()
    assert {e.step: e.value for e in events.Scalars("time/collect")} == pytest.approx(expected)
    (status,) = events.Tensors("status")
    assert status.tensor_proto.string_val == [(failed.error or "").encode()]


def test_weights_and_biases(paused: Job) -> None:
    pytest.importorskip("wandb")
    track = [str(paused.id), "--to", "wandb", "--poll", "0.2"]
    assert process(*track, "--once") == 0
    paused.resume()
    assert process(*track, "--adapter") == 0
    history: dict[int, dict[str, float]] = {}
    exits, configs, artifacts = [], [], []
    for path in sorted(Path("wandb").glob(f"offline-run-*-{paused.id}/run-*.wandb")):
        for record in records(path):
            kind = record.WhichOneof("record_type")
            if kind == "history":
                row = {
                    i.key or i.nested_key[0]: json.loads(i.value_json) for i in record.history.item
                }
                assert row["_step"] not in history, "no point comes twice"
                history[row["_step"]] = row
            elif kind == "exit":
                exits.append(record.exit.exit_code)
            elif kind == "run":
                assert record.run.run_id == str(paused.id)
                assert f"/jobs/{paused.id}" in record.run.notes
                configs.append({u.key: json.loads(u.value_json) for u in record.run.config.update})
            elif kind == "artifact" and record.artifact.type == "model":
                artifacts.append([entry.path for entry in record.artifact.manifest.contents])
    expected = {p.step: p.values for p in points(paused.refresh())}
    assert sorted(history) == [0, 1, 2, 3, 4]
    for step, values in expected.items():
        assert {name: history[step][name] for name in values} == pytest.approx(values)
    assert exits == [255, 0]
    assert configs[0]["budget"]["iterations"] == 4
    assert artifacts == [["adapter_config.json", "adapter_model.safetensors"]]


def process(*arguments: str) -> int:
    """The command as people run it: W&B's files are whole once its process is over."""
    return subprocess.run([sys.executable, "-m", "nlac.track", *arguments], check=False).returncode


def records(path: Path) -> Iterator[Any]:
    """What an offline run's file holds: W&B's messages, in the framing of LevelDB's logs."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at, whole = path.read_bytes(), 7, b""
    assert content.startswith(b":W&B")
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
        length, kind = struct.unpack("<HB", content[at + 4 : at + 7])
        whole += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield Record.FromString(whole)
            whole = b""


def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str], done_id: str) -> None:
    pytest.importorskip("tensorboard")
    assert main(["4d1b7f0e-0000-7000-8000-000000000000", "--to", "tensorboard"]) == 1
    assert "there is no job" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([done_id, "--to", "tensorboard", "--adapter"])
    assert "TensorBoard keeps no files" in capsys.readouterr().err

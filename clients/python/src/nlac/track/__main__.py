"""`python -m nlac.track JOB --to wandb|mlflow|tensorboard`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial

from ..client import Nlac
from ..errors import NlacError
from ..job import Job
from ..rest.models import CheckpointView
from .following import Tracker, follow

TRACKERS = ("wandb", "mlflow", "tensorboard")


def main(arguments: Sequence[str] | None = None) -> int:
    """Follows a job; 0 once it has succeeded, 1 if it has not or cannot be followed, 130 if interrupted."""
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.adapter and "tensorboard" in args.to:
        parser.error("TensorBoard keeps no files: leave out --adapter, or send it elsewhere")
    trackers: list[Tracker] = []
    try:
        with Nlac(args.server) as server:
            job = server.job(args.job)
            for kind in args.to:
                trackers.append(_tracker(kind, job, f"{server.url}/jobs/{job.id}", args))
            keep = partial(_keep, server, job, trackers) if args.adapter else None
            follow(job, trackers, poll=args.poll, until_over=not args.once, at_end=keep)
    except NlacError as error:
        return _left(trackers, str(error), 1)
    except KeyboardInterrupt:
        return _left(trackers, "interrupted; run the same command again to continue", 130)
    return 0 if not job.over or job.status == "succeeded" else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nlac.track",
        description="Follows a job and writes its curves to a tracker, a point per iteration. Started again, "
        "it goes on where it was. NLAC_API_KEY holds the key, where the service asks for one.",
    )
    parser.add_argument("job", metavar="JOB", help="the job's id")
    parser.add_argument(
        "--to",
        action="append",
        required=True,
        choices=TRACKERS,
        help="where to; several times for several. Each is configured by its own environment variables",
    )
    parser.add_argument("--server", metavar="URL", help="the service (default: NLAC_SERVER)")
    parser.add_argument(
        "--project",
        metavar="NAME",
        help="W&B's project or MLflow's experiment (default: theirs by WANDB_PROJECT or "
        "MLFLOW_EXPERIMENT_NAME, else nlac)",
    )
    parser.add_argument(
        "--logdir",
        default="runs",
        metavar="DIR",
        help="TensorBoard's directory (default: %(default)s)",
    )
    parser.add_argument(
        "--adapter",
        action="store_true",
        help="keep the adapter that came of it as an artifact: the promoted one, else the newest",
    )
    parser.add_argument(
        "--once", action="store_true", help="write what there is and end, instead of waiting"
    )
    parser.add_argument(
        "--poll",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="pause between two looks (default: %(default)g)",
    )
    return parser


def _tracker(kind: str, job: Job, url: str, args: argparse.Namespace) -> Tracker:
    try:
        if kind == "wandb":
            from .to_wandb import WeightsAndBiases

            return WeightsAndBiases(job, url, args.project)
        if kind == "mlflow":
            from .to_mlflow import MLflow

            return MLflow(job, url, args.project)
        from .to_tensorboard import TensorBoard

        return TensorBoard(job, url, args.logdir)
    except ImportError as error:
        remedy = f"pip install 'nlac[{kind}]'"
        raise NlacError(f"{kind} cannot be imported: {error}", remedy=remedy) from error
    except Exception as error:
        # Each client has errors of its own, and they say what to do.
        raise NlacError(f"{kind} cannot be written to: {error}") from error


def _keep(server: Nlac, job: Job, trackers: Sequence[Tracker]) -> None:
    """Has the adapter kept that came of a job, if one did."""
    if checkpoint := _result(job):
        with tempfile.TemporaryDirectory() as place:
            files = server.download_adapter(checkpoint.id, place)
            for tracker in trackers:
                tracker.keep(files, checkpoint)


def _result(job: Job) -> CheckpointView | None:
    """The checkpoint to use: the promoted one, else the newest that was published."""
    usable = [c for c in job.checkpoints() if c.role == "online" and c.published_at]
    promoted = [c for c in usable if c.promoted]
    return next(iter(promoted + usable), None)


def _left(trackers: Sequence[Tracker], why: str, code: int) -> int:
    for tracker in trackers:
        tracker.leave()
    print(f"nlac.track: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

"""`python -m nlac.env serve module:Class` and `python -m nlac.env check module:Class`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import check, serve
from .definition import Definition
from .loading import NotFound, load


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 1 if the check found an error; 2 if there is no such environment."""
    args = _parser().parse_args(arguments)
    try:
        environment = _environment(args.environment)
    except (NotFound, TypeError) as error:
        print(error, file=sys.stderr)
        return 2
    if args.command == "check":
        return _check(args, environment)
    if isinstance(environment, str):
        print(f"{environment} is served already.", file=sys.stderr)
        return 2
    serve(environment, host=args.host, port=args.port, sessions=args.sessions)
    return 0


def _environment(name: str) -> str | Callable[[], Any]:
    """A URL, or a class that is an environment."""
    if name.startswith(("http://", "https://")):
        return name
    environment = load(name)
    Definition.of(environment)
    return environment


def _check(args: argparse.Namespace, environment: str | Callable[[], Any]) -> int:
    try:
        findings = check(
            environment, args.episodes, actions=args.action or (), api_key=args.api_key
        )
    except ConnectionError as error:
        print(error, file=sys.stderr)
        return 2
    for finding in findings:
        print(finding)
    if not findings:
        print(f"{args.environment}: no problem found in {args.episodes} episodes")
    return int(any(finding.severity == "error" for finding in findings))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nlac.env", description="Serves and checks environments of text."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    serving = commands.add_parser("serve", help="serve an environment over OpenEnv")
    serving.add_argument("environment", metavar="MODULE:CLASS", help="or FILE.py:CLASS")
    serving.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
    serving.add_argument("--port", type=int, default=8100, help="default: %(default)s")
    serving.add_argument(
        "--sessions", type=int, default=16, help="sessions at once (default: %(default)s)"
    )
    serving.epilog = "NLAC_ENV_API_KEY is a key that clients must send."
    checking = commands.add_parser("check", help="play an environment and report problems")
    checking.add_argument("environment", metavar="MODULE:CLASS|URL", help="or FILE.py:CLASS")
    checking.add_argument("--episodes", type=int, default=20, help="default: %(default)s")
    checking.add_argument(
        "--action", action="append", help="a text to play; several times for several"
    )
    checking.add_argument("--api-key", help="the key of a server that asks for one")
    return parser


if __name__ == "__main__":
    sys.exit(main())

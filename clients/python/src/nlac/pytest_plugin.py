"""A plugin of pytest: each test plays a case with your agent, and the session has a success rate."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from .client import Nlac
from .errors import NlacError
from .external import Evaluation, EvaluationEpisode

_EVALUATION = pytest.StashKey[Evaluation]()
_SERVER = pytest.StashKey[Nlac]()
_EPISODE = pytest.StashKey[EvaluationEpisode]()
_NOTES = pytest.StashKey[list[str]]()
_MARK = "nlac"
_CUT = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nlac", "evaluation of an agent by nlac")
    group.addoption("--nlac-job", metavar="ID", help="job whose checkpoint answers the agent")
    group.addoption(
        "--nlac-checkpoint",
        metavar="CHECKPOINT",
        default="newest",
        help="newest (default), promoted, a version number or an id",
    )
    group.addoption("--nlac-server", metavar="URL", help="the server; default: NLAC_SERVER")
    group.addoption(
        "--nlac-at-least", metavar="RATE", type=float, help="fail below this success rate, 0 to 1"
    )
    group.addoption(
        "--nlac-post",
        action="store_true",
        help="post the result to the job when all tests are done",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{_MARK}(task, **settings): task and settings of the test's nlac_episode"
    )


@pytest.fixture(scope="session")
def nlac_unsolved() -> tuple[type[BaseException], ...]:
    """Types of errors that count as not solved. Override this fixture to add those of your framework."""
    return ()


@pytest.fixture(scope="session")
def nlac_evaluation(
    request: pytest.FixtureRequest, nlac_unsolved: tuple[type[BaseException], ...]
) -> Evaluation:
    """The evaluation of the session. Without `--nlac-job` its tests are skipped."""
    config = request.config
    job = config.getoption("nlac_job")
    if not job:
        pytest.skip("--nlac-job names no job")
    if hasattr(config, "workerinput"):
        pytest.fail("nlac counts the cases of one process: run pytest without -n", pytrace=False)
    server = Nlac(config.getoption("nlac_server"))
    config.stash[_SERVER] = server
    config.stash[_EVALUATION] = server.open_evaluation(
        job,
        checkpoint=config.getoption("nlac_checkpoint"),
        # pytest.fail raises an error that is no AssertionError.
        unsolved=(pytest.fail.Exception, *nlac_unsolved),
        post=config.getoption("nlac_post"),
    )
    return config.stash[_EVALUATION]


@pytest.fixture
def nlac_episode(
    request: pytest.FixtureRequest, nlac_evaluation: Evaluation
) -> Iterator[EvaluationEpisode]:
    """An episode of the test. A test that passes has solved its case."""
    mark = request.node.get_closest_marker(_MARK)
    settings: dict[str, Any] = dict(mark.kwargs) if mark else {}
    settings.setdefault("task", mark.args[0] if mark and mark.args else request.node.name)
    played = request.node.stash[_EPISODE] = nlac_evaluation.begin(**settings)
    yield played
    # The test did not run: another fixture failed.
    if played.is_open:
        nlac_evaluation.discard(played)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Counts the case. A case that is not solved is an expected failure: the rate decides."""
    report = yield
    played = item.stash.get(_EPISODE, None)
    if played is None or call.when != "call":
        return report
    error = call.excinfo.value if call.excinfo else None
    try:
        case = item.config.stash[_EVALUATION].end(played, error)
    except NlacError as wrong:
        report.outcome, report.longrepr = "failed", str(wrong)
        return report
    if case is not None and not case.success:
        report.outcome = "skipped"
        report.wasxfail = f"not {'judged' if case.success is None else 'solved'}: {case.reason}"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Compares the success rate with its bound, and posts it if all tests ran."""
    evaluation = session.config.stash.get(_EVALUATION, None)
    if evaluation is None:
        return
    notes = session.config.stash.setdefault(_NOTES, [evaluation.report()])
    at_least = session.config.getoption("nlac_at_least")
    try:
        # Raises if no case was judged: a session that measured nothing does not pass.
        if evaluation.success < (at_least or 0.0):
            notes.append(f"FAILED: success is below {at_least:.1%}")
            _fail(session)
        if not evaluation.posts:
            notes.append("The result is not posted. --nlac-post posts it.")
        elif session.exitstatus in _CUT or session.shouldfail or session.shouldstop:
            notes.append("The result is not posted, because the session was interrupted.")
        elif evaluation.incomplete:
            notes.append("The result is not posted, because a case had an error of its own.")
        else:
            evaluation.post()
            notes.append("The result is posted.")
    except NlacError as error:
        notes.append(f"FAILED: {error}")
        _fail(session)
    finally:
        session.config.stash[_SERVER].close()


def _fail(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    notes = config.stash.get(_NOTES, None)
    if notes:
        terminalreporter.section("nlac evaluation")
        for note in notes:
            terminalreporter.write_line(note)

"""A checkpoint is measured with an agent and cases of the user's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from uuid import UUID

import httpx
import pytest
from conftest import LONG, tiny
from fake_gateway import JOB, Fake, checkpoint, serving
from test_package import surface

import nlac
from nlac import AsyncEvaluation, AsyncEvaluationEpisode, Evaluation, EvaluationEpisode, NlacError
from nlac.rest.api.gateway import list_gateway_episodes


@pytest.fixture
def fake() -> Iterator[Fake]:
    with serving() as fake:
        yield fake


def ask(episode: EvaluationEpisode | AsyncEvaluationEpisode) -> str:
    """An agent of one call."""
    answer = httpx.post(f"{episode.base_url}/chat/completions", json={})
    answer.raise_for_status()
    return str(answer.json()["said"])


def test_both_kinds_can_do_the_same() -> None:
    assert surface(Evaluation) == surface(AsyncEvaluation)
    assert surface(EvaluationEpisode) == surface(AsyncEvaluationEpisode)


def test_the_rate_of_solved_cases_is_posted(fake: Fake) -> None:
    with nlac.evaluation(JOB, url=fake.url) as evaluation:
        for number in range(8):
            with evaluation.episode(f"case {number}", temperature=0.5) as episode:
                assert ask(episode) == "hello"
                episode.close(float(number < 6), success=number < 6)
        with evaluation.episode("an assertion") as episode:
            assert ask(episode) == "goodbye"
            episode.close(1.0, success=True)
        with evaluation.episode("two steps") as episode:
            episode.reward(0.5, step=0)
            episode.reward(0.5)
            episode.reward(1.0, success=True)
        assert not fake.posted, "not before the end"
        assert (evaluation.solved, evaluation.episodes, evaluation.success) == (7, 10, 0.7)
        # Of 7 in 10, by the formula of Wilson.
        assert evaluation.interval == pytest.approx((0.3968, 0.8922), abs=1e-4)
        evaluation.check(0.7)
        with pytest.raises(AssertionError, match=r"below 71\.0%\n.*version 2 of job agent: 7 of"):
            evaluation.check(0.71)
    assert evaluation.posted
    [result] = fake.posted
    assert result == {"checkpoint_id": str(UUID(int=102)), "episodes": 10, "success": 0.7}
    assert [case.reward for case in evaluation.cases[-2:]] == [None, 1.5]
    assert "says 'hello'" in evaluation.cases[8].reason or "goodbye" in evaluation.cases[8].reason
    played_by = {"checkpoint_id": str(UUID(int=102)), "purpose": "evaluate"}
    assert fake.opened[0] == {"task": "case 0", "temperature": 0.5, **played_by}
    assert fake.discarded == [str(case.episode) for case in evaluation.cases]


def test_the_mean_return_is_posted_if_each_case_has_one(fake: Fake) -> None:
    with nlac.evaluation(JOB, url=fake.url) as evaluation:
        for reward in (1.0, 0.5):
            with evaluation.episode() as episode:
                episode.close(reward, success=True)
    assert fake.posted[0]["return"] == 0.75


def test_an_error_of_a_server_does_not_count(fake: Fake) -> None:
    with nlac.evaluation(JOB, url=fake.url) as evaluation:
        with evaluation.episode("solved") as episode:
            ask(episode)
        fake.answer = 503
        with evaluation.episode("no engine") as episode:
            try:
                ask(episode)
            except httpx.HTTPError as error:
                raise ValueError("the framework's own error") from error
        with evaluation.episode("no server"):
            raise nlac.NotReachable("away")
        with evaluation.episode("cut") as episode:
            episode.close(truncated=True)
    assert (evaluation.success, evaluation.episodes) == (1.0, 1)
    assert [case.task for case in evaluation.unjudged] == ["no engine", "no server", "cut"]
    assert fake.posted[0]["episodes"] == 1
    assert "not judged: no server: NotReachable: away" in evaluation.report()
    assert len(fake.discarded) == 4


def test_errors_of_the_package_openai(fake: Fake) -> None:
    openai = pytest.importorskip("openai")

    def call(episode: EvaluationEpisode) -> None:
        client = episode.openai(max_retries=0)
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])

    with nlac.evaluation(JOB, url=fake.url, post=False) as evaluation:
        for fake.answer, fake.code in ((503, ""), (429, ""), (400, "context_length_exceeded")):
            with evaluation.episode() as episode:
                call(episode)
        with (
            evaluation.episode(),
            openai.OpenAI(base_url="http://127.0.0.1:9", api_key="k") as away,
        ):
            away.with_options(max_retries=0).models.list()
        fake.answer, fake.code = 400, "unsupported_parameter"
        with pytest.raises(openai.BadRequestError), evaluation.episode() as episode:
            call(episode)
    assert [case.success for case in evaluation.cases] == [None, None, False, None]


def test_an_error_of_the_agents_code_is_raised(fake: Fake) -> None:
    def play(evaluation: Evaluation) -> None:
        with evaluation, evaluation.episode("solved"):
            pass
        fake.posted.clear()
        with evaluation, evaluation.episode("broken"):
            raise KeyError("tool")

    with nlac.Nlac(fake.url) as server:
        evaluation = server.open_evaluation(JOB)
        with pytest.raises(KeyError, match="tool"):
            play(evaluation)
    assert not fake.posted
    assert evaluation.incomplete
    assert len(evaluation.cases) == 1
    assert len(fake.discarded) == 2


def test_errors_that_mean_not_solved_can_be_named(fake: Fake) -> None:
    with nlac.evaluation(JOB, url=fake.url, unsolved=(RecursionError,)) as evaluation:
        with evaluation.episode("endless"):
            raise RecursionError("too many turns")
        with evaluation.episode("solved"):
            pass
    assert evaluation.success == 0.5
    assert evaluation.cases[0].reason == "RecursionError: too many turns"


def test_a_reward_without_success_is_an_error(fake: Fake) -> None:
    with nlac.evaluation(JOB, url=fake.url, post=False) as evaluation:
        with (
            pytest.raises(NlacError, match="nobody said whether its task was solved"),
            evaluation.episode() as episode,
        ):
            episode.reward(1.0)
        with pytest.raises(NlacError, match="has no judged episode"):
            _ = evaluation.success
    assert len(fake.discarded) == 1


def test_a_job_that_takes_no_results_gets_none(fake: Fake) -> None:
    fake.results_from = "none"
    with nlac.evaluation(JOB, url=fake.url) as evaluation, evaluation.episode():
        pass
    assert evaluation.success == 1.0
    assert not fake.posted


def test_an_episode_that_is_not_discarded_is_a_warning(fake: Fake) -> None:
    fake.discarding = 503
    with (
        nlac.evaluation(JOB, url=fake.url) as evaluation,
        pytest.warns(match="was not discarded, so it stays open"),
        evaluation.episode(),
    ):
        pass
    assert fake.posted[0]["success"] == 1.0


def test_which_checkpoint_is_measured(fake: Fake) -> None:
    fake.checkpoints.insert(0, checkpoint(3, role="target"))
    fake.checkpoints.insert(0, checkpoint(3, published_at=None))
    with nlac.Nlac(fake.url) as server:
        for choice, version in (
            ("newest", 2),
            ("promoted", 1),
            (0, 0),
            ("0", 0),
            (UUID(int=101), 1),
        ):
            assert server.open_evaluation(JOB, checkpoint=choice).checkpoint.version == version
        with pytest.raises(NlacError, match="has no checkpoint 7"):
            server.open_evaluation(JOB, checkpoint=7)
        fake.checkpoints.clear()
        with pytest.raises(NlacError, match="wait until the job has published"):
            server.open_evaluation(JOB)


def test_asyncio(fake: Fake) -> None:
    async def main() -> AsyncEvaluation:
        async with nlac.aevaluation(JOB, url=fake.url, checkpoint="promoted") as evaluation:

            async def play(number: int) -> None:
                async with evaluation.episode(f"case {number}") as episode:
                    await asyncio.sleep(0)
                    assert number
                    await episode.close(1.0, success=True)

            await asyncio.gather(*(play(number) for number in range(4)))
            with pytest.raises(KeyError):
                async with evaluation.episode("broken"):
                    raise KeyError
        return evaluation

    evaluation = asyncio.run(main())
    assert (evaluation.success, evaluation.incomplete) == (0.75, True)
    [result] = fake.posted
    assert result == {"checkpoint_id": str(UUID(int=101)), "episodes": 4, "success": 0.75}
    assert len(fake.discarded) == 5


def test_a_key_submits_an_evaluation_once() -> None:
    keys: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers.get("idempotency-key"))
        return httpx.Response(201, json=Fake().job())

    settings = {"transport": httpx.MockTransport(answer)}
    with nlac.Nlac("http://nlac", httpx_args=settings) as server:
        assert server.evaluate(job=JOB, idempotency_key="nightly").id == JOB
        server.evaluate(job=JOB)

    async def main() -> None:
        async with nlac.AsyncNlac("http://nlac", httpx_args=settings) as server:
            await server.evaluate(job=JOB, idempotency_key="nightly")

    asyncio.run(main())
    assert keys == ["nightly", None, "nightly"]


def test_a_real_server_answers_stores_the_result_and_learns_nothing(server: nlac.Nlac) -> None:
    gateway = {"kind": "gateway", "steps": 100_000}
    job = server.submit(tiny(environment=gateway, evaluation={"from": "external"}))
    until = time.monotonic() + LONG
    while job.refresh().view.waiting_for != "agents":
        assert not job.over, job.error
        assert time.monotonic() < until, "the job does not wait for its agents"
        time.sleep(0.2)
    messages = [{"role": "user", "content": "i want a refund form empty left 5"}]
    with server.open_evaluation(job.id) as evaluation:
        for number in range(4):
            with evaluation.episode(f"case {number}") as episode:
                answer = httpx.post(
                    f"{episode.base_url}/chat/completions",
                    headers={"authorization": f"Bearer {episode.api_key}"},
                    json={"model": "any", "messages": messages},
                    timeout=60,
                )
                answer.raise_for_status()
                episode.close(float(number > 0), success=number > 0)
    assert evaluation.posted
    assert (evaluation.posted.version, evaluation.posted.success) == (0, 0.75)
    assert [metric.value for metric in job.metrics("eval.success")] == [0.75]
    assert [metric.value for metric in job.metrics("eval.return")] == [0.75]
    opened = server.ask(list_gateway_episodes.sync_detailed, job.id, client=server.rest).data
    assert [(row.state, row.calls) for row in opened] == [("discarded", 1)] * 4
    assert not list(job.episodes())
    job.cancel().delete()

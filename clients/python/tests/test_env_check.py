"""`check` finds each defect that was put into an environment."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from served import Desk, Number, Shop, serving

import nlac.env.checking.checks
import nlac.env.checking.play
import nlac.env.session
from nlac import env
from nlac.env.__main__ import main
from nlac.env.checking.channels import Unreachable


class Good(Number):
    """Number without the actions that fail."""


class Forgets(Number):
    """Keeps something from the episode before."""

    episodes = 0

    def reset(self, seed: int, task: str | None, episode_id: str | None = None) -> env.Step:
        self.episodes += 1
        super().reset(seed, task)
        return env.Step(f"episode {self.episodes}", admissible=["0"])


class Endless(Number):
    def step(self, action: str) -> env.Step:
        return env.Step("and so on", 0.5)


class Stingy(Number):
    def step(self, action: str) -> env.Step:
        answer = super().step(action)
        return env.Step(answer.observation, 0.0, answer.terminated, answer.truncated)


class Leaks(Number):
    tasks = {"train": ["a", "b"], "held_out": ["b", "c"]}  # noqa: RUF012


class Crawls(Number):
    def step(self, action: str) -> env.Step:
        time.sleep(0.02)
        return super().step(action)


class Talks(Number):
    def step(self, action: str) -> env.Step:
        answer = super().step(action)
        return env.Step("x" * 20_000, answer.reward, answer.terminated, answer.truncated)


class Breaks(Number):
    def step(self, action: str) -> env.Step:
        return super().step("boom")


DEFECTS = [
    (Forgets, "not_replayable"),
    (Endless, "never_ends"),
    (Stingy, "constant_reward"),
    (Leaks, "held_out_in_training"),
    (Crawls, "slow_steps"),
    (Talks, "long_text"),
    (Breaks, "error"),
]


def codes(findings: list[env.Finding]) -> list[str]:
    return [finding.code for finding in findings]


@pytest.mark.parametrize("sound", [Good, Shop])
def test_a_sound_environment_has_no_findings(sound: Any) -> None:
    assert env.check(sound, episodes=40) == []


def test_random_play_does_not_draw_what_the_environment_draws() -> None:
    """With the same random numbers it would always guess the environment's secret."""

    class Mirror(env.Environment):
        examples = "0123456789"

        def reset(self, seed: int, task: str | None) -> str:
            self.secret = random.Random(seed).choice(self.examples)
            return "guess"

        def step(self, action: str) -> env.Step:
            return env.Step("so", float(action == self.secret), terminated=True)

    assert env.check(Mirror) == []


def test_random_play_may_never_see_a_reward() -> None:
    """The example's rules must be learnt: only a warning."""
    assert [f.severity for f in env.check(Desk) if f.code != "constant_reward"] == []


@pytest.mark.parametrize(("defective", "code"), DEFECTS)
def test_a_defect_is_found(defective: Any, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nlac.env.checking.checks, "SLOW", 0.01 if code == "slow_steps" else 1.0)
    findings = [f for f in env.check(defective, episodes=12) if f.code == code]
    assert len(findings) == 1, "each problem is reported once"
    assert findings[0].remedy.endswith(".")
    assert code in str(findings[0])


def test_an_answer_that_does_not_come_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nlac.env.checking.play, "TIMEOUT", 0.05)

    class Hangs(Number):
        def step(self, action: str) -> env.Step:
            time.sleep(5)
            return super().step(action)

    monkeypatch.setattr(nlac.env.session, "CLOSING", 0.05)
    (finding,) = env.check(Hangs, episodes=1)
    assert "no answer to step within" in finding.problem


def test_an_environment_that_cannot_be_made_is_an_error() -> None:
    class Broken(Number):
        def __init__(self) -> None:
            raise OSError("no licence")

    (finding,) = env.check(Broken, episodes=2)
    assert "Broken cannot be made: OSError: no licence" in finding.problem


def test_actions_for_an_environment_that_shows_none() -> None:
    class Silent(Number):
        def reset(self, seed: int, task: str | None, episode_id: str | None = None) -> env.Step:
            super().reset(seed, task)
            self.secret = 7
            return env.Step("guess")

    (finding,) = env.check(Silent)
    assert finding.code == "constant_reward"
    assert "`examples`" in finding.remedy
    assert env.check(Silent, actions=["6", "7"]) == []


def test_a_server_is_checked_by_its_url() -> None:
    with serving(Leaks, api_key="k") as url:
        assert codes(env.check(url, api_key="k")) == ["held_out_in_training"]
        with pytest.raises(Unreachable, match="--api-key"):
            env.check(url)
    with pytest.raises(Unreachable, match="does not answer"):
        env.check(url)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    here = __file__
    assert main(["check", f"{here}:Good", "--episodes", "8"]) == 0
    assert "no problem found in 8 episodes" in capsys.readouterr().out
    assert main(["check", f"{here}:Endless", "--episodes", "2"]) == 1
    assert "what to do: Return truncated=True" in capsys.readouterr().out
    assert main(["check", f"{here}:Nothing"]) == 2
    assert main(["check", "no_such_module:Class"]) == 2
    assert main(["check", "Class"]) == 2
    assert "Write module:Class" in capsys.readouterr().err

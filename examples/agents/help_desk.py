"""An agent with a loop and a help desk of its own. nlac sees nothing but its model calls, and trains it by them.

    nlac jobs submit examples/gateway.yaml
    python examples/agents/help_desk.py JOB --agents 16

The agents play until the job is over. A customer wants something; the form must hold what that kind of request needs
before the agent says "do it now .", and nobody tells it what that is.
"""

import argparse
import random
import threading

import nlac

FIELDS = ("name", "email", "order", "item", "size", "reason", "card", "date")
NEEDS = {
    "refund": ("order", "reason", "card"),
    "exchange": ("order", "item", "size"),
    "upgrade": ("name", "email", "card"),
    "cancel": ("name", "order", "date"),
}
TURNS = 5


class Desk:
    """One customer."""

    def __init__(self, kind: str) -> None:
        self.kind, self.form, self.left = kind, [], TURNS

    def standing(self) -> str:
        filled = " ".join(field for field in FIELDS if field in self.form) or "empty"
        return f"form {filled} left {self.left}"

    def says(self, action: str) -> tuple[str, bool | None]:
        """What the customer says to an action, and whether the request is solved; None while it goes on."""
        self.left -= 1
        missing = next((need for need in NEEDS[self.kind] if need not in self.form), None)
        if action == "do it now .":
            return (
                ("done solved", True)
                if missing is None
                else (f"refused {missing} is missing", False)
            )
        asked = action.removeprefix("what is your ").removesuffix(" ?")
        if action != f"what is your {asked} ?" or asked not in FIELDS:
            said = "ok" if action == "please wait ." else "what"
        elif asked in self.form:
            said = "i told you"
        else:
            self.form.append(asked)
            said = "here it is"
        missing = next((need for need in NEEDS[self.kind] if need not in self.form), "nothing")
        if self.left == 0:
            return f"{said} closed {missing} is missing", False
        return f"{said} {self.standing()}", None


def play(episode: nlac.Episode, kind: str) -> bool:
    """Serves one customer; whether the request was solved."""
    model, desk = episode.openai(), Desk(kind)
    messages = [{"role": "user", "content": f"i want a {kind} {desk.standing()}"}]
    while True:
        answer = model.chat.completions.create(model="help-desk", messages=messages)
        action = (answer.choices[0].message.content or "").strip()
        said, solved = desk.says(action)
        messages.append({"role": "assistant", "content": action})
        if solved is not None:
            told = [{"role": "user", "content": said}]
            episode.close(float(solved), success=solved, messages=told)
            return solved
        messages.append({"role": "user", "content": said})


def serve(server: nlac.Nlac, job: nlac.Job, chance: random.Random) -> None:
    """Serves customers until the job is over."""
    while not job.refresh().over:
        kind = chance.choice([*NEEDS])
        with server.open_episode(job.id, task=kind, idle_seconds=60) as episode:
            play(episode, kind)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("job", help="id of a job whose environment is the gateway")
    arguments.add_argument("--agents", type=int, default=16, help="agents that play at a time")
    arguments.add_argument("--seed", type=int, default=0, help="which customers come")
    given = arguments.parse_args()
    with nlac.Nlac() as server:
        agents = [
            threading.Thread(
                target=serve,
                args=(server, server.job(given.job), random.Random(f"{given.seed} {number}")),
            )
            for number in range(given.agents)
        ]
        for agent in agents:
            agent.start()
        for agent in agents:
            agent.join()


if __name__ == "__main__":
    main()

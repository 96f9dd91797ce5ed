"""A help desk with rules of its own: which request needs which fields is learnt by playing."""
import random
from nlac import env

FIELDS = ("name", "email", "order", "item", "size", "reason", "card", "date")
ASKS = {f"what is your {field} ?": field for field in FIELDS}
NEEDS = {"refund": ("card", "email", "date"), "exchange": ("item", "reason", "name"),
         "upgrade": ("order", "size", "email"), "cancel": ("reason", "card", "item")}

class Desk(env.Environment):
    """A customer wants something, and the form must hold what that kind of request needs."""
    examples = (*ASKS, "do it now .", "please wait .")

    def reset(self, seed: int, task: str | None) -> str:
        self.kind, self.form, self.left = task or random.Random(seed).choice([*NEEDS]), [], 5
        return f"i want a {self.kind} form empty left 5"

    def step(self, action: str) -> env.Step:
        field, self.left = ASKS.get(action.strip()), self.left - 1
        said = "what" if not field else "i told you" if field in self.form else "here it is"
        self.form.append(field)
        missing = next((need for need in NEEDS[self.kind] if need not in self.form), "nothing")
        if action.strip() == "do it now .":
            text = "done solved" if missing == "nothing" else f"refused {missing} is missing"
            return env.Step(text, float(missing == "nothing"), True, success=missing == "nothing")
        said = "ok" if action.strip() == "please wait ." else said
        if self.left == 0:
            return env.Step(f"{said} closed {missing} is missing", terminated=True, success=False)
        form = " ".join(field for field in FIELDS if field in self.form) or "empty"
        return env.Step(f"{said} form {form} left {self.left}")

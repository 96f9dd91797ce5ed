"""What a trainer remembers over weeks."""

from __future__ import annotations

import unittest
from itertools import count
from unittest.mock import patch

from nlac_trainer.registry import Conflict, Model, Registry
from nlac_trainer.wire import AdamParams, OptimStep


def step(model: str, number: int, rate: float = 0.1) -> OptimStep:
    return OptimStep(model_id=model, seq_id=number, adam_params=AdamParams(learning_rate=rate))


class Memory(unittest.TestCase):
    def setUp(self) -> None:
        self.registry = Registry()
        futures = count(1)
        self.submit = lambda: str(next(futures))

    def make(self, name: str) -> Model:
        made = self.registry.models[name] = Model("session", 4, "policy", 0)
        return made

    def test_the_latest_numbers_are_remembered_and_no_old_one_happens_again(self) -> None:
        model = self.make("m")
        with patch("nlac_trainer.registry.KEPT_NUMBERS", 3):
            for number in range(5):
                self.assertEqual(self.registry.numbered("m", number, step("m", number), self.submit), str(number + 1))
            self.assertEqual(len(model.submitted), 3)
            self.assertEqual(self.registry.numbered("m", 4, step("m", 4), self.submit), "5")
            with self.assertRaisesRegex(Conflict, "another request"):
                self.registry.numbered("m", 4, step("m", 4, 0.2), self.submit)
            with self.assertRaisesRegex(Conflict, "too long ago"):
                self.registry.numbered("m", 1, step("m", 1), self.submit)
            self.assertEqual(self.registry.numbered("m", 5, step("m", 5), self.submit), "6")

    def test_the_latest_unloaded_models_are_remembered(self) -> None:
        with patch("nlac_trainer.registry.KEPT_MODELS", 2):
            for name in ("a", "b", "c", "d"):
                self.make(name)
            for name in ("a", "b", "b", "c", "unknown"):
                self.registry.unload(name)
        self.assertEqual(list(self.registry.models), ["b", "c", "d"])
        self.assertEqual([model.unloading for model in self.registry.models.values()], [True, True, False])


if __name__ == "__main__":
    unittest.main()

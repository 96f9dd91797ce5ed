"""The key, and the size of bodies."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest.mock import Mock, patch

from fastapi.testclient import TestClient

from nlac_trainer.api import Service, build
from nlac_trainer.checkpoints import Checkpoints
from nlac_trainer.cli import main

KEY = "schlüssel"


class Access(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        app = build(Service(Mock(), Checkpoints(Path(place.name)), "tiny", 300.0), KEY)
        self.http = self.enterContext(TestClient(app))

    def status(self, route: str, body: object, key: str | None = KEY) -> int:
        headers = {"content-type": "application/json"}
        named = {} if key is None else {"x-api-key": key.encode()}
        return self.http.post(f"/api/v1/{route}", content=body, headers=headers | named).status_code

    def test_the_key_is_asked_for_before_a_body_is_read(self) -> None:
        for key in (None, "", "key", "schlussel"):
            with self.subTest(key):
                self.assertEqual(self.status("create_model", b"no JSON", key), 401)
        self.assertEqual(self.status("create_model", b"no JSON"), 422)
        self.assertEqual(self.status("client/config", b""), 200)
        self.assertEqual(self.http.get("/api/v1/healthz").status_code, 200)

    def test_a_body_that_is_too_large_is_refused(self) -> None:
        with patch("nlac_trainer.access.MOST", 100):
            for route in ("create_model", "forward_backward"):
                with self.subTest(route):
                    self.assertEqual(self.status(route, b" " * 101), 413)
                    # Without a length in its head.
                    self.assertEqual(self.status(route, iter([b" " * 60, b" " * 60])), 413)
                    self.assertEqual(self.status(route, b" " * 100), 422)


class Start(unittest.TestCase):
    def test_an_empty_key_is_none(self) -> None:
        told = ["nlac-trainer", "--model", "none", "--host", "0.0.0.0"]
        with patch.object(sys, "argv", told), patch.dict(os.environ, {"NLAC_TRAINER_KEY": ""}):
            with self.assertRaisesRegex(SystemExit, "set NLAC_TRAINER_KEY"):
                main()


if __name__ == "__main__":
    unittest.main()

"""A real server for tests: the binary that NLAC_BIN names."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

STARTING = 120.0


class Server:
    """A process with a data directory of its own, on a port of its own."""

    def __init__(self, binary: str, *arguments: str) -> None:
        self._binary = binary
        self._arguments = arguments
        self._root = Path(tempfile.mkdtemp(prefix="nlac-client-"))
        # Its Postgres runs as another user when it is started by root.
        self._root.chmod(0o755)
        self._log = self._root / "log"
        self.data = self._root / "data"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._listen = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{self._listen}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        own = ("NLAC_", "DATABASE_URL")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        own_place = ["--listen", self._listen, "--data-dir", str(self.data)]
        command = [self._binary, "serve", "--threads", "1", *own_place, *self._arguments]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        until = time.monotonic() + STARTING
        while time.monotonic() < until and self._process.poll() is None:
            try:
                if httpx.get(f"{self.url}/readyz", timeout=5).is_success:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        raise RuntimeError(f"{self._binary} does not start:\n{self._log.read_text()[-4000:]}")

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._root, ignore_errors=True)

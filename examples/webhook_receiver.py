#!/usr/bin/env python3
"""Receives nlac's webhooks: verifies each message, answers, prints what happened.

    NLAC_WEBHOOK_SECRET=whsec_... webhook_receiver.py --listen 127.0.0.1:8480
"""

import argparse
import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def verified(headers, body: bytes, secret: str, tolerance: float = 300) -> dict:
    """The message, if whoever holds the secret sent it in the last minutes; else ValueError."""
    message, sent = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not sent.isdigit() or abs(time.time() - int(sent)) > tolerance:
        raise ValueError("the message is too old, or its time is not told")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{message}.{sent}.".encode() + body, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode()
    # There may be several, one for each secret that is in use while it is changed.
    given = headers.get("webhook-signature", "").split(" ")
    if not any(hmac.compare_digest(expected, one) for one in given):
        raise ValueError("the signature is not of this secret")
    return json.loads(body)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            told = verified(self.headers, body, os.environ["NLAC_WEBHOOK_SECRET"])
        except ValueError as error:
            self.answer(401, str(error))
            return
        self.answer(200, "thank you")
        print(told["data"]["event_id"], told["type"], told["data"]["job_id"], told["data"]["message"], flush=True)

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", default="127.0.0.1:8480", metavar="HOST:PORT")
    host, port = parser.parse_args().listen.rsplit(":", 1)
    ThreadingHTTPServer((host, int(port)), Receiver).serve_forever()


if __name__ == "__main__":
    main()

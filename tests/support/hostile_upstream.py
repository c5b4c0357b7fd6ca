"""A server of OpenAI's chat protocol that means harm: the model of a request says how."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

TEXT = "Honey is golden."
EMPTY_LINES = b"data:\n" * 1_000_000 + b"\ndata: [DONE]\n\n"
LAYERS = 3
UNPACKED_BYTES = 100_000_000


def write_event(choice: Any) -> bytes:
    """An event of a stream with one choice."""
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def make_bomb() -> bytes:
    """Blanks in several layers of gzip."""
    content = b" " * UNPACKED_BYTES
    for _ in range(LAYERS):
        content = gzip.compress(content)
    return content


CHOICES: Mapping[str, Any] = {
    "index": {"index": [1], "message": {"content": TEXT}},
    "negative": {"index": -1, "message": {"content": TEXT}},
    "many": {"index": 7, "message": {"content": TEXT}},
    "list": {"index": 0, "message": [TEXT], "delta": [TEXT]},
    "text": {"index": 0, "message": TEXT, "delta": TEXT},
    "content": {"index": 0, "message": {"content": {"text": TEXT}}, "delta": {"content": {"text": TEXT}}},
    "reason": {"index": 0, "message": {"content": TEXT}, "finish_reason": "Honey is blue."},
    "role": {"index": 0, "message": {"content": TEXT, "role": "Honey is blue."}},
    "whole": {"index": 0, "delta": {"content": TEXT}},
    "bare": "Honey is blue.",
}
"""Choices of whole answers, and of streams, that are no choices."""
BODIES: Mapping[str, bytes] = {
    "lines": EMPTY_LINES,
    "letters": b"a" * 3_000_000,
    "members": json.dumps({"choices": [], "usage": [1] * 300_000}).encode(),
    "nested": b'{"choices":' + b"[" * 100_000,
    "events": write_event({"delta": {}}) * 50_000,
    "torn": write_event({"index": 0, "delta": {"content": TEXT}}),
}
"""Bodies of streams."""
TRICKLES: Mapping[str, bytes] = {
    "comments": b": wait\n\n",
    "bytes": b" ",
    "failing": b" ",
    "pieces": write_event({"index": 0, "delta": {"content": "Honey is golden and "}}),
}
"""What comes again and again, without end."""
TRICKLE_SECONDS = 0.1


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with what the model of a request names."""

    def do_POST(self) -> None:
        """Answer a chat."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        model, is_stream = body["model"], bool(body.get("stream"))
        self.send_response(500 if model == "failing" else 200)
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        content = BODIES.get(model, b"")
        if model == "bomb":
            self.send_header("Content-Encoding", ", ".join(["gzip"] * LAYERS))
            content = make_bomb()
        elif model in CHOICES:
            choice = CHOICES[model]
            content = write_event(choice) if is_stream else json.dumps({"choices": [choice]}).encode()
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(content)
            while model in TRICKLES:
                self.wfile.write(TRICKLES[model])
                time.sleep(TRICKLE_SECONDS)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""


@contextlib.contextmanager
def listen() -> Iterator[str]:
    """Run the server on a free port of this machine; the address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()

"""An HTTP service on the standard library: one engine, many threads, a deadline for every request.

python examples/service.py 8000
curl -d '{"response": "Honey never spoils.", "knowledge": "Honey keeps for years."}' localhost:8000
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from groundwire.engine import Engine, GroundwireError, InvalidRequest, Options, Overloaded

DEADLINE_MS = 10_000.0


def make_server(engine: Engine, port: int) -> ThreadingHTTPServer:
    """Return a server that scores every POST on ``engine``; port 0 chooses a free one."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.answer(*score_body(engine, body))

        def answer(self, code: int, content: dict[str, Any]) -> None:
            payload = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:
            """Write no line per request."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def score_body(engine: Engine, body: bytes) -> tuple[int, dict[str, Any]]:
    """Score a JSON request; return the HTTP status and the answer."""
    try:
        request = json.loads(body)
        score = engine.score(
            request.get("response", ""),
            request.get("knowledge", ""),
            history=request.get("history", ()),
            options=Options(deadline_ms=DEADLINE_MS),
        )
    except (json.JSONDecodeError, AttributeError, InvalidRequest) as error:
        return 400, {"error": str(error)}
    except Overloaded as error:
        return 503, {"error": str(error)}
    except GroundwireError as error:
        return 500, {"error": str(error)}
    return 200, {
        "label": score.verdict.label,
        "probability": score.verdict.probability,
        "status": score.status,
        "unsupported": [span.text for span in score.unsupported],
        "signature": score.signature,
    }


def main() -> None:
    """Serve on the port of the command line until interrupted."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    with Engine.load("compact") as engine:
        engine.warmup()
        server = make_server(engine, port)
        print(f"http://127.0.0.1:{server.server_address[1]}")
        server.serve_forever()


if __name__ == "__main__":
    main()

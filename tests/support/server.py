"""``groundwire serve``, or ``groundwire proxy``, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx

from tests.support.offline import ROOT

SECONDS = 120.0
"""For a server to start, on a machine that others use too."""


class Server:
    """A running server: its address, and the lines of its log."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._new: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.url = str(self.wait_for("listening")["url"])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for text in self.process.stderr:
            try:
                line = json.loads(text)
            except ValueError:
                line = {"event": text}
            self.lines.append(line)
            self._new.put(line)
        self._new.put(None)

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next line of the log with this event."""
        while (line := self._new.get(timeout=SECONDS)) is not None:
            if line["event"] == event:
                return line
        raise AssertionError(f"the server ended with {self.process.wait()}: {self.lines}")

    def forget_lines(self) -> None:
        """Drop what was logged so far, which would fill the memory of a long run."""
        self.lines.clear()
        while not self._new.empty():
            self._new.get()

    def wait_until_ready(self) -> None:
        """Return when the server is ready."""
        deadline = time.monotonic() + SECONDS
        while httpx.get(f"{self.url}/readyz", timeout=SECONDS, trust_env=False).status_code != 200:
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.05)

    def stop(self) -> int:
        """End the server as an orchestrator does, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


@contextlib.contextmanager
def start_server(
    *options: str, threads: int | None = 1, command: str = "serve", before: Sequence[str] = (), **environment: str
) -> Iterator[Server]:
    """A server on a free port, with one thread; None for all that are usable. ``before`` is a script that starts it."""
    arguments = [sys.executable, *before, "-m", "groundwire", command, "--port", "0", *options]
    environment |= {} if threads is None else {"GROUNDWIRE_THREADS": str(threads)}
    process = subprocess.Popen(
        arguments, cwd=ROOT, env=os.environ | environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        yield Server(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def time_calls(call: Callable[[int], Any], count: int) -> list[float]:
    """Seconds of each call, the shortest first."""
    seconds = []
    for number in range(count):
        started = time.monotonic()
        call(number)
        seconds.append(time.monotonic() - started)
    return sorted(seconds)

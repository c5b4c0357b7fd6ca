"""``groundwire serve`` with fake models, in a process that is forked from this one, which spares the imports."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from typing import IO

from groundwire.cli import main
from groundwire.engine import Engine, LoadOptions
from groundwire.service import server
from groundwire.service.settings import Settings

from .server import Server
from .streams import world


class ForkedProcess:
    """A forked process, as ``subprocess.Popen`` shows one."""

    def __init__(self, pid: int, stderr: IO[str]) -> None:
        self.pid = pid
        self.stderr = stderr
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, seconds: float = 60.0) -> int:
        """The exit code; TimeoutExpired if it runs on."""
        end = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("a forked server", seconds)
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)


@contextlib.contextmanager
def start_fake_server(*options: str) -> Iterator[Server]:
    """A server on a free port."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _serve(write_end, options)
    os.close(write_end)
    with os.fdopen(read_end, encoding="utf-8") as stderr:
        process = ForkedProcess(pid, stderr)
        try:
            yield Server(process)  # type: ignore[arg-type]
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait(10.0)


def _serve(write_end: int, options: tuple[str, ...]) -> None:
    """The whole life of the forked process."""
    code: object = 1
    try:
        sys.stderr = os.fdopen(write_end, "w", encoding="utf-8", buffering=1)
        sys.stdout = sys.stderr
        server.load_engine = _load_engine
        sys.argv = ["groundwire", "serve", "--port", "0", *options]
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code if isinstance(code, int) else 1)


def _load_engine(settings: Settings) -> Engine:
    return Engine(world(), LoadOptions(max_waiting_tokens=settings.max_waiting_tokens))

"""One worker process, as the engine that started it sees it."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from groundwire.runtime.errors import ModelError

from .messages import AnswerPart, Envelope, Loaded, PipeClosed, Start, read_message, write_message

log = logging.getLogger("groundwire")
PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from groundwire.engine.worker import work
work()
"""
EXIT_SECONDS = 10.0
"""Until a process that was asked to end is killed."""


class ProcessEnded(Exception):
    """The process has ended before it answered."""


class WorkerProcess:
    """Starts a process and sends it messages. Safe to use from many threads."""

    def __init__(self, start: Start, on_end: Callable[[WorkerProcess], object]) -> None:
        """Start the process; ``wait_until_loaded`` says when it answers.

        Args:
            start: How the process makes its engine.
            on_end: A function that another thread calls once, when the process has ended for any reason.
        """
        self._popen = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._input, self._output = self._popen.stdin, self._popen.stdout
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        """Apart from the other: a process may have to be read before it reads on."""
        self._answers: dict[int, Callable[[Any], object]] = {}
        self._sent = 0
        self.has_ended = False
        """Nothing that it is asked is answered any more."""
        self._on_end = on_end
        self._loaded: Future[Any] = self.ask(start)
        threading.Thread(target=self._read, name=f"groundwire-process-{self.pid}", daemon=True).start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._popen.pid

    @property
    def unanswered(self) -> int:
        """Messages that wait for an answer."""
        return len(self._answers)

    def wait_until_loaded(self) -> Loaded:
        """What its engine can do; raises what loading it raised, and ModelError when the process ended."""
        try:
            loaded: Loaded = self._loaded.result()
        except ProcessEnded as error:
            raise ModelError(f"A worker process ended while it loaded its models: {error}.") from error
        return loaded

    def ask(self, content: Any) -> Future[Any]:
        """Send a message; the future gets the answer, an error of the process, or ProcessEnded."""
        answer: Future[Any] = Future()

        def take(content: Any) -> None:
            if isinstance(content, BaseException):
                answer.set_exception(content)
            else:
                answer.set_result(content)

        self._send(content, take)
        return answer

    def stream(self, content: Any) -> Iterator[Any]:
        """Send a message and yield its answers until the last one; raises as ``ask``."""
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._send(content, answers.put)
        while (answer := answers.get()) is not None:
            if isinstance(answer, BaseException):
                raise answer
            yield answer

    def end(self) -> None:
        """Let the process end when it has answered, and kill it when it does not."""
        self._close_input()
        try:
            self._popen.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            log.warning("worker process %d does not end; it is killed", self.pid)
            self.kill()

    def kill(self) -> None:
        """End the process at once."""
        self._popen.kill()
        self._popen.wait()

    def _send(self, content: Any, take: Callable[[Any], object]) -> None:
        with self._lock:
            if not self.has_ended:
                self._sent += 1
                number = self._sent
                self._answers[number] = take
            else:
                number = 0
        if not number:
            take(ProcessEnded(self._describe_end()))
            return
        with self._write_lock, contextlib.suppress(PipeClosed):  # the thread that reads sees the end too, and answers
            write_message(self._input, Envelope(number, content))

    def _read(self) -> None:
        """Pass answers on until the process ends."""
        try:
            while True:
                number, content = read_message(self._output)
                if isinstance(content, AnswerPart):
                    self._answers[number](content.content)
                else:
                    self._answers.pop(number)(content)
        except PipeClosed:
            pass
        except BaseException:
            log.exception("the answers of worker process %d cannot be read; it is killed", self.pid)
            self._popen.kill()
        self._popen.wait()
        with self._lock:
            self.has_ended = True
        self._output.close()
        self._close_input()
        while self._answers:
            self._answers.popitem()[1](ProcessEnded(self._describe_end()))
        self._on_end(self)

    def _close_input(self) -> None:
        with self._write_lock, contextlib.suppress(OSError):  # what was not yet written has no reader
            self._input.close()

    def _describe_end(self) -> str:
        return f"process {self.pid} ended with code {self._popen.poll()}"

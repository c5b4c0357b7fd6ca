"""One worker process, as the engine that started it sees it."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from groundwire.runtime.errors import ModelError

from .messages import AnswerPart, Envelope, Loaded, Ping, PipeClosed, Start, Withdraw, read_message, write_message

log = logging.getLogger("groundwire")
PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from groundwire.engine.core.worker import work
work()
"""
EXIT_SECONDS = 5.0
"""Until processes that were asked to end are killed, all of them together."""
WRITE_SECONDS = 0.1
"""For a message that is being written when a process is asked to end."""


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
        self.received = 0
        """Messages that the process has sent."""
        self._pinging = threading.Lock()
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

    def ask(self, content: Any, on_sent: Callable[[int], object] = lambda number: None) -> Future[Any]:
        """Send a message; the future gets the answer, an error of the process, or ProcessEnded.

        ``on_sent`` is called with the number of the message when it has been sent; ``withdraw`` takes it.
        """
        answer: Future[Any] = Future()

        def take(content: Any) -> None:
            if isinstance(content, BaseException):
                answer.set_exception(content)
            else:
                answer.set_result(content)

        on_sent(self._send(content, take))
        return answer

    def withdraw(self, number: int) -> None:
        """Let the process stop working on a message, if it still does, and return at once."""
        threading.Thread(target=self._withdraw, args=[number], name=f"groundwire-end-{self.pid}", daemon=True).start()

    def _withdraw(self, number: int) -> None:
        if number in self._answers:
            with self._write_lock, contextlib.suppress(PipeClosed):
                write_message(self._input, Envelope(0, Withdraw(number)))

    def stream(self, content: Any) -> Iterator[Any]:
        """Send a message and yield its answers until the last one; raises as ``ask``."""
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._send(content, answers.put)
        while (answer := answers.get()) is not None:
            if isinstance(answer, BaseException):
                raise answer
            yield answer

    def ping(self) -> None:
        """Ask for a sign of life, unless one is being waited for, and return at once; ``received`` counts the answer.

        The message is written by a thread, as writing to a process that does not read may take for ever.
        """
        if self._pinging.acquire(blocking=False):
            threading.Thread(target=self._ping, name=f"groundwire-ping-{self.pid}", daemon=True).start()

    def _ping(self) -> None:
        self._send(Ping(), lambda _: self._pinging.release())

    def kill(self) -> None:
        """End the process at once."""
        self._popen.kill()
        self._popen.wait()

    def ask_to_end(self) -> None:
        """Let the process end, whatever it works on, and return at once. One that does not read is killed."""
        if not self._write_lock.acquire(timeout=WRITE_SECONDS):
            self._popen.kill()
            return
        try:
            with contextlib.suppress(OSError):
                self._input.close()
        finally:
            self._write_lock.release()

    def wait_for_end(self, seconds: float) -> None:
        """Return when the process has ended, and kill it when it has not after so many seconds."""
        try:
            self._popen.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            log.warning("worker process %d does not end; it is killed", self.pid)
            self.kill()

    def _send(self, content: Any, take: Callable[[Any], object]) -> int:
        """Send a message, and return its number; 0 if the process has ended."""
        with self._lock:
            if not self.has_ended:
                self._sent += 1
                number = self._sent
                self._answers[number] = take
            else:
                number = 0
        if not number:
            take(ProcessEnded(self._describe_end()))
            return 0
        with self._write_lock, contextlib.suppress(PipeClosed):  # the thread that reads sees the end too, and answers
            write_message(self._input, Envelope(number, content))
        return number

    def _read(self) -> None:
        """Pass answers on until the process ends."""
        try:
            while True:
                number, content = read_message(self._output)
                self.received += 1
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


def end_all(processes: Sequence[WorkerProcess]) -> None:
    """Let processes end, beside each other, and return when all have ended, after ``EXIT_SECONDS`` by force."""
    end = time.monotonic() + EXIT_SECONDS
    for process in processes:
        process.ask_to_end()
    for process in processes:
        process.wait_for_end(end - time.monotonic())

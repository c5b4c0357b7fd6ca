"""Notices worker processes that hang: that were stopped, or whose code does not return."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from .process import WorkerProcess

log = logging.getLogger("groundwire")
TICK_SECONDS = 5.0
"""Between two looks at the processes."""
SILENT_TICKS = 12
"""Looks at a process without a message from it, after which it is killed: a minute. A process that reads megabytes, or
loads a library on a busy machine, holds Python's lock for seconds."""


class Watchdog:
    """Asks processes for signs of life, and kills a process that gives none. Not thread-safe.

    Looks are counted, not seconds: where this process too was stopped, the others have done nothing wrong.
    """

    def __init__(self) -> None:
        self._seen: dict[WorkerProcess, tuple[int, int]] = {}
        """By process, how many messages it had sent, and the looks since."""

    def check(self, processes: Sequence[WorkerProcess]) -> None:
        """Look at the processes once, which is to be done every ``TICK_SECONDS``."""
        seen, self._seen = self._seen, {}
        for process in processes:
            received, ticks = seen.get(process, (-1, 0))
            ticks = ticks + 1 if process.received == received else 0
            if ticks >= SILENT_TICKS:
                log.error(
                    "worker process %d has given no sign of life for %.0f s; it is killed",
                    process.pid,
                    SILENT_TICKS * TICK_SECONDS,
                )
                process.kill()
                continue
            self._seen[process] = process.received, ticks
            process.ping()

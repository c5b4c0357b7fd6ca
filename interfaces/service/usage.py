"""What the server's processes use of the machine, and how late its event loop is: the numbers of a freeze to come."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .monitoring import Monitoring

LAG_SECONDS = 0.25
"""Between two looks at the event loop."""
PROC = Path("/proc")


class Usage(NamedTuple):
    """What processes use together, as far as the system says; 0 where there is no /proc."""

    cpu_seconds: float = 0.0
    resident_bytes: int = 0
    descriptors: int = 0


def read_usage(processes: Sequence[int]) -> Usage:
    """What processes use together; a process that has ended counts as nothing."""
    each = [_read_process(process) for process in processes]
    return Usage(
        sum(usage.cpu_seconds for usage in each),
        sum(usage.resident_bytes for usage in each),
        sum(usage.descriptors for usage in each),
    )


def _read_process(process: int) -> Usage:
    folder = PROC / str(process)
    try:
        times = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        pages = int((folder / "statm").read_text(encoding="ascii").split()[1])
        descriptors = sum(1 for _ in (folder / "fd").iterdir())
    except OSError:
        return Usage()
    ticks = int(times[11]) + int(times[12])  # in user and in kernel mode, the 14th and 15th field
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE"), descriptors)


async def watch_loop(monitoring: Monitoring) -> None:
    """Measure without end how much later than asked for the event loop goes on."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        monitoring.loop_lag_seconds.observe(max(0.0, loop.time() - due))

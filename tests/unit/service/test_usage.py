"""What the processes use, and how late the event loop is."""

from __future__ import annotations

import asyncio
import os
import re
import time
from pathlib import Path

import pytest

from groundwire.service.monitoring import Monitoring
from groundwire.service.usage import LAG_SECONDS, Usage, read_usage, watch_loop

ABSENT = 2**22 + 1
"""No process: Linux numbers them below."""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the numbers are of /proc")
def test_processes_use_processor_time_memory_and_descriptors() -> None:
    alone = read_usage((os.getpid(),))
    assert alone.cpu_seconds > 0
    assert alone.resident_bytes > 10_000_000
    with Path(__file__).open(encoding="utf-8"):
        assert read_usage((os.getpid(), ABSENT)).descriptors == alone.descriptors + 1
    assert read_usage((ABSENT,)) == Usage()


def test_a_loop_that_is_held_up_is_late() -> None:
    async def hold_up(monitoring: Monitoring) -> None:
        watching = asyncio.create_task(watch_loop(monitoring))
        await asyncio.sleep(0)
        time.sleep(LAG_SECONDS + 0.5)
        await asyncio.sleep(LAG_SECONDS)
        watching.cancel()

    monitoring = Monitoring()
    asyncio.run(hold_up(monitoring))
    late = re.search(r"^groundwire_loop_lag_seconds_sum (\S+)$", monitoring.render().decode(), re.M)
    assert late is not None
    assert float(late[1]) >= 0.4


def test_processor_time_adds_up_over_processes_that_were_replaced() -> None:
    monitoring = Monitoring()
    for cpu_seconds in (10.0, 12.5, 1.0, 3.0):
        monitoring.update_usage("workers", cpu_seconds, 1, 1)
    assert 'groundwire_cpu_seconds_total{part="workers"} 14.5' in monitoring.render().decode()

"""What the engine has counted, as Prometheus reads it."""

from __future__ import annotations

import re

import msgspec

from groundwire.engine import Engine
from groundwire.runtime.protocol import CaptureCounts
from groundwire.service.monitoring import Monitoring
from tests.support.fakes import world

NAMES = ("captured_shapes", "uncaptured_runs_total", "failed_captures_total")


def test_counters_grow_where_a_replaced_process_counts_from_zero() -> None:
    with Engine(world()) as engine:
        statistics = engine.statistics()
    monitoring, seen = Monitoring(), []
    for counts in (CaptureCounts(9, 4, 2), CaptureCounts(12, 5, 2), CaptureCounts(6, 1, 0), CaptureCounts(8, 3, 1)):
        monitoring.update_engine(msgspec.structs.replace(statistics, captures=counts))
        text = monitoring.render().decode()
        seen.append([float(re.findall(rf"^groundwire_{name} (\S+)$", text, re.M)[0]) for name in NAMES])
    assert seen == [[9, 4, 2], [12, 5, 2], [6, 5, 2], [8, 7, 3]]

"""The share of inconsistent responses, as Prometheus reads it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge

from groundwire.monitor.prevalence import ErrorRates, correct_share, share
from groundwire.runtime.calibration import Calibration
from groundwire.service.monitoring import LABELS, RECENT, Monitoring, RecentVerdicts, render_shares
from tests.support.traffic import EXACT, make_score


def read(text: str) -> dict[str, float]:
    """The shares in Prometheus' text, by name and bound."""
    samples = re.findall(r'^groundwire_(inconsistent_share\w*)\{bound="(\w+)"\} (\S+)$', text, re.M)
    return {f"{name} {bound}": float(value) for name, bound, value in samples}


def monitor(values: list[float | None], calibration: Calibration | None = EXACT, **verdict: object) -> Monitoring:
    monitoring = Monitoring(calibration)
    for value in values:
        monitoring.add_score(make_score(value, **verdict))  # type: ignore[arg-type]
    return monitoring


def test_shares_are_those_of_the_verdicts_alone() -> None:
    monitoring = monitor([0.9] * 60 + [0.1] * 40 + [None] * 9)
    monitoring.add_score(make_score(0.2, "unverifiable"))
    text = monitoring.render().decode()
    corrected = correct_share(40, 100, ErrorRates(1000, 100, 1000, 800))
    assert corrected is not None
    bounds = ("estimate", "low", "high")
    assert read(text) == pytest.approx(
        {f"inconsistent_share {bound}": value for bound, value in zip(bounds, share(40, 100), strict=True)}
        | {f"inconsistent_share_corrected {bound}": value for bound, value in zip(bounds, corrected, strict=True)}
    )
    assert 'groundwire_recent_verdicts{fusion="full",label="unknown",threshold=""} 9.0' in text


def test_without_verdicts_there_is_no_share() -> None:
    assert read(monitor([None] * 5).render().decode()) == {}


@pytest.mark.parametrize("calibration", [None, EXACT])
def test_unknown_errors_are_not_corrected(calibration: Calibration | None) -> None:
    monitoring = monitor([0.9, 0.1], calibration)
    if calibration is not None:
        monitoring.add_score(make_score(0.1, threshold=0.4))
    shares = read(monitoring.render().decode())
    assert {name.partition(" ")[0] for name in shares} == {"inconsistent_share"}


def test_thresholds_of_requests_make_one_series() -> None:
    monitoring = monitor([0.9, 0.1])
    for number in range(500):
        monitoring.add_score(make_score(0.1, threshold=number / 1000, profile=None))
    text = monitoring.render().decode()
    assert text.count("recent_verdicts{") == 3
    assert 'groundwire_recent_verdicts{fusion="full",label="inconsistent",threshold="own"} 500.0' in text
    assert {name.partition(" ")[0] for name in read(text)} == {"inconsistent_share"}


def test_only_the_last_verdicts_count() -> None:
    shares = read(monitor([0.1] * 50 + [0.9] * (RECENT - 10)).render().decode())
    assert shares["inconsistent_share estimate"] == 10 / RECENT


def test_the_verdicts_of_all_workers_are_added_before_they_are_divided() -> None:
    registry = CollectorRegistry()
    gauge = Gauge("groundwire_recent_verdicts", "", LABELS, registry=registry)
    for values in ([0.1] * 10, [0.9] * 30):
        worker = RecentVerdicts(gauge)
        for value in values:
            worker.add(make_score(value).verdict)
    assert read(render_shares(registry, EXACT).decode())["inconsistent_share estimate"] == 0.25


WORKER = """
import sys
from groundwire.service.monitoring import Monitoring
from tests.support.traffic import EXACT, make_score
monitoring = Monitoring(EXACT)
for _ in range(int(sys.argv[1])):
    monitoring.add_score(make_score(float(sys.argv[2])))
print("ready", flush=True)
sys.stdin.read(1)
print(monitoring.render().decode())
"""


def test_any_worker_answers_for_all(tmp_path: Path) -> None:
    arguments = [("10", "0.1"), ("30", "0.9")]
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, *values],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
        )
        for values in arguments
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    text, _ = workers[0].communicate("\n")
    workers[1].communicate("\n")
    assert read(text)["inconsistent_share estimate"] == 0.25

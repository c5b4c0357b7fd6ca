"""The share of inconsistent responses, as Prometheus reads it."""

from __future__ import annotations

import re

import pytest

from groundwire.monitor.prevalence import ErrorRates, correct_share, share
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.service.monitoring import RECENT, Monitoring
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


def test_shares_are_of_the_responses_with_a_verdict() -> None:
    monitoring = monitor([0.9] * 60 + [0.1] * 40 + [None] * 9)
    monitoring.add_score(make_score(0.2, "unverifiable"))
    text = monitoring.render().decode()
    corrected = correct_share(40, 101, ErrorRates(1000, 100, 1000, 800))
    assert corrected is not None
    bounds = ("estimate", "low", "high")
    assert read(text) == pytest.approx(
        {f"inconsistent_share {bound}": value for bound, value in zip(bounds, share(40, 101), strict=True)}
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

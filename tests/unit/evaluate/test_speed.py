"""Order statistics and rates."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from groundwire.engine import Engine, LoadOptions
from groundwire.engine.schema.results import Request
from groundwire.evaluate.speed.memory import used_gpu_mb
from groundwire.evaluate.speed.rates import measure_rate
from groundwire.evaluate.speed.records import Report, make_report
from groundwire.runtime.errors import InvalidRequest
from tests.support.fakes import world


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(world(), LoadOptions(cache_bytes=0)) as engine:
        yield engine


def requests(count: int | None = None) -> Iterator[Request]:
    numbers = itertools.count() if count is None else range(count)
    return (Request(f"Elvis was born in {number}.", ("Elvis was born in 1935.",)) for number in numbers)


def test_a_rate_leaves_out_the_first_requests_of_all_callers(engine: Engine) -> None:
    rate = measure_rate(engine, requests(40), 4, 60.0, ["unigram_f1"])
    assert 20 <= rate.finished <= 36
    assert rate.statuses == {"scored": rate.finished}
    assert rate.per_second == rate.finished / rate.seconds
    assert rate.latency is not None
    assert rate.latency.repeats == rate.finished


def test_a_rate_of_few_requests_is_that_of_all(engine: Engine) -> None:
    rate = measure_rate(engine, requests(5), 4, 60.0, ["unigram_f1"])
    assert rate.finished == 5


def test_a_rate_without_a_finished_request_is_zero(engine: Engine) -> None:
    rate = measure_rate(engine, requests(0), 4, 60.0, ["unigram_f1"])
    assert (rate.finished, rate.per_second, rate.latency) == (0, 0.0, None)


def test_the_time_limit_ends_an_endless_stream(engine: Engine) -> None:
    rate = measure_rate(engine, requests(), 3, 0.3, ["unigram_f1"])
    assert rate.finished > 0
    assert rate.seconds < 30


def test_a_rate_waits_for_a_response(engine: Engine) -> None:
    rate = measure_rate(engine, requests(), 3, 0.0, ["unigram_f1"], at_least=7)
    assert rate.finished >= 7 - 3
    assert rate.per_second > 0


def test_what_a_caller_raises_is_raised(engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match="no_such"):
        measure_rate(engine, requests(3), 2, 60.0, ["no_such"])


@pytest.mark.parametrize(("prints", "expected"), [("echo 1000", 1048.576), ("echo [N/A]", None), ("exit 9", None)])
def test_the_memory_of_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prints: str, expected: float | None
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n[ $1 = --id=1 ] || exit 1\n{prints}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert used_gpu_mb(1) == expected


def test_a_report_is_written_in_whole(tmp_path: Path) -> None:
    report = make_report("speed", {"bundle": "compact"}, [1, 2])
    out = tmp_path / "new" / "speed.json"
    report.write(out)
    assert msgspec.json.decode(out.read_bytes(), type=Report[list[int]]) == report
    assert [path.name for path in out.parent.iterdir()] == ["speed.json"]

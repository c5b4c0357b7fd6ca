"""``groundwire bench`` on the fake world."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from groundwire.cli.bench import bench
from groundwire.engine import Engine, LoadOptions
from groundwire.evaluate.speed.dialogues import EXAMPLES, read_examples, vary_requests
from groundwire.evaluate.speed.measure import Speed
from groundwire.evaluate.speed.records import Report
from groundwire.runtime.errors import InvalidRequest, ModelError
from tests.support.fakes import world
from tests.support.usage import usage_error

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(cls: type[Engine], bundle: str, device: str, *, options: LoadOptions, **_: Any) -> Engine:
        assert options.cache_bytes == 0
        return cls(world(), options)

    monkeypatch.setattr(Engine, "load", classmethod(load))


def run(*arguments: object) -> Result:
    app = typer.Typer()
    app.command("bench")(bench)
    app.command("other")(lambda: None)
    quick = ("--seconds", "0.05", "--concurrency", "1,3")
    return CliRunner().invoke(app, ["bench", *quick, *map(str, arguments)], env={"COLUMNS": "200"})


def read(path: Path) -> Report[Speed]:
    return msgspec.json.decode(path.read_bytes(), type=Report[Speed])


def test_every_group_is_measured_alone_and_in_flight(tmp_path: Path) -> None:
    result = run("--metrics", "unigram_f1", "--metrics", "q2,nli", "--out", tmp_path / "bench.json")
    assert result.exit_code == 0, result.output
    report = read(tmp_path / "bench.json")
    speed = report.results
    assert [(latency.group, latency.metrics) for latency in speed.latency] == [
        ("unigram_f1", ("unigram_f1",)),
        ("q2,nli", ("q2", "nli")),
    ]
    assert [(entry.group, entry.rate.in_flight) for entry in speed.rates] == [
        ("unigram_f1", 1),
        ("unigram_f1", 3),
        ("q2,nli", 1),
        ("q2,nli", 3),
    ]
    assert all(latency.timing.repeats >= 5 for latency in speed.latency)
    assert all(entry.rate.per_second > 0 for entry in speed.rates)
    assert "unigram_f1" in speed.signature
    first, second = (latency.stages for latency in speed.latency)
    assert not first
    assert second["nli"].calls >= second["nli"].batches > 0
    assert report.settings["responses"] == len(read_examples())
    assert report.machine.cores >= 1
    for shown in ("one response at a time", "milliseconds in a model", "several in flight", "responses/s"):
        assert shown in result.output


def test_without_metrics_the_groups_of_the_bundle_are_measured(tmp_path: Path) -> None:
    assert run("--out", tmp_path / "bench.json").exit_code == 0
    groups = [latency.group for latency in read(tmp_path / "bench.json").results.latency]
    assert groups[0] == "fast"
    assert groups[-1] == "all"


def test_responses_of_ones_own(tmp_path: Path) -> None:
    source = tmp_path / "mine.jsonl"
    rows = [{"answer": "Elvis sang.", "context": "Elvis was a singer."}, {"answer": 1}]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("--input", source, "--metrics", "unigram_f1", "--json")
    assert result.exit_code == 0, result.output
    assert "line 2:" in result.output
    line = next(line for line in result.output.splitlines() if line.startswith("{"))
    assert json.loads(line)["settings"]["responses"] == 1


def test_a_file_without_a_usable_response_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "mine.jsonl"
    source.write_text('{"response": "", "knowledge": "k"}\n')
    result = run("--input", source, "--metrics", "unigram_f1")
    assert isinstance(result.exception, InvalidRequest)
    assert "no response that can be scored" in str(result.exception)


def test_responses_without_a_result_are_counted_and_the_exit_code_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = world(nli=lambda call: ModelError("The graph is broken."))
    monkeypatch.setattr(
        Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(broken, LoadOptions(cache_bytes=0)))
    )
    result = run("--metrics", "nli", "--out", tmp_path / "bench.json")
    assert result.exit_code == 3, result.output
    statuses = read(tmp_path / "bench.json").results.latency[0].statuses
    assert set(statuses) == {"failed"}
    assert f"{statuses['failed']} failed" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--concurrency", "1,none"), "'1,none' is no list of numbers from 1 to 4096"),
        (("--concurrency", "0"), "'0' is no list of numbers"),
        (("--metrics", "speed"), "speed"),
        (("--plot", "bench.pdf"), "bench.pdf ends neither with .svg nor with .png"),
        (("--device", "tpu"), "tpu is unknown"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str) -> None:
    assert message in usage_error(run(*arguments))


@pytest.mark.parametrize(("name", "begins"), [("bench.svg", b"<?xml"), ("bench.png", b"\x89PNG")])
def test_a_plot(tmp_path: Path, name: str, begins: bytes) -> None:
    result = run("--metrics", "unigram_f1", "--plot", tmp_path / "plots" / name)
    assert result.exit_code == 0, result.output
    drawn = (tmp_path / "plots" / name).read_bytes()
    assert drawn.startswith(begins)
    if name.endswith(".svg"):
        assert b"unigram_f1: alone" in drawn
        assert b"mathdefault" not in drawn


def test_the_built_in_dialogues_are_the_examples() -> None:
    assert EXAMPLES.read_bytes() == (ROOT / "examples" / "dialogues.jsonl").read_bytes()
    assert len({request.response for request in read_examples()}) == len(read_examples())


def test_varied_requests_are_all_different() -> None:
    texts = [request.response for request in islice(vary_requests(read_examples()), 12_000)]
    assert len(set(texts)) == 12_000

"""Every benchmark runs at a tiny size, checks its answers and writes the JSON it promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import (
    batching,
    compact,
    decoding,
    host,
    language_model,
    model_work,
    native,
    padding,
    paper_size,
    processes,
    scaling,
    streaming,
    tiers,
)
from bench import values as values_benchmark
from bench.native import Case
from bench.support import models
from bench.support.common import RESULTS, ROOT, PerformanceTarget, Timing, WrongAnswer, interleaved
from bench.support.dialogues import distinct, examples
from groundwire.guard import Policy
from groundwire.guard.policies import OUTCOMES


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints and bundles that the benchmarks share."""
    return tmp_path_factory.mktemp("bench")


def written(out: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    assert report["machine"]["cores"] >= 1
    assert report["machine"]["versions"]["onnxruntime"] != "not installed"
    return report


def test_native(tmp_path: Path) -> None:
    native.main(tiny=True, out=tmp_path / "native.json")
    rows = written(tmp_path / "native.json")["results"]
    assert {"plan_batches", "best_spans", "BeamSearch"} <= {row["name"] for row in rows}
    assert all(row["native_p50_us"] > 0 and row["ratio"] > 0 for row in rows)


def test_native_refuses_to_time_a_wrong_answer() -> None:
    with pytest.raises(WrongAnswer, match="native gives 1, the reference implementation 2"):
        native.measure(Case("one", "", lambda: 1, lambda: 2, int), 1, 0.1)


@pytest.mark.parametrize("models", [False, True])
def test_processes(tmp_path: Path, models: bool) -> None:
    processes.main(models=models, tiny=True, out=tmp_path / "processes.json")
    report = json.loads((tmp_path / "processes.json").read_text())
    assert [each["processes"] for each in report["results"]["measured"]] == [1, 2]


def test_scaling(tmp_path: Path) -> None:
    scaling.main(tiny=True, out=tmp_path / "scaling.json")
    rows = written(tmp_path / "scaling.json")["results"]
    assert {row["name"].partition(",")[0] for row in rows} == {"words of knowledge", "spans", "candidates"}
    assert all(row["processor_ms"][0] > 0 for row in rows)


def test_a_cost_that_grows_with_the_square_has_the_exponent_two() -> None:
    assert scaling.fit_exponent((1, 2, 4, 8), (9.0, 9.0, 18.0, 72.0)) == pytest.approx(2)


def test_host(tmp_path: Path) -> None:
    host.main(rounds=1, responses=2, only="all", out=tmp_path / "host.json")
    (layers,) = written(tmp_path / "host.json")["results"]
    for times in (layers["alone"], layers["together"]):
        assert {"graphs", "scheduler", "metrics", "caller", "qg", "qa", "spans"} <= times.keys()
        assert max(times, key=times.__getitem__) == "graphs"
        assert all(spent > 0 for spent in times.values())


def test_the_padding_that_is_reported_is_that_of_the_capture_sizes(tmp_path: Path) -> None:
    recorded = RESULTS / "padding.json"
    padding.main(lengths=recorded, out=tmp_path / "padding.json")
    report = written(tmp_path / "padding.json")
    assert report["results"] == json.loads(recorded.read_text(encoding="utf-8"))["results"]
    assert all(target["passed"] for target in report["targets"])


def test_the_windows_of_extractive_qa_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(padding, "examples", lambda: examples()[:2])
    alone, together = padding.record_lengths("compact", 3)
    assert len(alone) >= 2
    assert min(min(run) for run in (*alone, *together)) > 5


def test_values(tmp_path: Path) -> None:
    values_benchmark.main(responses=10, tiny=True, out=tmp_path / "values.json")
    rows = written(tmp_path / "values.json")["results"]
    assert [row["characters"] < 1_000 for row in rows] == [True, True, False, False]
    assert all(row["values"]["p50_ms"] > 0 and row["ratio"] > 0 for row in rows)


def test_outcomes_of_values_are_counted(tmp_path: Path) -> None:
    answers = [("It opened in 1889.", 1), ("It opened in 1898.", 0), ("It opened in Oslo.", 0), ("It is nice.", 1)]
    rows = [{"response": text, "knowledge": "It opened in 1889.", "label": label} for text, label in answers]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    lines = list(values_benchmark.count_outcomes([str(tmp_path / "rows.jsonl")]))
    counted = [[cell.strip() for cell in line.split("|")[2:6]] for line in lines[2:]]
    assert counted == [["1", "0", "1", "100%"], ["0", "0", "0", "–"], ["1", "0", "1", "100%"], ["1", "1", "0", "0%"]]


def test_values_refuses_to_time_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values_benchmark, "EXPECTED", {"It opened in 1889.": ["absent"]})
    with pytest.raises(WrongAnswer, match=r"gives \['supported'\], expected \['absent'\]"):
        values_benchmark.main(tiny=True)


def test_streaming(tmp_path: Path) -> None:
    streaming.main(tiny=True, out=tmp_path / "streaming.json")
    rows = written(tmp_path / "streaming.json")["results"]
    assert [row["metrics"] for row in rows] == list(streaming.METRICS)
    assert all(row["sentence"]["repeats"] == row["paced"]["repeats"] == 2 * 3 for row in rows)


def test_streaming_refuses_to_time_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    actions: dict[str, Any] = dict.fromkeys(OUTCOMES, "redact")
    monkeypatch.setattr(streaming, "FLAG", Policy(**actions))
    with pytest.raises(WrongAnswer, match="what has left is not the response"):
        streaming.main(tiny=True)


@pytest.mark.slow
def test_paper_size(tmp_path: Path, work: Path) -> None:
    paper_size.main(work=work, tiny=True, threads=1, out=tmp_path / "paper_size.json")
    report = written(tmp_path / "paper_size.json")
    assert report["settings"]["size"] == "tiny"
    assert report["targets"] == []
    pieces = {piece["role"]: piece for piece in report["results"]["pieces"]}
    assert set(pieces) == {"qa", "nli", "qg"}
    assert all(piece["int8_mb"] < piece["fp32_mb"] and piece["fp32_error"] < 1e-3 for piece in pieces.values())
    assert report["results"]["exactness"]["same_answers"] == 1.0
    q2 = report["results"]["q2"]
    assert q2["questions"] == 5 * q2["spans"] == 20
    assert q2["engine_work"]["qa"]["calls"] == q2["peer_work"]["qa"]["calls"] == 2 * q2["questions"]


@pytest.mark.slow
def test_decoding(tmp_path: Path, work: Path) -> None:
    decoding.main(work=work, tiny=True, threads=1, repeats=1, tokens=4, dialogues=2, out=tmp_path / "decoding.json")
    single, several = written(tmp_path / "decoding.json")["results"]["throughput"]
    assert (single["dialogues"], several["dialogues"]) == (1, 2)
    assert all(side["tokens_per_s"] > 0 for throughput in (single, several) for side in throughput["sides"].values())
    assert set(single["sides"]) == {"pmi", "plain", "bare", "wide"}


@pytest.mark.slow
def test_language_model(tmp_path: Path, work: Path) -> None:
    language_model.main(work=work, tiny=True, threads=1, out=tmp_path / "language_model.json")
    report = written(tmp_path / "language_model.json")
    assert report["targets"] == []
    results = report["results"]
    assert abs(results["engine"]["value"] - results["peer"]["value"]) < 0.1
    for side in ("engine", "peer"):
        memory = results[side]
        assert memory["peak_mb"] >= memory["scoring_peak_mb"] >= memory["imported_mb"] > 0
    assert results["score"]["fp32_error"] < 1e-3 < results["score"]["int8_error"] < 0.1
    assert results["rank"]["candidates"] == report["settings"]["candidates"] == 16
    assert results["rank"]["all"]["repeats"] == 2


def test_a_fresh_process_knows_its_own_peak_only() -> None:
    """What the process that starts it holds is not counted, and a peak can be forgotten."""
    ballast = bytearray(200_000_000)
    code = (
        "from bench.support.memory import *; first = peak_mb(); b = bytearray(50_000_000); second = peak_mb(); del b; "
        "forget_peak(); print(first, second, peak_mb())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    first, second, third = map(float, done.stdout.split())
    assert len(ballast) == 200_000_000
    assert first < 100
    assert 45 < second - first < 60
    assert third < second - 40


@pytest.mark.slow
def test_compact(tmp_path: Path, work: Path) -> None:
    for role, folder in models.checkpoints(work, models.TINY).items():
        (tmp_path / role).symlink_to(folder)
    compact.main(work=work, tiny=True, threads=1, checkpoints=tmp_path, out=tmp_path / "compact.json")
    results = written(tmp_path / "compact.json")["results"]
    assert results["start"][0]["peak_mb"] >= results["start"][0]["resident_loaded_mb"] > 0
    assert results["latency"]["total"]["repeats"] == len(examples())
    assert results["latency"]["stages"]["qg"]["calls"] > 0
    assert [way["way"] for way in results["throughput"]] == ["one at a time", "score_many", "8 threads"]
    assert results["pytorch"]["engine"]["repeats"] == results["pytorch"]["peer"]["repeats"] == 3
    assert results["growth"]["points"][-1]["requests"] == results["growth"]["requests"]


def test_batching(tmp_path: Path) -> None:
    batching.main(threads=2, repeats=1, size=2, out=tmp_path / "batching.json")
    results = written(tmp_path / "batching.json")["results"]
    assert {"qg", "qa", "nli", "lm"} <= set(results["roles"])
    for timings in results["roles"].values():
        assert [row["calls"] for row in timings] == list(batching.SIZES[: len(timings)])
    assert [row["pools"] for row in results["pools"]] == [1, 2]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([5.0], (5.0, 5.0, 5.0)),
        ([4.0, 1.0], (2.5, 4.0, 4.0)),
        ([float(n) for n in range(100, 0, -1)], (50.5, 95.0, 99.0)),
    ],
)
def test_timing_takes_quantiles_that_were_measured(samples: list[float], expected: tuple[float, ...]) -> None:
    timing = Timing.of(samples)
    assert (timing.p50_ms, timing.p95_ms, timing.p99_ms) == expected
    assert timing.repeats == len(samples)


def test_interleaved_takes_turns_and_drops_the_warmup() -> None:
    order: list[str] = []
    timings = interleaved({name: (lambda name=name: order.append(name)) for name in "ab"}, repeats=2, warmup=1)
    assert "".join(order) == "ba" + "ab" + "ba"
    assert timings["a"].repeats == timings["b"].repeats == 2


@pytest.mark.parametrize(("value", "at_most", "at_least"), [(1.0, True, False), (2.0, True, True), (3.0, False, True)])
def test_targets_are_inclusive(value: float, at_most: bool, at_least: bool) -> None:
    assert PerformanceTarget.at_most("", value, 2.0, "").passed is at_most
    assert PerformanceTarget.at_least("", value, 2.0, "").passed is at_least


def test_distinct_responses_are_distinct() -> None:
    texts = [dialogue.response for dialogue in distinct(12_000)]
    assert len(set(texts)) == len(texts) == 12_000


def test_tiers(tmp_path: Path) -> None:
    rows = [
        {"response": text, "knowledge": "The tower is 324 metres tall and opened in 1889.", "label": label}
        for text, label in (
            *((f"The tower opened in 1889, {name}.", 1) for name in ("Ann", "Bob")),
            *((f"The tower opened in 1765, {name}.", 0) for name in ("Ann", "Bob")),
        )
    ]
    labelled = tmp_path / "rows.jsonl"
    labelled.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tiers.main([labelled], tiny=True, out=tmp_path / "tiers.json", out_plot=tmp_path / "tiers.svg")
    results = {(row["name"], row["kind"]): row for row in written(tmp_path / "tiers.json")["results"]}
    assert {("fast", "verdict"), ("default", "verdict"), ("q2", "metric"), ("values", "metric")} <= results.keys()
    assert results["values", "metric"]["roc_auc"] == 1.0
    assert any(row["frontier"] for row in results.values())
    drawn = (tmp_path / "tiers.svg").read_bytes()
    assert b"<svg" in drawn
    assert b"mathdefault" not in drawn


def test_a_response_asks_the_models_for_no_more_than_recorded() -> None:
    """A guard without a clock; after a change that is worth more work, run python -m bench.model_work."""
    assert model_work.find_excess(model_work.count_groups("compact"), model_work.read(model_work.COMMITTED)) == []


def test_more_work_than_recorded_is_named() -> None:
    recorded = {"fast": {"nli.onnx": model_work.Work(runs=10, tokens=1000)}}
    assert model_work.find_excess({"fast": {"nli.onnx": model_work.Work(runs=12, tokens=1150)}}, recorded) == []
    assert model_work.find_excess(
        {"fast": {"nli.onnx": model_work.Work(runs=13, tokens=1151), "qa.onnx": model_work.Work(1, 9)}}, recorded
    ) == [
        "fast: nli.onnx has 1151 tokens, 1000 recorded.",
        "fast: nli.onnx has 13 runs, 10 recorded.",
        "fast: qa.onnx has 9 tokens, 0 recorded.",
        "fast: qa.onnx has 1 runs, 0 recorded.",
    ]

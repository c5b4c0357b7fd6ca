"""Everything about a GPU in one command, tried on tiny models on the CPU, and its parts."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from bench.gpu import parity
from bench.gpu.default import SENTENCES, make_responses
from bench.gpu.predictions import PROCESS_GIB
from bench.gpu.prepare import fewer_gate_texts
from bench.gpu.processes import CONTEXT_GIB, Room, choose_counts
from bench.gpu.report import list_comparisons, list_targets, make_results
from bench.gpu.roles import find_error
from bench.gpu.stages import Record
from bench.gpu.work import Work, count_work, find_repeats, once, rate_work
from bench.gpu_all import COMPARED, make_stages
from bench.support.common import ROOT
from groundwire.engine import Engine, Score
from groundwire.engine.schema.results import UnsupportedSpan
from groundwire.engine.text.sentences import sentences
from groundwire.export.verify import examples, language_model
from tests.support.fakes import world


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_one_command_measures_everything(tmp_path: Path) -> None:
    out = tmp_path / "results" / "gpu_all.json"
    command = [sys.executable, "-m", "bench.gpu_all", "--tiny", "--device", "cpu", "--minutes", "14", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["targets"] == []
    results = report["results"]
    stages = {stage["name"]: stage for stage in results["stages"]}
    assert {name: stage["message"] for name, stage in stages.items() if stage["status"] != "done"} == {
        "export.reader": "the embedded reader is not tiny, and a CPU has its own graphs",
        "default.half": "the role reader was not exported",
    }
    assert stages["ceilings"]["results"]["half_tflops"] > 0
    assert stages["export.lm"]["results"]["precision"] == "fp32"
    assert stages["parity"]["results"]["same_verdicts"] == stages["parity"]["results"]["same_marks"] == 1.0
    assert any(row["measured"] for row in results["predictions"])
    assert all(row["failures"] == [] for row in stages["certify"]["results"])
    assert {row["bundle"] for row in stages["certify"]["results"]} == {"compact", "reader"}
    default = stages["default"]["results"]
    assert [row["group"] for row in default["latency"]] == ["1 sentence", "8 sentences"]
    assert all(row["statuses"] == {"scored": 2} for row in default["latency"])
    assert [rate["in_flight"] for rate in default["rates"]] == [2, 4, 8]
    assert [row["processes"] for row in stages["default.processes"]["results"]["rows"]] == [4, 1]
    latency = stages["latency"]["results"]["rows"]
    assert stages["latency"]["results"]["warm_up"]["seconds"] > 0
    assert [row["metrics"] for row in latency] == ["full", "full at once", "q2", "q2 at once"]
    assert all(row["stages"]["qg"]["batches"] > 0 for row in latency)
    loads = stages["load"]["results"]["rows"]
    assert [row["rate"]["in_flight"] for row in loads] == [2, 4, 8] * 2
    assert all(row["rate"]["per_second"] > 0 and row["interpreter_ms"] > 0 for row in loads)
    processes = stages["processes"]["results"]["rows"]
    assert [row["processes"] for row in processes] == [2, 1]
    assert all(row["rate"]["per_second"] > 0 for row in processes)
    assert set(stages["q2"]["results"]["per_second"]) == {"engine", "batched"}
    rows = [row for role in COMPARED for row in stages[f"role.{role}"]["results"]]
    assert len(rows) == len(results["efficiency"]) == 2 * len(COMPARED)
    for row in rows:
        assert row["ratios"]["eager"] > 0
        assert row["logit_error"]["engine"] < 1e-3
        assert row["alone_error"] < 1e-3
        assert set(row["errors"]) <= {"graph", "launches"}
    for name in ("roles.svg", "roles.png", "load.svg", "load.png"):
        assert b"mathdefault" not in (out.parent / f"gpu_all_{name}").read_bytes()


def test_a_value_that_is_no_number_is_an_infinite_error() -> None:
    truth = [np.array([1.0, 2.0], np.float32), np.array([3.0], np.float32)]
    assert find_error(truth, [truth[0] + np.float32(0.5), truth[1]], truth) == pytest.approx(0.5 / np.std([1, 2, 3]))
    assert find_error(truth, [truth[0], np.array([np.nan], np.float32)], truth) == float("inf")


def test_what_matters_most_comes_first_and_a_stage_has_one_name() -> None:
    names = [stage.name for group in make_stages(compiled=True) for stage in group]
    assert len(names) == len(set(names))
    order = [
        "certify",
        "default",
        "default.processes",
        "export.qa",
        "default.half",
        "role.qg",
        "role.qa",
        "latency",
        "load",
        "processes",
        "q2",
        "role.nli",
        "compile.qa",
    ]
    assert sorted([*order, "compile.qa"], key=names.index) == [*order, "compile.qa"]


def test_the_limits_of_the_stages_add_up_to_eight_minutes() -> None:
    assert sum(max(stage.seconds for stage in group) for group in make_stages()) <= 480


def test_the_work_of_a_model_is_that_of_its_products() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2, bias=False))
    work = count_work(model, lambda: model(torch.zeros(3, 5, 4)), once, 2)
    assert work == Work(2 * 15 * (32 + 16) / 1e12, 2 * (32 + 16) / 1e9)


@pytest.mark.parametrize(
    ("name", "repeats"),
    [
        ("encoder.block.0.layer.0.SelfAttention.q", (1, 1)),
        ("decoder.block.0.layer.1.EncDecAttention.k", (1, 1)),
        ("decoder.block.0.layer.1.EncDecAttention.q", (5, 20)),
        ("lm_head", (5, 20)),
    ],
)
def test_a_decoder_repeats_its_products_for_every_beam_and_step(name: str, repeats: tuple[int, int]) -> None:
    assert find_repeats(5, 20)(name) == repeats


@pytest.mark.parametrize(
    ("work", "fraction", "bound"),
    [
        ({"tflop": 1.0, "weight_gb": 0.1}, 0.5, "products"),
        ({"tflop": 0.01, "weight_gb": 6.0}, 0.75, "memory"),
    ],
)
def test_a_run_is_near_one_ceiling(work: dict[str, float], fraction: float, bound: str) -> None:
    rated = rate_work(work, 2.0, {"half_tflops": 1000.0, "copy_gbs": 4000.0})
    assert (rated.fraction, rated.bound) == (pytest.approx(fraction), bound)
    assert rated.tflops == pytest.approx(500 * work["tflop"])
    assert rate_work(work, 2.0, None).fraction is None


def timing(milliseconds: float) -> dict[str, float]:
    return {"p50_ms": milliseconds, "p95_ms": milliseconds, "p99_ms": 2 * milliseconds, "repeats": 9}


def row(role: str, full: bool, **others: Any) -> dict[str, Any]:
    return {
        "steps": 1,
        "role": role,
        "input": f"{full}",
        "full": full,
        "timings": {"engine": timing(2.0)},
        "work": {"tflop": 1.0, "weight_gb": 1.0},
        "ratios": {},
        "errors": {},
        "kernels": None,
    } | others


def test_targets_take_the_quickest_of_pytorch() -> None:
    captures = {"captured": 9, "uncaptured": 2, "failed": 0}
    warm_up = {"seconds": 25.0, "gib": 10.0, "captures": captures | {"captured": 8}}
    default = {
        "latency": [{"group": "1 sentence", "timing": timing(13.0), "captures": captures | {"uncaptured": 0}}],
        "rates": [{"per_second": 90.0}, {"per_second": 95.0}],
        "warm_up": warm_up | {"seconds": 9.0, "captures": captures},
    }
    latency = [{"metrics": "full", "timing": timing(24.0), "captures": captures}]
    load = [{"metrics": "full", "rate": {"per_second": 90.0}, "qa_tokens": 1000.0}]
    measured = row("qa", False, ratios={"eager": 9.0, "graph": 4.0}, kernels=229)
    records = [
        Record("certify", "done", 1.0, results=[{"role": "qg", "failures": ["batch spread 1 > 0.1"]}]),
        Record("default", "cut", 1.0, results=default),
        Record("default.processes", "cut", 1.0, results={"rows": [{"processes": 8, "rate": {"per_second": 480.0}}]}),
        Record("latency", "done", 1.0, results={"warm_up": warm_up, "rows": latency}),
        Record("load", "cut", 1.0, results={"rows": load}),
        Record("processes", "cut", 1.0, results={"rows": [{"processes": 8, "rate": {"per_second": 130.0}}]}),
        Record("role.qa", "done", 1.0, results=[measured]),
        Record("compile.qa", "cut", 1.0, results=[row("qa", False, ratios={"compile": 2.0})]),
        Record("q2", "failed", 1.0, "out of memory"),
    ]
    (merged,) = list_comparisons(records)
    assert merged["ratios"] == {"eager": 9.0, "graph": 4.0, "compile": 2.0}
    assert [(target.name, target.measured, target.passed) for target in list_targets(records)] == [
        ("qg, bounds missed", 1, False),
        ("default, p50", 13.0, True),
        ("default, p99", 26.0, True),
        ("default, 1 sentence, runs that were not captured", 0, True),
        ("default, 1 sentence, captures after the warm-up", 0, True),
        ("full set, p50", 24.0, True),
        ("full set, p99", 48.0, False),
        ("full set, runs that were not captured", 2, False),
        ("full set, captures after the warm-up", 1, False),
        ("memory of a process", 10.0, True),
        ("full set, saturated", 130.0, True),
        ("tokens of extractive QA, saturated", 130_000.0, True),
        ("qa, kernels of False", 229, True),
        ("qa, one response, over PyTorch", 2.0, False),
    ]
    results = make_results(records, computes=True)
    assert results.efficiency[0].efficiency.fraction is None
    expected = {row.name: row.measured for row in results.predictions}
    assert expected["default, one sentence, p50"] == 13.0
    assert expected["default, one process"] == 95.0
    assert expected["default, 8 processes"] == 480.0
    assert expected["default, warm-up"] == 9.0
    assert expected["full set, p50"] == 24.0
    assert expected["full set, 8 processes"] == 130.0
    assert expected["warm-up"] == 25.0
    assert expected["question generation, a step"] is None
    assert {row.measured for row in make_results((), computes=True).predictions} == {None}
    assert msgspec.json.encode(results)


@pytest.mark.parametrize(
    ("free", "counts"),
    [(138.0, (8, 4, 2, 1)), (78.0, (6, 4, 2, 1)), (46.0, (3, 2, 1)), (23.3, (2, 1)), (12.0, (1,)), (11.0, ())],
)
def test_processes_need_no_more_than_the_memory_that_is_free(free: float, counts: tuple[int, ...]) -> None:
    room = Room(PROCESS_GIB + CONTEXT_GIB, False, free)
    assert choose_counts(room) == counts
    assert all(count * room.process_gib <= free for count in counts)


@pytest.mark.parametrize("count", SENTENCES)
def test_responses_have_so_many_sentences_and_differ(count: int) -> None:
    responses = list(islice(make_responses(count), 60))
    assert {len(sentences(request.response)) for request in responses} == {count}
    assert len({request.response for request in responses}) == len(responses)
    assert all(len(request.knowledge) >= count // 2 for request in responses)


def test_an_export_is_compared_on_fewer_texts_inside_the_block_alone() -> None:
    with fewer_gate_texts(16):
        assert len(examples.EXAMPLES) == len(language_model.EXAMPLES) == 16
        assert language_model.APART == 8
    assert len(examples.EXAMPLES) == 64
    assert language_model.APART == 32


def test_results_that_differ_from_the_cpus_are_named() -> None:
    with Engine(world()) as engine:
        ours = [engine.score(text, "Elvis was born in 1935.", metrics=["q2"]) for text in ("Elvis.", "It was 1936.")]
    assert parity.compare(ours, ours, ["a", "b"], ("", "")).differences == ()
    other = [ours[0], change(ours[1])]
    result = parity.compare(ours, other, ["a", "b"], ("", ""))
    assert (result.same_verdicts, result.same_marks, result.same_statuses) == (0.5, 0.5, 1.0)
    assert result.largest["q2"] == pytest.approx(0.25)
    assert [difference.response for difference in result.differences] == ["b", "b"]


def change(score: Score) -> Score:
    (name, result), *_ = score.metrics.items()
    assert result.value is not None
    return msgspec.structs.replace(
        score,
        verdict=msgspec.structs.replace(score.verdict, label="consistent"),
        metrics={name: msgspec.structs.replace(result, value=result.value + 0.25)},
        unsupported=tuple[UnsupportedSpan, ...](),
    )

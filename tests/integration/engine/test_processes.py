"""An engine with worker processes: the scores of one process, nothing lost when one ends, and typed errors."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from groundwire.engine import Engine, Options, Score
from groundwire.engine.metrics import METRICS, Metric, register
from groundwire.engine.processes import process, runtime, watchdog
from groundwire.engine.processes.runtime import ProcessRuntime
from groundwire.engine.schema.options import NliOptions
from groundwire.engine.schema.results import MetricResult, Request, Timings
from groundwire.engine.schema.steps import Steps
from groundwire.runtime.errors import BundleError, EngineClosed, ModelError
from tests.support import worker_engines
from tests.support.broken_folds import MESSAGE
from tests.support.worker_engines import FAILING, FROZEN, POISON, SLOW, SLOW_SECONDS

ITEMS = [(f"{'AB'[number % 2]} bees fly {number} times.", "Bees fly and make honey.") for number in range(60)]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with worker_engines.open_processes(2) as loaded:
        yield loaded


def drop_times(score: Score) -> Score:
    return msgspec.structs.replace(score, timings=Timings(0, {}))


def list_pids(engine: Engine) -> list[int]:
    runtime = engine.core.runtime
    assert isinstance(runtime, ProcessRuntime)
    return [process.pid for process in runtime._ready]


def wait_for(count: int, engine: Engine) -> None:
    """Until so many processes compute."""
    end = time.monotonic() + 60
    while engine.statistics().processes != count:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_scores_are_those_of_one_process(engine: Engine) -> None:
    with worker_engines.load() as alone:
        expected = [drop_times(score) for score in alone.score_many(ITEMS, metrics="nli")]
        assert [drop_times(score) for score in engine.score_many(ITEMS, metrics="nli")] == expected
        ranked = alone.rank(["Bees.", "A bee."], "Bees fly.", metric="nli")
        assert engine.rank(["Bees.", "A bee."], "Bees fly.", metric="nli") == ranked
    statistics = engine.statistics()
    assert statistics.stages["nli"].calls >= len(ITEMS)
    assert set(statistics.stages) == {"nli"}


def test_a_killed_process_loses_no_request(engine: Engine) -> None:
    wait_for(2, engine)
    killed, other = list_pids(engine)
    os.kill(other, signal.SIGTERM)  # as a service manager does, which asks all processes of a service to end
    before = engine.statistics().restarts
    scores = engine.score_many(
        [(f"C{response}", knowledge) for response, knowledge in ITEMS], metrics="nli", options=Options(max_windows=9)
    )
    first = next(scores)
    os.kill(killed, signal.SIGKILL)
    assert {score.status for score in (first, *scores)} == {"scored"}
    wait_for(2, engine)
    assert engine.statistics().restarts == before + 1
    assert killed not in list_pids(engine)
    assert other in list_pids(engine)


def test_a_request_that_ends_every_process_fails_alone(engine: Engine) -> None:
    wait_for(2, engine)
    items = [*ITEMS[:4], (f"A {POISON}.", "Bees fly."), *[(f"D{response}", text) for response, text in ITEMS[:4]]]
    scores = list(engine.score_many(items, metrics="nli"))
    assert [score.status for score in scores] == ["scored"] * 4 + ["failed"] + ["scored"] * 4
    assert "ended while they worked on it" in scores[4].metrics["nli"].message
    wait_for(2, engine)


def test_statuses_and_errors_of_a_process_are_its_own(engine: Engine) -> None:
    failed = engine.score(f"A {FAILING}.", "Bees fly.", metrics="nli")
    assert failed.status == "failed"
    assert failed.metrics["nli"].message == "the model failed"
    late = engine.score("A bee.", "Bees fly fast.", metrics="nli", options=Options(deadline_ms=0.5))
    assert late.status == "deadline"


def test_loaded_objects_are_left_out_of_garbage_collections(engine: Engine) -> None:
    failed = engine.score(f"A {FROZEN}.", "Bees fly.", metrics="nli")
    assert int(failed.metrics["nli"].message) > 10_000


def test_a_metric_of_the_caller_runs_here_with_the_models_of_the_processes(engine: Engine) -> None:
    def compute(request: Request, options: Options, roles: object) -> Steps[MetricResult]:
        (label,) = yield [worker_engines.ask(request.response)]
        return MetricResult("own", "scored", float(label.label == "entailment"), message=str(os.getpid()))

    register(Metric(name="own", title="own", description="what nli says", compute=compute, roles=frozenset({"nli"})))
    try:
        score = engine.score("A bee.", "Bees fly.", metrics=["own", "nli"])
    finally:
        del METRICS["own"]
    assert score.metrics["own"].value == 1
    assert score.metrics["own"].message == str(os.getpid())
    assert score.metrics["nli"].status == "scored"


def test_a_defect_of_the_verdict_in_a_process_is_a_failed_score() -> None:
    with worker_engines.open_processes(1, "load_broken") as engine:
        items = [(text, "Bees fly.") for text in ("A bee.", "A broken bee.", "A bee.")]
        scores = list(engine.score_many(items, metrics="nli"))
    assert [score.status for score in scores] == ["scored", "failed", "scored"]
    assert (scores[1].message, scores[1].metrics["nli"].status) == (MESSAGE, "scored")


def test_processes_warm_up_the_models_of_the_metrics() -> None:
    with worker_engines.open_processes(1, "load_failing_warm_up") as engine:
        engine.warmup(["overlap"])
        for metrics in (None, ["nli"]):
            with pytest.raises(ModelError, match="Warming up failed: the model failed"):
                engine.warmup(metrics)


def test_what_loading_raises_in_a_process_is_raised_here() -> None:
    with pytest.raises(BundleError, match="there is no bundle"):
        worker_engines.open_processes(2, "refuse")
    with pytest.raises(ModelError, match=r"ended while it loaded its models: process [0-9]+ ended with code 3"):
        worker_engines.open_processes(2, "leave")


def test_a_process_that_cannot_be_replaced_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = tmp_path / "allowed"
    allowed.touch()
    monkeypatch.setenv(worker_engines.ALLOWED, str(allowed))
    with worker_engines.open_processes(1, "load_if_allowed") as engine:
        allowed.unlink()
        os.kill(list_pids(engine)[0], signal.SIGKILL)
        wait_for(0, engine)
        score = engine.score("A bee.", "Bees fly.", metrics="nli")
        assert score.status == "failed"
        assert score.message.startswith("No worker process runs; the models are gone")
        allowed.touch()
        wait_for(1, engine)
        assert engine.score("A bee.", "Bees fly.", metrics="nli").status == "scored"


def test_closing_ends_the_processes_and_answers_everyone() -> None:
    engine = worker_engines.open_processes(2)
    pids = list_pids(engine)
    pending = [engine.submit(Request(response, (text,)), engine.plan("nli")) for response, text in ITEMS]
    engine.close()
    assert {each.result().status for each in pending} <= {"cancelled", "scored"}
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    with pytest.raises(EngineClosed):
        engine.score("A bee.", "Bees fly.", metrics="nli")


def test_a_process_that_hangs_is_replaced(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(runtime, "TICK_SECONDS", 0.5)
    with worker_engines.open_processes(2) as engine, caplog.at_level("INFO", "groundwire"):
        time.sleep(2 * watchdog.SILENT_TICKS * 0.5)
        assert engine.statistics().restarts == 0, "processes without work show that they live"
        stopped, other = list_pids(engine)
        os.kill(stopped, signal.SIGSTOP)
        assert {score.status for score in engine.score_many(ITEMS, metrics="nli")} == {"scored"}
        wait_for(2, engine)
        assert engine.statistics().restarts == 1
        assert stopped not in list_pids(engine)
        assert other in list_pids(engine)
    messages = [record.getMessage() for record in caplog.records]
    assert any(f"worker process {stopped} has given no sign of life" in message for message in messages)
    assert any(message.endswith(f"computes in place of {stopped}") for message in messages)


def test_processes_that_hang_or_work_are_ended_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "EXIT_SECONDS", 3.0)
    engine = worker_engines.open_processes(3)
    stopped = list_pids(engine)[:2]
    pending = [engine.submit(Request(f"A {SLOW} {number}.", ("Bees fly.",)), engine.plan("nli")) for number in range(3)]
    end = time.monotonic() + 30
    while engine.statistics().running_calls < 3:
        assert time.monotonic() < end
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    started = time.monotonic()
    engine.close()
    assert {each.result().status for each in pending} == {"cancelled"}
    assert time.monotonic() - started < min(2 * process.EXIT_SECONDS, SLOW_SECONDS), "not one after another"


def test_an_engine_says_how_many_processes_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with worker_engines.load() as alone:
        assert alone.core.processes == 1
    allowed = tmp_path / "allowed"
    allowed.touch()
    monkeypatch.setenv(worker_engines.ALLOWED, str(allowed))
    with worker_engines.open_processes(2, "load_if_allowed") as engine:
        assert engine.core.processes == 2
        allowed.unlink()
        for pid in list_pids(engine):
            os.kill(pid, signal.SIGKILL)
        wait_for(0, engine)
        assert engine.core.processes == 0
        assert engine.statistics().configured_processes == 2


def test_a_process_stops_with_a_request_whose_deadline_has_passed() -> None:
    with worker_engines.open_processes(1) as engine:
        # Its sentences are calls of five milliseconds each; they would take ten seconds.
        response = " ".join(f"A bee flies {number} times." for number in range(2_000))
        options = Options(deadline_ms=1_000, nli=NliOptions(sentences=True), max_response_chars=10**6)
        assert engine.score(response, "Bees fly.", metrics="nli", options=options).status == "deadline"
        runtime = engine.core.runtime
        assert isinstance(runtime, ProcessRuntime)
        end = time.monotonic() + 30
        while any(process.unanswered for process in runtime._ready):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert sum(stage.calls for stage in engine.statistics().stages.values()) < 2_000
        assert engine.score("Bees fly.", "Bees fly.", metrics="nli").status == "scored"

"""An error between the metrics' results and the score is a failed score, and ends nothing else."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from groundwire.engine import Engine, MetricResult, Request, Score
from groundwire.engine.metrics import METRICS, find
from groundwire.engine.metrics.base import WordEvidence
from groundwire.guard import Guard, SentenceEvent
from groundwire.repair import Corrector
from tests.support.broken_folds import MESSAGE, break_folds
from tests.support.streams import KNOWLEDGE, world

TEXTS = ("Honey is sweet.", "Honey is broken. It is blue.", "Honey is golden.")
ITEMS = [(text, KNOWLEDGE) for text in TEXTS]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    break_folds(monkeypatch)
    with Engine(world()) as engine:
        yield engine


def check(scores: list[Score]) -> None:
    """Only the score of the broken text has no verdict; its metrics keep their results."""
    assert [score.status for score in scores] == ["scored", "failed", "scored"]
    assert [score.verdict.label for score in scores] == ["consistent", "unknown", "consistent"]
    broken = scores[1]
    assert (broken.value, broken.message, broken.verdict.message) == (None, MESSAGE, MESSAGE)
    assert {result.status for result in broken.metrics.values()} == {"scored"}
    assert (broken.sentences, broken.unsupported, broken.signature) == ((), (), scores[0].signature)
    assert broken.timings.total_ms > 0
    assert Score.from_json(broken.to_json()) == broken


def test_a_score_says_what_failed_and_the_log_where(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    check([engine.score(*item) for item in ITEMS])
    (record,) = caplog.records
    assert record.message == "the verdict failed"
    assert record.exc_info is not None
    assert record.exc_info[0] is IndexError


def test_a_batch_goes_on(engine: Engine) -> None:
    check(list(engine.score_many(ITEMS)))
    plan = engine.core.plan()
    check(list(engine.core.score_together([Request(text, (KNOWLEDGE,)) for text in TEXTS], plan).result()))


def test_asyncio_goes_on(engine: Engine) -> None:
    async def score() -> list[Score]:
        alone = [await engine.ascore(*item) for item in ITEMS]
        assert [score.status for score in alone] == ["scored", "failed", "scored"]
        return [score async for score in engine.ascore_many(ITEMS)]

    check(asyncio.run(score()))


def test_a_correction_leaves_the_response_as_it_is(engine: Engine) -> None:
    correction = Corrector(engine).correct(TEXTS[1], KNOWLEDGE)
    assert (correction.status, correction.response) == ("failed", TEXTS[1])
    assert MESSAGE in correction.message


def test_a_sentence_of_a_stream_has_the_outcome_failed(engine: Engine) -> None:
    with Guard(engine).open(KNOWLEDGE) as stream:
        events = [event for text in TEXTS for event in stream.feed(f"{text} ")]
        stream.finish()
    outcomes = [event for event in [*events, *stream.last_events] if isinstance(event, SentenceEvent)]
    assert [event.outcome for event in outcomes] == ["consistent", "failed"]
    assert outcomes[1].verdict.message == MESSAGE
    assert stream.released == "Honey is sweet."
    assert stream.score is not None
    assert stream.score.status == "failed"


def test_the_last_sentence_of_a_stream_has_the_outcome_failed(engine: Engine) -> None:
    with Guard(engine).open(KNOWLEDGE) as stream:
        stream.feed("Honey is sweet. Honey is broken")
        stream.finish()
    (event,) = [event for event in stream.last_events if isinstance(event, SentenceEvent)]
    assert (event.outcome, event.verdict.message) == ("failed", MESSAGE)
    assert stream.released == "Honey is sweet."


@pytest.mark.parametrize("part", ["features", "part", "words"])
def test_a_record_of_a_metric_that_raises_is_a_failed_score(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> NoReturn:
        raise ZeroDivisionError("division by zero")

    metric = find("nli")
    assert metric is not None
    parts: dict[str, Any] = {"words": WordEvidence(1.0, spans=fail)} if part == "words" else {part: fail}
    monkeypatch.setitem(METRICS, "nli", dataclasses.replace(metric, **parts))
    with Engine(world()) as engine:
        score = engine.score("Honey is sweet. Honey is blue.", KNOWLEDGE)
    assert (score.status, score.verdict.label) == ("failed", "unknown")
    assert score.message == "ZeroDivisionError: division by zero. This is a defect of the verdict; please report it."
    assert isinstance(score.metrics["nli"], MetricResult)

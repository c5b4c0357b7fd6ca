"""Events of scores, through OpenTelemetry's own SDK and an exporter in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

load("opentelemetry.sdk._logs")
from opentelemetry.sdk._logs import LoggerProvider  # noqa: E402
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402

from groundwire.adapters.opentelemetry import emit_score  # noqa: E402


def emit(engine: Engine, response: str, **settings: Any) -> tuple[Any, Mapping[str, Any]]:
    """The record that an exporter gets, and its attributes."""
    exporter, provider = InMemoryLogRecordExporter(), LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    emit_score(engine.score(response, KNOWLEDGE), provider=provider, **settings)
    (finished,) = exporter.get_finished_logs()
    record = finished.log_record
    return record, dict(record.attributes or {})


def test_a_score_is_an_event_with_a_number_and_a_label(engine: Engine) -> None:
    for response, label in ((CONSISTENT, "supported"), (INCONSISTENT, "not_supported")):
        record, attributes = emit(engine, response, response_id="chatcmpl-1")
        assert record.event_name == "gen_ai.evaluation.result"
        assert attributes["gen_ai.evaluation.name"] == "groundedness"
        assert attributes["gen_ai.evaluation.score.value"] == PROBABILITY[response]
        assert attributes["gen_ai.evaluation.score.label"] == label
        assert attributes["gen_ai.response.id"] == "chatcmpl-1"
        assert "gen_ai.evaluation.explanation" not in attributes


def test_what_states_nothing_has_no_number(engine: Engine) -> None:
    _, attributes = emit(engine, GREETING, name="faithful")
    assert attributes["gen_ai.evaluation.score.label"] == "nothing_to_verify"
    assert attributes["gen_ai.evaluation.name"] == "faithful"
    assert {"gen_ai.evaluation.score.value", "error.type", "gen_ai.response.id"}.isdisjoint(attributes)


def test_what_was_not_checked_says_so(failing_engine: Engine) -> None:
    _, attributes = emit(failing_engine, CONSISTENT, explanation=True)
    assert attributes["error.type"] == "not_checked"
    assert FAILURE in attributes["gen_ai.evaluation.explanation"]
    assert {"gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label"}.isdisjoint(attributes)


def test_the_evaluated_span_is_the_parent(engine: Engine) -> None:
    span = TracerProvider().get_tracer("test").start_span("chat")
    span.end()
    record, _ = emit(engine, CONSISTENT, span=span)
    assert record.span_id == span.get_span_context().span_id
    assert record.trace_id == span.get_span_context().trace_id


def test_words_of_the_response_stay_at_home_unless_they_are_asked_for(engine: Engine) -> None:
    _, attributes = emit(engine, INCONSISTENT)
    assert "gen_ai.evaluation.explanation" not in attributes
    assert not any("blue" in str(value) for value in attributes.values())
    _, attributes = emit(engine, INCONSISTENT, explanation=True)
    assert attributes["gen_ai.evaluation.explanation"]


def test_without_a_provider_nothing_happens(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_PYTHON_LOGGER_PROVIDER", raising=False)
    emit_score(engine.score(CONSISTENT, KNOWLEDGE))

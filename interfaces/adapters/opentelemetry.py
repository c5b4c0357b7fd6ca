"""Scores as events of OpenTelemetry's conventions for generative models: ``gen_ai.evaluation.result``.

Needs the extra: ``pip install 'groundwire[opentelemetry]'``. It has no exporter: events go to the provider of your
program, and nowhere without one.

>>> from groundwire.adapters.opentelemetry import emit_score                                # doctest: +SKIP
>>> emit_score(engine.score(response, knowledge), span=span)                               # doctest: +SKIP
"""

from __future__ import annotations

from types import MappingProxyType

from groundwire.engine import Score
from groundwire.engine.schema.results import Label

from .checking import read_score
from .extras import needs

with needs("opentelemetry"):
    from opentelemetry._logs import LoggerProvider, SeverityNumber, get_logger
    from opentelemetry.trace import Span, set_span_in_context

__all__ = ["LABELS", "emit_score"]

EVENT = "gen_ai.evaluation.result"
LABELS: MappingProxyType[Label, str] = MappingProxyType(
    {"consistent": "supported", "inconsistent": "not_supported", "unverifiable": "nothing_to_verify"}
)
"""``gen_ai.evaluation.score.label`` by the verdict's label; ``unknown`` has none."""
NOT_CHECKED = "not_checked"
"""``error.type`` of a response without a verdict."""


def emit_score(
    score: Score,
    *,
    span: Span | None = None,
    response_id: str | None = None,
    name: str = "groundedness",
    explanation: bool = False,
    provider: LoggerProvider | None = None,
) -> None:
    """Emit the event of a score.

    Args:
        score: The score.
        span: The span of the response that was evaluated, which becomes the event's parent; None is the current one.
        response_id: The response's ``gen_ai.response.id``; None leaves it out.
        name: ``gen_ai.evaluation.name``.
        explanation: Whether the event says why, which may have words of the response.
        provider: Takes the event; None is the provider of the program.
    """
    checked = read_score(score)
    attributes: dict[str, str | float] = {"gen_ai.evaluation.name": name}
    if checked.probability is not None:
        attributes["gen_ai.evaluation.score.value"] = checked.probability
    if checked.label in LABELS:
        attributes["gen_ai.evaluation.score.label"] = LABELS[checked.label]
    else:
        attributes["error.type"] = NOT_CHECKED
    if explanation:
        attributes["gen_ai.evaluation.explanation"] = checked.reason
    if response_id is not None:
        attributes["gen_ai.response.id"] = response_id
    get_logger("groundwire", logger_provider=provider).emit(
        context=None if span is None else set_span_in_context(span),
        severity_number=SeverityNumber.INFO,
        attributes=attributes,
        event_name=EVENT,
    )

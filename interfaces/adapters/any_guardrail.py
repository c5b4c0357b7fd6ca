"""A guardrail with any-guardrail's result.

Needs the extra: ``pip install 'groundwire[any-guardrail]'``.

>>> from groundwire.adapters.any_guardrail import GroundwireGuardrail                       # doctest: +SKIP
>>> GroundwireGuardrail().validate("Honey spoils.", context="Honey never spoils.").valid        # doctest: +SKIP
False
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from groundwire.engine import Engine, Options
from groundwire.engine.extend import Knowledge

from .checking import Checked, Checker
from .extras import needs

with needs("any-guardrail"):
    from any_guardrail import (
        BackendType,
        CategoryResult,
        Guardrail,
        GuardrailCategory,
        GuardrailMetadata,
        GuardrailOutput,
        GuardrailStage,
        OutputShape,
        SpanResult,
    )

__all__ = ["GroundwireGuardrail", "make_output"]


def make_output(checked: Checked) -> GuardrailOutput:
    """Return what any-guardrail's guardrails return.

    Args:
        checked: The decision.

    Returns:
        ``valid`` is whether the response passed, ``score`` the risk: 1 minus the probability, None without one. Whether
        the verdict was unknown is in ``categories``, as a ``triggered`` of None.
    """
    is_wrong = None if checked.passed is None else not checked.passed
    risk = None if checked.probability is None else 1 - checked.probability
    return GuardrailOutput(
        valid=checked.passed is True,
        explanation=checked.reason,
        score=risk,
        categories=[CategoryResult(name="hallucination", triggered=is_wrong, score=risk)],
        spans=[SpanResult(start=span.start, end=span.end, text=span.text, label=span.reason) for span in checked.spans],
        extra=checked.to_dict(),
    )


class GroundwireGuardrail(Guardrail):  # type: ignore[misc]  # any_guardrail is not read by mypy
    """Scores how faithful a response is to its knowledge."""

    METADATA: ClassVar[GuardrailMetadata] = GuardrailMetadata(
        description="Scores how faithful a response is to its knowledge.",
        display_name="Groundwire",
        categories=frozenset({GuardrailCategory.HALLUCINATION}),
        primary_category=GuardrailCategory.HALLUCINATION,
        stages=frozenset({GuardrailStage.OUTPUT}),
        output_shapes=frozenset({OutputShape.BINARY, OutputShape.SPAN}),
        backend=BackendType.LOCAL_ENCODER,
        required_validate_kwargs=frozenset({"context"}),
        optional_validate_kwargs=frozenset({"question"}),
        vendor="Groundwire",
        default_license="apache-2.0",
    )

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> None:
        """Make the guardrail.

        Args:
            engine: The engine; None is ``default_engine``.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
        """
        self._checker = Checker(engine, metrics=metrics, options=options)

    def validate(
        self, input_text: str, context: Knowledge | None = None, question: str | None = None, **_: Any
    ) -> GuardrailOutput:
        """Check a response.

        Args:
            input_text: The response.
            context: The knowledge, one text or several passages.
            question: The utterance before the response.
            **_: Further arguments of any-guardrail, which are not used.

        Returns:
            The output, as from ``make_output``.
        """
        return make_output(self._checker.check(input_text, context, [question] if question else ()))

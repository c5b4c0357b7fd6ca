"""A validator for Guardrails AI.

Needs the extra: ``pip install 'groundwire[guardrails-ai]'``.

>>> from groundwire.adapters.guardrails_ai import GroundwireValidator                       # doctest: +SKIP
>>> guard = Guard().use(GroundwireValidator(on_fail="exception"))                               # doctest: +SKIP
>>> guard.validate(answer, metadata={"knowledge": documents})                                   # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from groundwire.engine import Engine, Options

from .checking import Checker
from .extras import needs

with needs("guardrails-ai"):
    from guardrails.validator_base import (
        ErrorSpan,
        FailResult,
        PassResult,
        ValidationResult,
        Validator,
        register_validator,
    )

__all__ = ["GroundwireValidator"]


@register_validator(name="groundwire/consistent", data_type="string")
class GroundwireValidator(Validator):  # type: ignore[misc]  # guardrails is not read by mypy
    """Lets a text pass only if ``metadata["knowledge"]`` supports it, or if it states nothing.

    Without a score it fails too. ``metadata["history"]`` may have the utterances before the text. A guard that streams
    checks sentence by sentence, each by itself.
    """

    required_metadata_keys = ["knowledge"]  # noqa: RUF012 - a field of Guardrails

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        on_fail: str | Callable[[Any, FailResult], Any] | None = None,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> None:
        """Make the validator.

        Args:
            engine: The engine; None is ``default_engine``.
            on_fail: The action of Guardrails for a text that fails; None raises an exception.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
        """
        super().__init__(on_fail=on_fail)
        self._checker = Checker(engine, metrics=metrics, options=options)

    def _validate(self, value: Any, metadata: dict[str, Any]) -> ValidationResult:
        checked = self._checker.check(value, metadata.get("knowledge") or (), metadata.get("history") or ())
        if checked.passed is True:
            return PassResult(metadata=checked.to_dict())
        spans = [ErrorSpan(start=span.start, end=span.end, reason=span.reason) for span in checked.spans]
        return FailResult(error_message=checked.reason, error_spans=spans or None, metadata=checked.to_dict())

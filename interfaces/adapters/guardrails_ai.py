"""A validator for Guardrails AI.

Needs the extra: ``pip install 'groundwire[guardrails-ai]'``.

>>> from groundwire.adapters.guardrails_ai import GroundwireValidator                       # doctest: +SKIP
>>> guard = Guard().use(GroundwireValidator(on_fail="exception"))                               # doctest: +SKIP
>>> guard.validate(answer, metadata={"knowledge": documents})                                   # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from groundwire.engine import Engine, GroundwireError, Options
from groundwire.repair import Corrector

from .checking import Checker
from .extras import needs

with needs("guardrails-ai"):
    from guardrails.types import OnFailAction
    from guardrails.validator_base import (
        ErrorSpan,
        FailResult,
        PassResult,
        ValidationResult,
        Validator,
        register_validator,
    )

__all__ = ["GroundwireValidator"]

_FIXING = (OnFailAction.FIX, OnFailAction.FIX_REASK)
"""Actions that put another text in the place of one that fails."""


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
            on_fail: The action of Guardrails for a text that fails; None raises an exception. ``fix`` lets the text
                of ``Corrector`` through where that passes, and nothing where there is none.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
        """
        super().__init__(on_fail=on_fail)
        self._checker = Checker(engine, metrics=metrics, options=options)

    def _validate(self, value: Any, metadata: dict[str, Any]) -> ValidationResult:
        checked = self._checker.check(value, metadata.get("knowledge") or (), metadata.get("history") or ())
        if checked.passed is True:
            return PassResult(metadata=checked.to_dict())
        fixed = self._correct(value, metadata) if self.on_fail_descriptor in _FIXING else None
        spans = [ErrorSpan(start=span.start, end=span.end, reason=span.reason) for span in checked.spans]
        return FailResult(
            error_message=checked.reason, error_spans=spans or None, fix_value=fixed, metadata=checked.to_dict()
        )

    def _correct(self, text: str, metadata: dict[str, Any]) -> str | None:
        """The corrected text; None where no correction passes."""
        try:
            correction = Corrector(self._checker.engine).correct(
                text,
                metadata.get("knowledge") or (),
                history=metadata.get("history") or (),
                metrics=self._checker.metrics,
                scoring=self._checker.options,
            )
        except GroundwireError:
            return None
        return correction.response if correction.accepted else None

"""A score as other tools read one: did the response pass, by what number, and why.

All adapters go through ``read_score``, so that none of them takes a response for consistent that was not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec

from groundwire.engine import Engine, GroundwireError, Options, Score, UnsupportedSpan, default_engine
from groundwire.engine.extend import Item, Knowledge
from groundwire.engine.schema.base import Record
from groundwire.engine.schema.results import Label

__all__ = ["Checked", "Checker", "NoScore", "read_score"]

STOPPED = ("failed", "cancelled", "deadline")
"""Statuses of a metric that ended before it had a result."""
UNREAD = ("truncated", "invalid")
"""Statuses of a score whose texts could not be read."""


class NoScore(GroundwireError):
    """A response has no score, and the tool that asked has only errors to say so."""


class Checked(Record, frozen=True):
    """What came of checking a response."""

    label: Label
    """The verdict's label; ``unknown`` also if a metric was stopped."""
    passed: bool | None
    """True for ``consistent`` and ``unverifiable``, False for ``inconsistent``, None for ``unknown``: a guard lets
    nothing but True pass."""
    probability: float | None
    """Of being consistent, 0–1; None for a response that has no verdict, or that states nothing to verify."""
    reason: str
    """Why, in one sentence."""
    spans: tuple[UnsupportedSpan, ...] = ()
    """The words of the response that the knowledge does not support."""
    threshold: float | None = None
    """The probability from which a response passes; None without a probability."""

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dictionaries and lists."""
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built

    def require_probability(self) -> float:
        """The probability, for tools that take a number or an error; raises NoScore with the reason."""
        if self.probability is None:
            raise NoScore(self.reason)
        return self.probability


def read_score(score: Score) -> Checked:
    """Return the decision of a score.

    Args:
        score: The score.

    Returns:
        The decision. It has no number if one of its metrics was stopped, or its verdict is ``unknown``.
    """
    verdict = score.verdict
    stopped = [f"{name}: {result.message}" for name, result in score.metrics.items() if result.status in STOPPED]
    if stopped or score.status in UNREAD or verdict.label == "unknown":
        reason = " ".join(stopped) or (score.message if score.status in UNREAD else "") or verdict.message
        return Checked("unknown", None, None, f"There is no score. {reason}".strip(), score.unsupported)
    if verdict.label == "unverifiable":
        return Checked(verdict.label, True, None, "The response states nothing that knowledge could confirm.")
    is_consistent = verdict.label == "consistent"
    reason = "The knowledge supports the response." if is_consistent else _explain(score)
    return Checked(verdict.label, is_consistent, verdict.probability, reason, score.unsupported, verdict.threshold)


def _explain(score: Score) -> str:
    words = ", ".join(f"“{span.text}” ({span.reason})" for span in score.unsupported if span.text)
    return f"The knowledge does not support {words or 'the response'}."


class Checker:
    """Checks responses with one engine, and never raises for what happens to a single one."""

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> None:
        """Use an engine.

        Args:
            engine: The engine; None is ``default_engine``, loaded at the first use.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
        """
        self._given = engine
        self.metrics = metrics
        self.options = options

    @cached_property
    def engine(self) -> Engine:
        """What scores; InvalidRequest if it cannot compute these metrics with these options."""
        engine = self._given or default_engine()
        engine.plan(self.metrics, self.options)
        return engine

    def check(self, response: str, knowledge: Knowledge | None, history: Sequence[str] = ()) -> Checked:
        """Check one response.

        Args:
            response: The text to check.
            knowledge: The text that it should rest on, one text or several passages; empty where a search found
                nothing, None where it is missing, which is unusable input.
            history: The utterances before it, oldest first.

        Returns:
            The decision. Unusable input has the label ``unknown``, with the error's text as its reason.
        """
        engine = self.engine
        if knowledge is None:
            return _MISSING
        try:
            score = engine.score(response, knowledge, history=history, metrics=self.metrics, options=self.options)
        except GroundwireError as error:
            return _refuse(error)
        return read_score(score)

    async def acheck(self, response: str, knowledge: Knowledge | None, history: Sequence[str] = ()) -> Checked:
        """Check one response in asyncio, as ``check``."""
        engine = self.engine
        if knowledge is None:
            return _MISSING
        try:
            score = await engine.ascore(
                response, knowledge, history=history, metrics=self.metrics, options=self.options
            )
        except GroundwireError as error:
            return _refuse(error)
        return read_score(score)

    def check_many(self, items: Iterable[Item]) -> Iterator[Checked]:
        """Check many responses together.

        Args:
            items: The items of ``Engine.score_many``.

        Returns:
            An iterator of the decisions, in order.
        """
        return map(read_score, self.engine.score_many(items, metrics=self.metrics, options=self.options))


_MISSING = Checked(
    "unknown", None, None, "There is no score. The knowledge is missing; where there is none, pass an empty list."
)


def _refuse(error: GroundwireError) -> Checked:
    return Checked("unknown", None, None, f"There is no score. {error}")

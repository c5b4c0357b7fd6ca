"""What a turn is, and what was found in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, TypeAlias

from groundwire.engine import Score
from groundwire.engine.schema.base import METHODS, Record
from groundwire.engine.schema.results import Status

FindingKind: TypeAlias = Literal["argument", "action", "value"]
"""An argument of a call, an action that the text says was done, or a value of the text."""
FindingStatus: TypeAlias = Literal[
    "user", "result", "composed", "absent", "other_record", "unknown", "succeeded", "failed", "pending", "miscounted"
]
"""Arguments are from the ``user``, from a ``result`` (or an earlier call), ``composed`` by the assistant, of an
``other_record`` than the turn is about, ``absent``, or ``unknown``: models should have read them, and could not.
Actions ``succeeded``, ``failed``, are ``pending`` or ``absent`` from the log. Values are of an ``other_record`` or
``miscounted``; values that are right are not listed."""
PROBLEMS: frozenset[FindingStatus] = frozenset({"absent", "other_record", "failed", "pending", "miscounted"})
"""Statuses that make a turn inconsistent."""
TurnLabel: TypeAlias = Literal["consistent", "inconsistent", "unverifiable", "unknown"]


class Finding(Record, frozen=True, kw_only=True):
    """Something that a turn states, and where it is from."""

    kind: FindingKind
    status: FindingStatus
    where: str
    """Words of the text, or the path of an argument, such as ``calls[0].arguments.guests``."""
    start: int | None = None
    """Where the words begin in the text; None for an argument."""
    end: int | None = None
    message: str = ""
    """The reason, as a sentence."""

    @property
    def is_problem(self) -> bool:
        """Whether it makes the turn inconsistent."""
        return self.status in PROBLEMS


def find_value(status: FindingStatus, text: str, start: int, end: int, message: str, offset: int = 0) -> Finding:
    """Return what was found of the value that is ``text[start:end]``; ``text`` begins at ``offset`` in the turn's."""
    where = text[start:end]
    return Finding(kind="value", status=status, where=where, start=offset + start, end=offset + end, message=message)


def label_turn(findings: Sequence[Finding], status: Status) -> TurnLabel:
    """Return the label of a turn with these findings, whose check ended with a status."""
    if any(finding.is_problem for finding in findings):
        return "inconsistent"
    if status != "scored" or any(finding.status == "unknown" for finding in findings):
        return "unknown"
    if findings and all(finding.kind == "action" and finding.status == "composed" for finding in findings):
        return "unknown"
    return "consistent" if findings else "unverifiable"


class TurnCheck(Record, frozen=True, kw_only=True):
    """What came of checking a turn."""

    _other_words: ClassVar[Mapping[str, str]] = {**METHODS, "verdict": "label"}

    label: TurnLabel
    """``inconsistent`` with a problem; else ``unknown`` with something that could not be checked, or with nothing but
    words that may claim something, and ``unverifiable`` without any finding. The score does not count."""
    findings: tuple[Finding, ...]
    """Arguments in the order of the calls, then actions and values in the order of the text."""
    status: Status = "scored"
    """What stopped the check: the status of the models' first score of an argument that was not ``scored``;
    ``deadline``, after which findings are not listed; ``invalid`` for calls whose arguments cannot be read."""
    message: str = ""
    """Why the label is ``unknown``, as a sentence."""
    score: Score | None = None
    """The score of the text, with its sentences; None if it was not asked for, or the turn has no text. Of a list of 20
    records or more it reads those that the text names, if it names any."""

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that make the turn inconsistent."""
        return tuple(finding for finding in self.findings if finding.is_problem)

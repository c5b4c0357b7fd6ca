"""Reduces scored lines to what the report needs, so that the traffic need not fit into memory."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, TypeVar

from groundwire.engine import Request, Score
from groundwire.engine.extend import words
from groundwire.runtime.errors import InvalidRequest

from .kinds import find_language, list_kinds
from .records import RowToLabel, WorstResponse
from .shift import describe_texts

_TERM = re.compile(r"(?=.*\w)(?![A-Za-z]{1,2}$).+")
"""Not what is left of "they 've" or "don t"."""
T = TypeVar("T")
VERDICTS = ("consistent", "inconsistent")
MILLISECONDS_FROM = 1e11
"""A larger number of seconds since 1970 is one of milliseconds: it would be a year after 5000."""


class Observation(NamedTuple):
    """A line with a score."""

    line: int
    label: str
    probability: float | None
    words: float | None
    """Words of the response; None where its text is not there."""
    overlap: float | None
    """Share of them that the knowledge has."""
    knowledge_words: float | None
    system: str
    source: str
    time: datetime | None
    terms: tuple[str, ...]
    """Content words of the response, each once."""
    kinds: tuple[str, ...] = ()
    """The kinds of its sentences (``list_kinds``); empty where its text is not there."""
    language: str = ""
    """As the line says, or else ``find_language``; empty where neither is there."""
    sure: bool = False
    """``Verdict.sure``."""

    @property
    def is_inconsistent(self) -> bool:
        """Whether the response is called so."""
        return self.label == "inconsistent"

    @property
    def has_verdict(self) -> bool:
        """Whether it states something, and is called consistent or inconsistent."""
        return self.label in VERDICTS


class Observations:
    """The lines of a traffic, in their order."""

    def __init__(self, examples: int = 0, to_label: int = 0) -> None:
        """Begin without observations.

        Args:
            examples: Inconsistent responses with the lowest probabilities that are kept with their texts, 0 or more.
            to_label: Responses nearest to their threshold that are kept with their texts, 0 or more.
        """
        self.rows: list[Observation] = []
        self.labels: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()
        self.signatures: Counter[str] = Counter()
        self.thresholds: Counter[tuple[str, float | None]] = Counter()
        """By fusion and threshold, of lines with a verdict."""
        self.incomplete = 0
        self._examples = examples
        self._worst: list[tuple[float, int, WorstResponse]] = []
        self._to_label = to_label
        self._nearest: list[tuple[float, int, RowToLabel]] = []

    @property
    def verdicts(self) -> list[Observation]:
        """Those that are called consistent or inconsistent."""
        return [row for row in self.rows if row.has_verdict]

    @property
    def worst(self) -> tuple[WorstResponse, ...]:
        """The inconsistent responses with the lowest probabilities, lowest first."""
        return tuple(worst for _, _, worst in sorted(self._worst, key=lambda entry: (-entry[0], -entry[1])))

    @property
    def nearest(self) -> tuple[RowToLabel, ...]:
        """The responses nearest to their threshold, in the order of their lines."""
        return tuple(sorted((row for _, _, row in self._nearest), key=lambda row: row.line))

    def add_problem(self, status: str) -> None:
        """Count a line that has no score.

        Args:
            status: Why it has none: a status of ``Score``, or ``error``.
        """
        self.labels["unscored"] += 1
        self.problems[status] += 1

    def add(self, line: int, row: Mapping[str, Any], score: Score, request: Request | None) -> None:
        """Add a score.

        Args:
            line: Number of the line in the input, from 1.
            row: The line's fields; ``time``, ``system``, ``source``, ``language`` and ``id`` are read where present.
            score: The score of the line.
            request: The line's texts; None where it has none.

        Raises:
            InvalidRequest: The line's time cannot be read.
        """
        verdict = score.verdict
        time = read_time(row.get("time"))
        texts = describe_texts(request.response, request.knowledge) if request else {}
        observation = Observation(
            line,
            verdict.label,
            verdict.probability,
            texts.get("words"),
            texts.get("overlap"),
            sum(passage.count(" ") + 1.0 for passage in request.knowledge) if request else None,
            _read_name(row.get("system")),
            _read_name(row.get("source")),
            time,
            _list_terms(request.response) if request else (),
            list_kinds(request.response) if request else (),
            _read_name(row.get("language")) or (find_language(request.response) if request else ""),
            verdict.sure,
        )
        self.rows.append(observation)
        self.labels[verdict.label] += 1
        self.signatures[score.signature] += 1
        if verdict.label == "unknown" and score.status not in ("scored", "nothing_to_verify"):
            self.problems[score.status] += 1
        if observation.has_verdict:
            self.thresholds[verdict.fusion, verdict.threshold] += 1
            self.incomplete += bool(verdict.absent)
        if observation.is_inconsistent and verdict.probability is not None:
            worst = WorstResponse(
                line,
                _read_name(row.get("id")),
                verdict.probability,
                request.response if request else "",
                request.knowledge if request else (),
                request.history if request else (),
                observation.system,
                observation.source,
                to_iso(time),
                score.unsupported,
                score.citations,
            )
            _keep_smallest(self._worst, verdict.probability, line, worst, self._examples)
        if observation.has_verdict and request and verdict.probability is not None and verdict.threshold is not None:
            to_label = RowToLabel(line, _read_name(row.get("id")), request.response, request.knowledge, request.history)
            distance = abs(verdict.probability - verdict.threshold)
            _keep_smallest(self._nearest, distance, line, to_label, self._to_label)


def _keep_smallest(heap: list[tuple[float, int, T]], number: float, line: int, item: T, count: int) -> None:
    """Add an item to the ``count`` with the smallest numbers; of equal ones the earlier line stays."""
    # The root of the heap has the largest number: it is the first to go.
    heapq.heappush(heap, (-number, -line, item))
    if len(heap) > count:
        heapq.heappop(heap)


def read_time(value: Any) -> datetime | None:
    """A time as ISO 8601, as seconds or milliseconds since 1970, or as Parquet has it; without a zone it is UTC.

    None for None and an empty text; InvalidRequest for anything else.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > MILLISECONDS_FROM else value, UTC)
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise InvalidRequest(
            f"time is {value!r:.80}; allowed are ISO 8601, as in 2026-11-22T12:04:00Z, and seconds since 1970."
        ) from error


def to_iso(time: datetime | None) -> str:
    """ISO 8601 in UTC; empty for None."""
    return "" if time is None else time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _list_terms(response: str) -> tuple[str, ...]:
    content = (word.lower for word in words(response) if word.content and _TERM.fullmatch(word.text))
    return tuple(dict.fromkeys(content))


def _read_name(value: Any) -> str:
    return "" if value is None else str(value)

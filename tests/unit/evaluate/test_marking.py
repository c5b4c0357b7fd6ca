"""Marked words against those that a person marked: counts worked out by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from groundwire.engine import Score, UnsupportedSpan
from groundwire.evaluate.datasets import read_dataset
from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.statistics.human_labels import HumanLabels
from groundwire.evaluate.statistics.marking import measure_marking
from groundwire.evaluate.statistics.results import MarkingFigures
from groundwire.runtime.errors import InvalidRequest
from tests.support.evaluation import make_example, score

RESPONSE = "The violin has six strings and two bows"


def mark(*ranges: tuple[int, int], label: str = "inconsistent") -> Score:
    """A score that marks ``ranges``."""
    spans = tuple(UnsupportedSpan(RESPONSE[a:b], a, b, "mismatch", "", "nli") for a, b in ranges)
    plain = score({"nli": 0.2})
    return msgspec.structs.replace(
        plain, unsupported=spans, verdict=msgspec.structs.replace(plain.verdict, label=label)
    )


def label(number: int, *ranges: tuple[int, int], looked: bool = True) -> Example:
    """An example whose ``ranges`` are unsupported; with ``looked`` off, it has no such label."""
    example = msgspec.structs.replace(make_example(str(number), 0), response=RESPONSE)
    return msgspec.structs.replace(example, unsupported=ranges if looked else None)


def measure(examples: list[Example], scores: list[Score]) -> MarkingFigures | None:
    return measure_marking(examples, scores, HumanLabels(examples, 20, 0))


def test_words_and_runs_are_counted_over_all_responses() -> None:
    at = {word: (RESPONSE.index(word), RESPONSE.index(word) + len(word)) for word in RESPONSE.split()}
    six, strings, two = at["six"], at["strings"], at["two"]
    figures = measure([label(0, six), label(1, (six[0], strings[1])), label(2)], [mark(six), mark(six, two), mark()])
    assert figures is not None
    assert figures.examples == 3
    # Words: marked six; six, two. Wanted six; six, strings. Two of three are right.
    assert figures.words.precision.value == pytest.approx(2 / 3)
    assert figures.words.recall.value == pytest.approx(2 / 3)
    assert figures.words.f1.value == pytest.approx(2 / 3)
    # Runs: marked (six), (six), (two); wanted (six), (six strings).
    assert figures.spans.precision.value == pytest.approx(1 / 3)
    assert figures.spans.recall.value == pytest.approx(1 / 2)
    assert figures.spans.f1.value == pytest.approx(2 / 5)


def test_a_part_of_a_word_is_the_word() -> None:
    figures = measure([label(0, (16, 17))], [mark((15, 18))])
    assert figures is not None
    assert figures.words.f1.value == figures.spans.f1.value == 1.0


def test_what_is_not_labelled_or_has_no_verdict_is_left_out() -> None:
    assert measure([label(0, looked=False)], [mark((0, 3))]) is None
    assert measure([label(0, (0, 3))], [mark((0, 3), label="unknown")]) is None
    figures = measure([label(0, (0, 3)), label(1, (0, 3))], [mark(), mark((0, 3), label="unknown")])
    assert figures is not None
    assert (figures.examples, figures.words.precision.value, figures.words.recall.value) == (1, 0.0, 0.0)


def test_ranges_are_read_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    row = {"response": RESPONSE, "knowledge": "The violin has four strings."}
    rows = [{**row, "unsupported": [{"start": 15, "end": 18, "reason": "number"}]}, {**row, "unsupported": []}, row]
    file.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    assert [example.unsupported for example in read_dataset(file)] == [((15, 18),), (), None]
    file.write_bytes(msgspec.json.encode({**row, "unsupported": [{"start": 30, "end": 90}]}))
    with pytest.raises(InvalidRequest, match="unsupported has the characters 30 to 90; the response has 39"):
        read_dataset(file)

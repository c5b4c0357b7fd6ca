"""Makes answers of several sentences from answers of one: what is beside a claim must not change its label.

Both answers of a group get the same sentences around them: some copied from the knowledge, which are supported, and
some that state nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from groundwire.evaluate.twins.edits import EditedSpan

from ..common.corpus import find_sentence_bounds
from .model import STATES_NOTHING, SUPPORTED
from .rows import AnswerRow, LabelledRange

COPIED = 0.6
"""Share of the sentences around an answer that are copied from the knowledge."""
COUNTS, COUNT_WEIGHTS = (1, 2, 3, 4, 6), (4, 3, 2, 2, 1)
"""Sentences around an answer."""


def surround(
    group: tuple[AnswerRow, AnswerRow], draw_aside: Callable[[random.Random], str], rng: random.Random
) -> tuple[AnswerRow, AnswerRow]:
    """Put sentences around both answers, the same ones; the inference label, which holds of the answer alone, goes."""
    if any(answer.example.second is None or "consistency" not in answer.example.labels for answer in group):
        return group
    first, second = (answer.example.first for answer in group)
    shared = [text for text in _list_sentences(first) if text in second]
    count = rng.choices(COUNTS, COUNT_WEIGHTS)[0]
    extra: list[tuple[str, int]] = []
    for _ in range(count):
        if shared and rng.random() < COPIED:
            extra.append((shared.pop(rng.randrange(len(shared))), SUPPORTED))
        elif sum(label == STATES_NOTHING for _, label in extra) < 2:
            extra.append((draw_aside(rng), STATES_NOTHING))
    before = rng.randint(0, len(extra))
    space = "\n" if rng.random() < 0.15 else " "
    return _join(group[0], extra, before, space), _join(group[1], extra, before, space)


def _list_sentences(text: str) -> list[str]:
    parts = (text[start:end].strip() for start, end in find_sentence_bounds(text))
    return [part for part in dict.fromkeys(parts) if 4 <= len(part.split()) <= 30 and _is_complete(part)]


def _is_complete(sentence: str) -> bool:
    """Whether a sentence was not cut at an abbreviation, as far as its end and its brackets show."""
    pairs = sentence.count("(") == sentence.count(")") and sentence.count('"') % 2 == 0
    return pairs and sentence[-1] == "." and len(sentence.rsplit(None, 1)[-1]) > 4 and not sentence[0].islower()


def _join(answer: AnswerRow, extra: list[tuple[str, int]], before: int, space: str) -> AnswerRow:
    example = answer.example
    assert example.second is not None
    stop = "" if example.second.rstrip().endswith((".", "!", "?")) else "."
    parts = [*extra[:before], (example.second + stop, None), *extra[before:]]
    text, ranges = "", []
    spans = example.spans
    for part, label in parts:
        start = len(text) + (len(space) if text else 0)
        text = f"{text}{space}{part}" if text else part
        if label is not None:
            ranges.append(LabelledRange(start, start + len(part), label))
            continue
        ranges += [LabelledRange(r.start + start, r.end + start, r.label) for r in answer.ranges]
        if spans is not None:
            spans = tuple(EditedSpan(s.start + start, s.end + start, s.reason) for s in spans)
    labels = {name: label for name, label in example.labels.items() if name != "nli"}
    return replace(answer, example=replace(example, second=text, labels=labels, spans=spans), ranges=tuple(ranges))

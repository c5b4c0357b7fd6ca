"""The written documents as a source of the reader."""

from __future__ import annotations

import random
import re

from groundwire.evaluate.twins.edits import EditedSpan
from groundwire.metrics import Sentence, sentences

from ..compact.multitask_examples import MultitaskExample
from ..compact.multitask_model import HEADS, IGNORED
from ..compact.public_pairs import ENTAILMENT, NOT_ENTAILMENT
from ..written import WrittenPairs, WrittenRow
from .model import STATES_NOTHING, SUPPORTED, UNSUPPORTED
from .rows import AnswerRow, LabelledRange

TURNS = 2
"""Turns of the history that are read, the last ones."""
COURTESY_WORDS = 7
"""Words of a sentence that may be mere courtesy; a longer one, and one with a number, is taken for a statement."""
_COURTESY = re.compile(
    r"\b(sorry|glad|happy|hope|thanks?|welcome|great|good|nice|sure|course|certainly|absolutely|let me know|enjoy)\b",
    re.IGNORECASE,
)


def draw_written_pair(pairs: WrittenPairs, words: int, rng: random.Random) -> tuple[AnswerRow, AnswerRow]:
    """Draw the answers of a pair whose knowledge and response have about so many words at most."""
    pair = pairs.draw(words, rng)
    return make_written_answer(pair.first), make_written_answer(pair.second)


def make_written_answer(row: WrittenRow) -> AnswerRow:
    """The answer of a row: every sentence without unsupported characters is supported, but for courtesies."""
    parts = sentences(row.response)
    history = row.history[-TURNS:]
    spans = tuple(EditedSpan(span.start, span.end, span.reason) for span in row.spans)
    knowledge = "\n".join(row.knowledge)
    if row.states_nothing:
        ranges = tuple(LabelledRange(part.start, part.end, STATES_NOTHING) for part in parts)
        return AnswerRow(MultitaskExample(knowledge, row.response, "written:nothing", {}, ()), ranges, history)
    labels = {"consistency": HEADS["consistency"][bool(spans)]}
    if len(parts) == 1:
        labels["nli"] = NOT_ENTAILMENT if spans else ENTAILMENT
    ranges = tuple(LabelledRange(part.start, part.end, _label(part, spans)) for part in parts)
    return AnswerRow(MultitaskExample(knowledge, row.response, "written", labels, spans), ranges, history)


def _label(part: Sentence, spans: tuple[EditedSpan, ...]) -> int:
    if any(span.start < part.end and part.start < span.end for span in spans):
        return UNSUPPORTED
    if part.text.endswith("?"):
        return STATES_NOTHING
    short = len(part.text.split()) <= COURTESY_WORDS and not any(character.isdigit() for character in part.text)
    return IGNORED if short and _COURTESY.search(part.text) else SUPPORTED

"""The worlds as a source of the reader: records rendered as knowledge and answers, labelled by construction."""

from __future__ import annotations

import random

from groundwire.evaluate.twins.edits import EditedSpan

from ..compact.multitask_examples import MultitaskExample
from ..compact.multitask_model import HEADS
from ..compact.public_pairs import ENTAILMENT, NOT_ENTAILMENT
from ..worlds import WorldRow, Worlds
from .model import STATES_NOTHING, SUPPORTED, UNSUPPORTED
from .rows import AnswerRow, LabelledRange

SPLITS = {"train": "train", "dev": "held_out"}
"""The worlds' split of each split of the training sets."""
TURNS = 2
"""Turns of the history that are read, the last ones."""


def load_worlds(split: str) -> Worlds:
    """The worlds of the split ``train``, or ``dev``, whose domains or wordings are held out."""
    return Worlds(SPLITS[split])


def draw_world_pair(worlds: Worlds, words: int, rng: random.Random) -> tuple[AnswerRow, AnswerRow]:
    """Draw the answers of a pair whose knowledge and response have so many words at most."""
    pair = worlds.draw(words, rng)
    return make_world_answer(pair.supported), make_world_answer(pair.unsupported)


def make_world_answer(row: WorldRow) -> AnswerRow:
    """The answer of a row; the inference head learns from it if every sentence states something."""
    labels = {"consistency": HEADS["consistency"][not row.label]}
    if all(part.label is not None for part in row.sentences):
        labels["nli"] = ENTAILMENT if row.label else NOT_ENTAILMENT
    spans = tuple(EditedSpan(span.start, span.end, span.reason) for span in row.spans)
    kinds: dict[int | None, int] = {1: SUPPORTED, 0: UNSUPPORTED, None: STATES_NOTHING}
    ranges = tuple(LabelledRange(part.start, part.end, kinds[part.label]) for part in row.sentences)
    example = MultitaskExample(" ".join(row.knowledge), row.response, f"world:{row.change}", labels, spans)
    return AnswerRow(example, ranges, tuple(turn for turn in row.history if turn.strip())[-TURNS:])

"""The worlds as a source of the reader: records rendered as knowledge and answers, labelled by construction."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Sequence
from typing import Any, Protocol

from ..compact.multitask_examples import Example
from ..compact.multitask_model import HEADS, TOKEN_LABELS
from ..compact.public_pairs import ENTAILMENT, NOT_ENTAILMENT
from ..synthesis.structured_edits import UnsupportedSpan
from .model import NOTHING, SUPPORTED, UNSUPPORTED
from .rows import Answer, LabelledRange

OTHER_REASON = "relation"
"""The token label of a reason that the token head has no label for."""


class WorldRow(Protocol):
    """An answer to a record, with its labels."""

    knowledge: Sequence[str]
    history: Sequence[str]
    response: str
    label: int
    """1 for a response whose every sentence is true."""
    sentences: Sequence[tuple[int, int, int | None]]
    """Characters, and 1 for true, 0 for false, None for a sentence that states nothing."""
    spans: Sequence[tuple[int, int, str]]
    """The false characters and the reason."""
    domain: str
    change: str


class WorldPair(Protocol):
    """A true answer and one with a single change."""

    supported: WorldRow
    unsupported: WorldRow


class Worlds(Protocol):
    """Draws pairs whose knowledge has about so many words at most."""

    def draw(self, max_words: int, rng: random.Random) -> WorldPair:
        """Draw a pair."""
        ...


def load_worlds(split: str) -> Worlds | None:
    """The worlds of a split; None while the package lacks them."""
    name = f"{__package__.rpartition('.')[0]}.worlds"
    if importlib.util.find_spec(name) is None:
        return None
    module: Any = importlib.import_module(name)
    worlds: Worlds = module.Worlds(split)
    return worlds


def draw_world_pair(worlds: Worlds, words: int, rng: random.Random) -> tuple[Answer, Answer]:
    """Draw the answers of a pair."""
    pair = worlds.draw(words, rng)
    return make_world_answer(pair.supported), make_world_answer(pair.unsupported)


def make_world_answer(row: WorldRow) -> Answer:
    """The answer of a row; the inference head learns from it if every sentence states something."""
    labels = {"consistency": HEADS["consistency"][not row.label]}
    if all(label is not None for *_, label in row.sentences):
        labels["nli"] = ENTAILMENT if row.label else NOT_ENTAILMENT
    spans = tuple(
        UnsupportedSpan(start, end, reason if reason in TOKEN_LABELS else OTHER_REASON)
        for start, end, reason in row.spans
    )
    kinds = {1: SUPPORTED, 0: UNSUPPORTED, None: NOTHING}
    ranges = tuple(LabelledRange(start, end, kinds[label]) for start, end, label in row.sentences)
    history = (row.history,) if isinstance(row.history, str) else tuple(row.history)
    example = Example(" ".join(row.knowledge), row.response, f"world:{row.change}", labels, spans)
    return Answer(example, ranges, tuple(turn for turn in history if turn.strip())[-2:])

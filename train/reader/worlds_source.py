"""The worlds as a source of the reader: records rendered as knowledge and answers, labelled by construction."""

from __future__ import annotations

import importlib
import importlib.util
import random
from typing import Any, Protocol

from ..compact.multitask_examples import Example
from ..compact.multitask_model import HEADS, TOKEN_LABELS
from ..compact.public_pairs import ENTAILMENT, NOT_ENTAILMENT
from ..synthesis.structured_edits import UnsupportedSpan
from .model import NOTHING, SUPPORTED, UNSUPPORTED
from .rows import Answer, LabelledRange

OTHER_REASON = "relation"
"""The token label of a reason that the token head has no label for."""


class Worlds(Protocol):
    """Draws pairs whose knowledge and response have so many words at most."""

    def draw(self, max_words: int, rng: random.Random) -> Any:
        """Draw a ``WorldPair``: ``supported`` and ``unsupported``, which are as ``make_world_answer`` takes them."""
        ...


def load_worlds(split: str) -> Worlds | None:
    """The worlds of the split ``train`` or ``dev``, which has held-out domains; None while the package lacks them."""
    name = f"{__package__.rpartition('.')[0]}.worlds"
    if importlib.util.find_spec(name) is None:
        return None
    module: Any = importlib.import_module(name)
    worlds: Worlds = module.Worlds("train" if split == "train" else "held_out")
    return worlds


def draw_world_pair(worlds: Worlds, words: int, rng: random.Random) -> tuple[Answer, Answer]:
    """Draw the answers of a pair."""
    pair = worlds.draw(words, rng)
    return make_world_answer(pair.supported), make_world_answer(pair.unsupported)


def make_world_answer(row: Any) -> Answer:
    """The answer of a ``WorldRow``; the inference head learns from it if every sentence states something.

    Its fields: the passages ``knowledge``, the turns ``history``, ``response``, ``label`` (1 for a true response),
    ``sentences`` with ``start``, ``end`` and ``label`` (1 true, 0 false, None where a sentence states nothing),
    ``spans`` with ``start``, ``end`` and ``reason`` of the false characters, and ``change``.
    """
    labels = {"consistency": HEADS["consistency"][not row.label]}
    if all(part.label is not None for part in row.sentences):
        labels["nli"] = ENTAILMENT if row.label else NOT_ENTAILMENT
    spans = tuple(
        UnsupportedSpan(span.start, span.end, span.reason if span.reason in TOKEN_LABELS else OTHER_REASON)
        for span in row.spans
    )
    kinds: dict[int | None, int] = {1: SUPPORTED, 0: UNSUPPORTED, None: NOTHING}
    ranges = tuple(LabelledRange(part.start, part.end, kinds[part.label]) for part in row.sentences)
    example = Example(" ".join(row.knowledge), row.response, f"world:{row.change}", labels, spans)
    return Answer(example, ranges, tuple(turn for turn in row.history if turn.strip())[-2:])

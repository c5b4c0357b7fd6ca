"""Turns a labelled answer into the reader's row: word ids, and labels of the whole, the sentences and the tokens.

The row is ``[CLS] knowledge [SEP] history → answer [SEP]``. Sentences are split by ``groundwire.engine``, so training
and inference split alike; sources may label other character ranges, which are moved to the sentences they overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from groundwire.metrics import Sentence, sentences

from ..common import backbone
from ..common.loop import Row
from ..compact.multitask_examples import MultitaskExample
from ..compact.multitask_model import HEADS, IGNORED, NOT_ENTAILMENT, TOKEN_HEAD, TOKEN_LABELS
from ..compact.public_pairs import NOT_ENTAILMENT as UNSPECIFIED
from .model import SENTENCE_HEAD, SENTENCE_IDS, STATES_NOTHING, SUPPORTED, UNSUPPORTED

MAX_SENTENCES = 24
"""Sentences of a row; those after them are read without a label."""
HISTORY_MARK = " → "
"""After each turn of the history."""


@dataclass(frozen=True, slots=True)
class LabelledRange:
    """Characters of an answer with a sentence label; ``IGNORED`` for unknown."""

    start: int
    end: int
    label: int


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An example with its history and the labels of its sentences."""

    example: MultitaskExample
    ranges: tuple[LabelledRange, ...]
    history: tuple[str, ...] = ()


def label_ranges(example: MultitaskExample, asides: frozenset[str] = frozenset()) -> tuple[LabelledRange, ...]:
    """The sentence labels that follow from the labels of an example.

    The only sentence of an answer has the label of the answer. Of more sentences, each over an unsupported span is
    unsupported, questions and ``asides`` state nothing, and the others are supported; where the answer is
    unsupported and its spans are unknown, so are the labels.
    """
    if example.second is None:
        return ()
    label = example.labels.get("consistency")
    parts = sentences(example.second)
    if not example.labels and example.spans == ():
        return tuple(LabelledRange(part.start, part.end, STATES_NOTHING) for part in parts)
    if label is None:
        return ()
    consistent = label == HEADS["consistency"][0]
    if len(parts) == 1:
        return (LabelledRange(parts[0].start, parts[0].end, SUPPORTED if consistent else UNSUPPORTED),)
    ranges = []
    for part in parts:
        if any(span.start < part.end and part.start < span.end for span in example.spans or ()):
            kind = UNSUPPORTED
        elif part.text.endswith("?") or part.text.rstrip(".!").lower() in asides:
            kind = STATES_NOTHING
        else:
            kind = SUPPORTED if consistent or example.spans else IGNORED
        ranges.append(LabelledRange(part.start, part.end, kind))
    return tuple(ranges)


def label_sentence(sentence: Sentence, ranges: Sequence[LabelledRange]) -> int:
    """The label of a sentence: the strongest of the ranges that it overlaps, unknown for none."""
    labels = {part.label for part in ranges if part.start < sentence.end and sentence.start < part.end}
    return next((label for label in (UNSUPPORTED, IGNORED, SUPPORTED, STATES_NOTHING) if label in labels), IGNORED)


def encode_answer(tokens: PreTrainedTokenizerFast, answer: AnswerRow, limit: int, *, cut: bool) -> Row | None:
    """The row of an answer; None for more than ``limit`` tokens, unless the longer text may be ``cut``."""
    example = answer.example
    before = "".join(f"{turn}{HISTORY_MARK}" for turn in answer.history) if example.second is not None else ""
    second = None if example.second is None else before + example.second
    truncation = {"truncation": "longest_first", "max_length": limit} if cut else {}
    encoded = tokens(example.first, second, return_offsets_mapping=True, verbose=False, **truncation)
    if len(encoded["input_ids"]) > limit:
        return None
    row: Row = {name: encoded[name] for name in backbone.INPUTS}
    for head, labels in HEADS.items():
        label = example.labels.get(head)
        unspecified = NOT_ENTAILMENT if label == UNSPECIFIED else None
        row[head] = [IGNORED if label is None else unspecified or labels.index(label)]
    ranges = [
        (start - len(before), end - len(before)) if sequence == 1 and start >= len(before) else None
        for sequence, (start, end) in zip(encoded.sequence_ids(0), encoded["offset_mapping"], strict=True)
    ]
    row[TOKEN_HEAD] = [IGNORED if characters is None else _label_token(example, *characters) for characters in ranges]
    row[SENTENCE_IDS], row[SENTENCE_HEAD] = _number_sentences(answer, ranges)
    return row


def _label_token(example: MultitaskExample, start: int, end: int) -> int:
    if example.spans is None:
        return IGNORED
    reasons = (span.reason for span in example.spans if span.start < end and start < span.end)
    return TOKEN_LABELS.index(next(reasons, TOKEN_LABELS[0]))


def _number_sentences(answer: AnswerRow, ranges: Sequence[tuple[int, int] | None]) -> tuple[list[int], list[int]]:
    """The sentence number of each token, and the label of each sentence.

    There are two labels at least, so that they are a list in every batch. A sentence that is cut has none.
    """
    numbers = [0] * len(ranges)
    labels: list[int] = []
    parts = sentences(answer.example.second)[:MAX_SENTENCES] if answer.example.second is not None else ()
    for number, part in enumerate(parts, 1):
        members = [
            i
            for i, characters in enumerate(ranges)
            if characters is not None and part.start <= characters[0] < part.end
        ]
        for index in members:
            numbers[index] = number
        ends = [characters[1] for index in members if (characters := ranges[index]) is not None]
        whole = bool(ends) and not any(character.isalnum() for character in part.text[max(ends) - part.start :])
        labels.append(label_sentence(part, answer.ranges) if whole else IGNORED)
    return numbers, labels + [IGNORED] * (2 - len(labels))

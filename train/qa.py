"""Extractive question answering with "no answer", on SQuAD 1.1 windows and unanswerable questions made from them.

A window is one to five sentences, because a knowledge snippet is usually short; longer ones are read in windows. A
third of the examples are unanswerable: the same question over sentences of the same article that share many of its
words but lack its answer. Their label is position 0 for both ends, as in SQuAD 2.0 models.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import BertForQuestionAnswering

from . import trunk
from .corpus import Question, Squad
from .loop import Group, Row, Schedule, batches, fit

MAX_TOKENS = 128
FILL = dict.fromkeys((*trunk.INPUTS, "start_positions", "end_positions"), 0)
UNANSWERABLE = 0.33
_SENTENCES = (1, 1, 1, 1, 2, 2, 3, 5)


def train(data: Path, out: Path, schedule: Schedule, lr: float = 1.5e-4) -> None:
    """Train from the MiniLM encoder and save a ``BertForQuestionAnswering`` checkpoint in ``out``."""
    squad = Squad.read(data / "squad1_train.jsonl.gz")
    tokens = trunk.tokenizer()
    questions = squad.questions

    def make(index: int, rng: random.Random) -> Row:
        return encode(tokens, *example(squad, questions[index], rng.choice(_SENTENCES), rng))

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return batches(len(questions), make, FILL, schedule, start)

    model = BertForQuestionAnswering.from_pretrained(trunk.PATH)
    fit(model, [Group(trunk.freeze_words(model), lr)], feed, lambda m, batch: m(**batch).loss, schedule, out)
    model.save_pretrained(out)
    tokens.save_pretrained(out)


def example(squad: Squad, question: Question, sentences: int, rng: random.Random) -> tuple[str, str, int, int]:
    """One training example: question, window, and the answer's character range (-1, -1 when the window lacks it)."""
    if rng.random() < UNANSWERABLE:
        passage = squad.distractor(question, min(sentences, 4), rng)
        if passage:
            return question.text, passage, -1, -1
    passage, start = squad.window(question, sentences, rng)
    return question.text, passage, start, start + len(question.answer)


def encode(tokens: trunk.PreTrainedTokenizerFast, question: str, passage: str, start: int, end: int) -> Row:
    """Token ids and start/end positions of an example; both positions are 0 when the passage has no answer."""
    encoded = tokens(question, passage, truncation="only_second", max_length=MAX_TOKENS, return_offsets_mapping=True)
    offsets = encoded["offset_mapping"]
    inside = [
        i
        for i, sequence in enumerate(encoded.sequence_ids())
        if sequence == 1 and start >= 0 and offsets[i][0] < end and offsets[i][1] > start
    ]
    row: Row = {name: encoded[name] for name in trunk.INPUTS}
    return row | {"start_positions": [inside[0] if inside else 0], "end_positions": [inside[-1] if inside else 0]}

"""Trains three-way natural language inference, on public pairs and on pairs in the exact form that Q² asks.

``synthesis.answer_pairs`` makes the latter.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import BertForSequenceClassification, PreTrainedTokenizerFast

from ..common import backbone
from ..common.corpus import Squad, read_rows
from ..common.loop import ParameterGroup, Row, Schedule, fit, make_batches
from ..synthesis.answer_pairs import AnswerPairs

LABELS = ("entailment", "neutral", "contradiction")
MAX_TOKENS = 128
FILL = dict.fromkeys((*backbone.INPUTS, "labels"), 0)


def train_nli(data: Path, out: Path, schedule: Schedule, lr: float = 1.5e-4, comparisons: float = 0.3) -> None:
    """Train from the MiniLM encoder; ``comparisons`` is the share of pairs in Q²'s form."""
    pairs = [(row["premise"], row["hypothesis"], row["label"]) for row in read_rows(data / "nli_train.jsonl.gz")]
    answer_pairs = AnswerPairs(Squad.read(data / "squad1_train.jsonl.gz"))
    tokens = backbone.load_tokenizer()
    pair_count = int(len(pairs) * comparisons / (1 - comparisons))

    def make(index: int, rng: random.Random) -> Row:
        return encode_nli_example(tokens, *(pairs[index] if index < len(pairs) else answer_pairs.draw(rng)))

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_batches(len(pairs) + pair_count, make, FILL, schedule, start)

    model = BertForSequenceClassification.from_pretrained(
        backbone.PATH, id2label=dict(enumerate(LABELS)), label2id={label: i for i, label in enumerate(LABELS)}
    )
    fit(
        model,
        [ParameterGroup(backbone.freeze_word_embeddings(model), lr)],
        feed,
        lambda m, batch: m(**batch).loss,
        schedule,
        out,
    )
    model.save_pretrained(out)
    tokens.save_pretrained(out)


def encode_nli_example(tokens: PreTrainedTokenizerFast, premise: str, hypothesis: str, label: str) -> Row:
    """Token ids and label of a pair."""
    encoded = tokens(premise, hypothesis, truncation="longest_first", max_length=MAX_TOKENS)
    row: Row = {name: encoded[name] for name in backbone.INPUTS}
    return row | {"labels": [LABELS.index(label)]}

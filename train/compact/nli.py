"""Three-way natural language inference, on public pairs and on pairs in the exact form Q² asks.

Q² compares ``{question} {knowledge answer}.`` with ``{question} {response span}.``. From SQuAD questions: the answer
with another article or a longer or shorter boundary entails it; another answer of the same kind contradicts it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import BertForSequenceClassification

from groundwire.train.common import backbone
from groundwire.train.common.corpus import Squad, read_rows
from groundwire.train.common.loop import Group, Row, Schedule, batches, fit

LABELS = ("entailment", "neutral", "contradiction")
MAX_TOKENS = 128
FILL = dict.fromkeys((*backbone.INPUTS, "labels"), 0)
_ARTICLE = re.compile(r"^(the|a|an) ", re.IGNORECASE)


def train(data: Path, out: Path, schedule: Schedule, lr: float = 1.5e-4, comparisons: float = 0.3) -> None:
    """Train from the MiniLM encoder; ``comparisons`` is the share of pairs made in Q²'s form."""
    pairs = [(row["premise"], row["hypothesis"], row["label"]) for row in read_rows(data / "nli_train.jsonl.gz")]
    made = Comparisons(Squad.read(data / "squad1_train.jsonl.gz"))
    tokens = backbone.tokenizer()
    extra = int(len(pairs) * comparisons / (1 - comparisons))

    def make(index: int, rng: random.Random) -> Row:
        return encode(tokens, *(pairs[index] if index < len(pairs) else made.draw(rng)))

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return batches(len(pairs) + extra, make, FILL, schedule, start)

    model = BertForSequenceClassification.from_pretrained(
        backbone.PATH, id2label=dict(enumerate(LABELS)), label2id={label: i for i, label in enumerate(LABELS)}
    )
    fit(model, [Group(backbone.freeze_words(model), lr)], feed, lambda m, batch: m(**batch).loss, schedule, out)
    model.save_pretrained(out)
    tokens.save_pretrained(out)


class Comparisons:
    """Draws Q²-shaped pairs from SQuAD: one question with two answers, and whether the first entails the second."""

    def __init__(self, squad: Squad) -> None:
        self._questions = squad.questions
        self._titles = squad.titles
        self._by_kind: dict[tuple[str, str], list[str]] = {}
        for question in squad.questions:
            key = (squad.titles[question.paragraph], kind(question.answer))
            self._by_kind.setdefault(key, []).append(question.answer)

    def draw(self, rng: random.Random) -> tuple[str, str, str]:
        """A premise, a hypothesis and its label."""
        question = rng.choice(self._questions)
        answer = question.answer
        if rng.random() < 0.5:
            other, label = reworded(answer, rng), "entailment"
        else:
            rivals = self._by_kind[self._titles[question.paragraph], kind(answer)]
            other, label = rng.choice(rivals), "contradiction"
            if _overlap(answer, other):
                other, label = reworded(answer, rng), "entailment"
        first, second = (answer, other) if rng.random() < 0.5 else (other, answer)
        text = question.text.lower() if rng.random() < 0.5 else question.text
        return f"{text} {first}.", f"{text} {second}.", label


def kind(answer: str) -> str:
    """A coarse answer type, so that a rival answer could stand in the same place."""
    if any(c.isdigit() for c in answer):
        return "number"
    return "name" if answer[:1].isupper() else "phrase"


def reworded(answer: str, rng: random.Random) -> str:
    """The same answer as a response might phrase it: article added or dropped, another case, or unchanged."""
    bare = _ARTICLE.sub("", answer)
    return rng.choice((answer, bare, f"the {bare}", answer.lower(), bare.lower()))


def encode(tokens: backbone.PreTrainedTokenizerFast, premise: str, hypothesis: str, label: str) -> Row:
    """Token ids and label of a pair."""
    encoded = tokens(premise, hypothesis, truncation="longest_first", max_length=MAX_TOKENS)
    row: Row = {name: encoded[name] for name in backbone.INPUTS}
    return row | {"labels": [LABELS.index(label)]}


def _overlap(a: str, b: str) -> bool:
    first, second = set(a.lower().split()), set(b.lower().split())
    return bool(first & second)

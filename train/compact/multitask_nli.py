"""Trains the multi-task NLI model: one MiniLM backbone with heads for inference, consistency and verifiability.

- ``nli``: (premise, hypothesis) → entailment, neutral, contradiction, as ``compact.nli`` trains it, and on the
  ``synthesis.pairs`` whose kind determines one of the three labels;
- ``consistency``: (knowledge, response) → consistent, inconsistent, on ``synthesis.pairs``;
- ``verifiability``: one sentence → verifiable, non-verifiable, on ``synthesis.verifiability``.

Each head is saved as an ordinary ``BertForSequenceClassification`` with the same backbone, so a bundle, which stores
equal weights once, holds the backbone once. A checkpoint of ``compact.nli`` can be the start.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from transformers import BertConfig, BertForSequenceClassification, BertModel

from ..common import backbone
from ..common.corpus import Squad, read_rows
from ..common.loop import ParameterGroup, Row, Schedule, collate, fit, make_batches, write_report
from ..synthesis import pairs, weak_labels
from ..synthesis.answer_pairs import AnswerPairs
from ..synthesis.chat_style import ChatStyle
from ..synthesis.pairs import ConsistencyPairs
from ..synthesis.verifiability import VerifiabilitySentences
from . import nli

HEADS: dict[str, tuple[str, ...]] = {
    "nli": nli.LABELS,
    "consistency": pairs.LABELS,
    "verifiability": weak_labels.LABELS,
}
SHARES = {"nli": 0.35, "consistency": 0.5, "verifiability": 0.15}
"""Of the examples, by head. Verifiability has short sentences and is easy; consistency is the hardest."""
INFERENCE = {"pair": 0.4, "comparison": 0.25, "statement": 0.35}
"""Of the inference examples: pairs of the inference sets, pairs in Q²'s form, and responses with knowledge."""
INFERENCE_LABELS: dict[str, str] = {
    "consistent": "entailment",
    **dict.fromkeys(("answer", "response", "knowledge", "negation"), "contradiction"),
    **dict.fromkeys(("unsupported", "addition", "random"), "neutral"),
}
"""The inference label of a synthesised pair, by its kind; the other kinds determine none."""
EPOCH = 100_000
"""Examples between two shuffles; nearly all are drawn anew each time."""
MAX_TOKENS = 128
FILL = dict.fromkeys((*backbone.INPUTS, "labels", "head"), 0)


class MultitaskNLI(torch.nn.Module):
    """A BERT backbone and one linear head per task on its pooled output."""

    def __init__(self, bert: BertModel, heads: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self.bert = bert
        self.labels = dict(heads)
        self.dropout = torch.nn.Dropout(bert.config.hidden_dropout_prob)
        width, spread = bert.config.hidden_size, bert.config.initializer_range
        linear = {name: torch.nn.Linear(width, len(labels)) for name, labels in heads.items()}
        for head in linear.values():
            torch.nn.init.normal_(head.weight, std=spread)
            torch.nn.init.zeros_(head.bias)
        self.heads = torch.nn.ModuleDict(linear)

    def forward(
        self, input_ids: torch.Tensor, token_type_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Logits [B, C] of every head for ids [B, T]."""
        pooled = self.dropout(self.bert(input_ids, attention_mask, token_type_ids).pooler_output)
        return {name: head(pooled) for name, head in self.heads.items()}

    def classifier(self, name: str) -> BertForSequenceClassification:
        """The head ``name`` and a copy of the backbone, as a model of its own."""
        labels = self.labels[name]
        config = BertConfig.from_dict(self.bert.config.to_dict())
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: index for index, label in enumerate(labels)}
        model = BertForSequenceClassification(config)
        model.bert.load_state_dict(self.bert.state_dict())
        model.classifier.load_state_dict(self.heads[name].state_dict())
        return model.eval()

    def save(self, out: Path) -> None:
        """Write ``out/{head}`` for every head."""
        for name in self.labels:
            self.classifier(name).save_pretrained(out / name)
            backbone.load_tokenizer().save_pretrained(out / name)


def build_multitask_nli(start: Path | None = None) -> MultitaskNLI:
    """The model before training: from MiniLM, or from a checkpoint of ``compact.nli``."""
    model = MultitaskNLI(BertModel.from_pretrained(start or backbone.PATH), HEADS)
    if start is not None:
        nli_model = BertForSequenceClassification.from_pretrained(start)
        labels = tuple(nli_model.config.id2label[index] for index in range(nli_model.config.num_labels))
        if labels != HEADS["nli"]:
            raise ValueError(f"{start} has the labels {labels}; give a checkpoint with the labels {HEADS['nli']}.")
        model.heads["nli"].load_state_dict(nli_model.classifier.state_dict())
    return model


def train_multitask_nli(
    data: Path, out: Path, schedule: Schedule, lr: float = 1.5e-4, start: Path | None = None, measured: int = 600
) -> None:
    """Train and save ``out/nli``, ``out/consistency``, ``out/verifiability`` and ``out/report.json``.

    The report measures each head on ``measured`` examples.
    """
    torch.manual_seed(schedule.seed)
    model = build_multitask_nli(start)
    examples = MultitaskExamples.read(data)

    def feed(first: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_batches(EPOCH, examples.make, FILL, schedule, first)

    fit(model, [ParameterGroup(backbone.freeze_word_embeddings(model), lr)], feed, multitask_loss, schedule, out)
    model.save(out)
    report = measure_heads(model, MultitaskExamples.read(data, "dev"), measured)
    write_report(out, {"steps": schedule.steps, "seed": schedule.seed, **report})


def multitask_loss(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Mean cross-entropy of every example under its own head; ``batch["head"]`` [B] are indices into ``HEADS``."""
    logits = model(**{name: batch[name] for name in backbone.INPUTS})
    total = torch.zeros((), device=batch["head"].device)
    for index, name in enumerate(HEADS):
        of_head = batch["head"] == index
        # Of an empty selection the sum is 0 and the mean is not a number.
        total = total + torch.nn.functional.cross_entropy(
            logits[name][of_head].float(), batch["labels"][of_head], reduction="sum"
        )
    return total / len(batch["head"])


class MultitaskExamples:
    """The training examples of all heads."""

    def __init__(
        self,
        inference: list[tuple[str, str, str]],
        comparisons: AnswerPairs | None,
        consistency: ConsistencyPairs,
        sentences: VerifiabilitySentences,
    ) -> None:
        """``comparisons`` are pairs in the form that Q² asks; None takes all inference pairs from ``inference``."""
        self._inference = inference
        self._comparisons = comparisons
        self.consistency = consistency
        """The pairs of the head ``consistency``."""
        self._sentences = sentences
        self._tokens = backbone.load_tokenizer()

    @classmethod
    def read(cls, data: Path, split: str = "train") -> MultitaskExamples:
        """From a directory of training sets; ``split`` is train, or dev for unseen articles and inference pairs.

        The sentences of chat have no development split: their labels come from rules, and agreement with the rules on
        other sentences would say little more.
        """
        squad = Squad.read(data / f"squad1_{split}.jsonl.gz")
        rows = read_rows(data / f"nli_{split}.jsonl.gz")
        inference = [(row["premise"], row["hypothesis"], row["label"]) for row in rows]
        sentences = VerifiabilitySentences.read(data, squad)
        consistency = ConsistencyPairs.read(data, squad, ChatStyle(sentences.non_verifiable), split)
        return cls(inference, AnswerPairs(squad) if split == "train" else None, consistency, sentences)

    def make(self, index: int, rng: random.Random) -> Row:
        """An example of a head drawn by its share; it depends on ``rng`` alone, so ``index`` is not read."""
        return self.draw(rng.choices(list(SHARES), list(SHARES.values()))[0], rng)[0]

    def draw(self, head: str, rng: random.Random) -> tuple[Row, str]:
        """An example of ``head``, and the kind of its source."""
        second: str | None
        match head:
            case "nli":
                how = rng.choices(list(INFERENCE), list(INFERENCE.values()))[0] if self._comparisons else "pair"
                first, second, label = self._draw_inference(how, rng)
            case "consistency":
                pair = self.consistency.draw(rng)
                first, second, label, how = pair.knowledge, pair.response, pair.label, pair.kind
            case _:
                (first, label), second, how = self._sentences.draw(rng), None, "sentence"
        encoded = self._tokens(first, second, truncation="longest_first", max_length=MAX_TOKENS)
        row: Row = {name: encoded[name] for name in backbone.INPUTS}
        row |= {"labels": [HEADS[head].index(label)], "head": [list(HEADS).index(head)]}
        return row, how

    def _draw_inference(self, how: str, rng: random.Random) -> tuple[str, str, str]:
        """A premise, a hypothesis and the label between them."""
        if how == "comparison" and self._comparisons is not None:
            return self._comparisons.draw(rng)
        if how == "pair":
            return rng.choice(self._inference)
        while True:
            pair = self.consistency.draw(rng)
            if pair.kind in INFERENCE_LABELS:
                return pair.knowledge, pair.response, INFERENCE_LABELS[pair.kind]


def make_labelled_pairs(data: Path, count: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """``count`` consistency pairs of unseen articles, as rows that ``groundwire calibrate`` reads.

    A model that was trained on such pairs is more confident on them than on what people write, so calibrate on other
    sets too.
    """
    consistency = MultitaskExamples.read(data, "dev").consistency
    for index in range(count):
        pair = consistency.draw(random.Random(seed * 1_000_003 + index))
        yield {
            "id": f"made-{index}",
            "response": pair.response,
            "knowledge": pair.knowledge,
            "label": int(pair.label == pairs.LABELS[0]),
            "source": pair.kind,
        }


def measure_heads(model: MultitaskNLI, examples: MultitaskExamples, count: int, seed: int = 7) -> dict[str, Any]:
    """Accuracy of every head on ``count`` examples; of consistency also ROC-AUC and accuracy by kind."""
    report: dict[str, Any] = {}
    for head in HEADS:
        examples_drawn = [examples.draw(head, random.Random(seed * 1_000_003 + index)) for index in range(count)]
        logits = np.concatenate(
            [
                _compute_logits(model, head, [row for row, _ in examples_drawn[at : at + 32]])
                for at in range(0, count, 32)
            ]
        )
        labels = np.array([row["labels"][0] for row, _ in examples_drawn])
        right = logits.argmax(axis=1) == labels
        report[head] = {"examples": count, "accuracy": round(float(right.mean()), 4)}
        if head == "consistency":
            report[head]["roc_auc"] = round(float(roc_auc_score(labels, logits[:, 1] - logits[:, 0])), 4)
            kinds = np.array([how for _, how in examples_drawn])
            report[head]["by_kind"] = {
                kind: round(float(right[kinds == kind].mean()), 4) for kind in sorted(set(kinds))
            }
    return report


@torch.inference_mode()
def _compute_logits(model: MultitaskNLI, head: str, rows: list[Row]) -> np.ndarray[Any, Any]:
    batch = collate(rows, FILL)
    device = next(model.parameters()).device
    logits = model(**{name: batch[name].to(device) for name in backbone.INPUTS})[head]
    array: np.ndarray[Any, Any] = logits.float().cpu().numpy()
    return array

"""Trains the paper's detector: any BERT on FEVER's supports and refutes, then on Conv-FEVER.

Santhanam et al. 2021, section 4.2.3.

No checkpoint of it is published. Input is the pair (knowledge, response); the context is not read, so a record whose
context alone was changed looks consistent and is labelled inconsistent. The paper trains on those too, and so does the
default; ``kinds`` leaves them out.

FEVER's file is JSON Lines: ``{"claim", "evidence", "label"}``, evidence a text or a list of texts, label SUPPORTS or
REFUTES (rows of another label are left out). ``dialogues`` has the forms of the other: consistent records become the
corpus; inconsistent ones are trained on as they are.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedTokenizerBase

from ..common.corpus import read_rows
from ..common.loop import ParameterGroup, Row, Schedule, fit, make_batches, write_report
from . import corpus
from .corpus import KINDS, EntityFinder, RecordKind
from .dialogues import LabelledPair, join_texts, read_dialogues

LABELS = ("consistent", "inconsistent")


@dataclass(frozen=True, slots=True)
class DetectorPreset:
    """Hyper-parameters; the defaults are in the paper's appendix A.4."""

    lr: float = 2e-5
    """Peak learning rate; it falls linearly to 0."""
    batch: int = 16
    epochs: float = 4
    """Passes over FEVER, and then over Conv-FEVER."""
    max_tokens: int = 256
    """Longer pairs are truncated at the end of their longer text. The paper names no limit."""
    seed: int = 13

    def schedule(self, examples: int) -> Schedule:
        """The schedule for so many examples: plain Adam, without warm-up or weight decay."""
        steps = max(1, int(self.epochs * (examples // self.batch)))
        return Schedule(steps, self.batch, warmup=0.0, weight_decay=0.0, seed=self.seed)


def train_detector(
    base: str,
    dialogues: Path,
    out: Path,
    entities: EntityFinder,
    fever: Path | None = None,
    preset: DetectorPreset | None = None,
    kinds: Sequence[RecordKind] = KINDS,
) -> None:
    """Train from the BERT checkpoint ``base`` and save it in ``out``; ``out/fever`` keeps the state of the first stage.

    Without ``fever`` the first stage is left out. ``entities`` finds the entities that are swapped.
    """
    preset = preset or DetectorPreset()
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}}
    tokens = AutoTokenizer.from_pretrained(base, use_fast=True)
    model = AutoModelForSequenceClassification.from_pretrained(base, **names)
    report: dict[str, Any] = {"base": base, "seed": preset.seed}
    if fever is not None:
        claims = read_fever(fever)
        report["fever"] = Counter(label for _, _, label in claims)
        fit_pairs(model, tokens, claims, preset, out / "fever")
    records, inconsistent = read_dialogues(dialogues)
    examples = list(corpus.make_examples(records, entities, preset.seed, kinds))
    report["conv_fever"] = corpus.count_kinds(examples)
    pairs = [(e.record.knowledge, e.record.response, LABELS[not e.consistent]) for e in examples]
    fit_pairs(model, tokens, pairs + inconsistent, preset, out)
    model.save_pretrained(out)
    tokens.save_pretrained(out)
    write_report(out, report)


def read_fever(path: Path) -> list[LabelledPair]:
    """The supported and the refuted claims of a FEVER file, with their evidence."""
    labels = {"SUPPORTS": "consistent", "REFUTES": "inconsistent"}
    return [
        (join_texts(row["evidence"]), row["claim"], labels[row["label"]])
        for row in read_rows(path)
        if row["label"] in labels and join_texts(row["evidence"])
    ]


def fit_pairs(
    model: torch.nn.Module,
    tokens: PreTrainedTokenizerBase,
    pairs: Sequence[LabelledPair],
    preset: DetectorPreset,
    out: Path,
) -> None:
    """Train ``model`` on ``pairs``; interrupted runs continue from ``out``."""
    names = tokens.model_input_names
    fill = dict.fromkeys((*names, "labels"), 0) | {"input_ids": tokens.pad_token_id or 0}
    schedule = preset.schedule(len(pairs))

    def make(index: int, rng: random.Random) -> Row:
        knowledge, response, label = pairs[index]
        encoded = tokens(knowledge, response, truncation="longest_first", max_length=preset.max_tokens)
        return {name: encoded[name] for name in names} | {"labels": [LABELS.index(label)]}

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_batches(len(pairs), make, fill, schedule, start)

    parameters = [p for p in model.parameters() if p.requires_grad]
    fit(model, [ParameterGroup(parameters, preset.lr)], feed, lambda m, batch: m(**batch).loss, schedule, out)

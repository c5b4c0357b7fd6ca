"""Trains the multi-task NLI model: inference, consistency, verifiability and token labels on one MiniLM backbone.

``multitask_examples`` has the examples, ``multitask_model`` the heads and the loss. Each head is saved as an ordinary
``BertForSequenceClassification`` or ``BertForTokenClassification`` with the same backbone, so a bundle, which stores
equal weights once, holds the backbone once. The checkpoints of an earlier run, or one of ``compact.nli``, can be the
start.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ..common import backbone
from ..common.corpus import Squad
from ..common.loop import ParameterGroup, Schedule, fit, make_group_batches, write_report
from ..synthesis import pairs
from ..synthesis.chat_style import ChatStyle
from ..synthesis.pairs import ConsistencyPairs
from ..synthesis.verifiability import VerifiabilitySentences
from . import multitask_measure
from .multitask_examples import FILL, MultitaskExamples
from .multitask_model import build_multitask_nli, multitask_loss

EPOCH = 100_000
"""Groups between two shuffles; each is drawn anew."""


def train_multitask_nli(
    data: Path,
    out: Path,
    schedule: Schedule,
    lr: float = 1e-4,
    start: Path | None = None,
    measured: int = 600,
    dropout: float = 0.0,
) -> None:
    """Train and save ``out/{head}`` for every head and ``out/report.json``.

    The report measures each head on ``measured`` examples. Without dropout a step takes less processor time, and
    nearly no example is seen twice.
    """
    torch.manual_seed(schedule.seed)
    model = build_multitask_nli(start, dropout)
    examples = MultitaskExamples.read(data)

    def feed(first: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_group_batches(EPOCH, examples.make, FILL, schedule, first, size=2)

    fit(model, [ParameterGroup(backbone.freeze_word_embeddings(model), lr)], feed, multitask_loss, schedule, out)
    model.save(out)
    report = multitask_measure.measure_heads(model, MultitaskExamples.read(data, "dev"), measured)
    write_report(out, {"steps": schedule.steps, "seed": schedule.seed, **report})


def make_labelled_pairs(data: Path, count: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """``count`` consistency pairs of unseen articles, as rows that ``groundwire calibrate`` reads.

    A model that was trained on such pairs is more confident on them than on what people write, so calibrate on other
    sets too.
    """
    squad = Squad.read(data / "squad1_dev.jsonl.gz")
    style = ChatStyle(VerifiabilitySentences.read(data, squad).non_verifiable)
    consistency = ConsistencyPairs.read(data, squad, style, "dev")
    for index in range(count):
        pair = consistency.draw(random.Random(seed * 1_000_003 + index))
        yield {
            "id": f"made-{index}",
            "response": pair.response,
            "knowledge": pair.knowledge,
            "label": int(pair.label == pairs.LABELS[0]),
            "source": pair.kind,
        }

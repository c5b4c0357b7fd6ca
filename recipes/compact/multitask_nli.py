"""Trains the multi-task NLI model: inference, consistency, verifiability and token labels on one MiniLM backbone.

``multitask_examples`` has the examples, ``multitask_model`` the heads and the loss. Each head is saved as an ordinary
``BertForSequenceClassification`` or ``BertForTokenClassification`` with the same backbone, so a bundle, which stores
equal weights once, holds the backbone once. The checkpoints of an earlier run, or one of ``compact.nli``, can be the
start.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from ..common import backbone
from ..common.loop import ParameterGroup, Schedule, fit, make_group_batches, write_report
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

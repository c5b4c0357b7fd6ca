"""The reader's loss: that of the multi-task NLI model, and the sentence head's."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from pathlib import Path

import torch

from ..common.loop import Batch
from ..compact.multitask_model import IGNORED, multitask_loss
from .model import SENTENCE_HEAD, SENTENCE_IDS, Reader, make_pooling

SENTENCE_WEIGHT = 1.0
LABEL_WEIGHTS = (1.0, 2.0, 0.7)
"""Of the sentence labels: most sentences of an unsupported answer are supported."""


class _Computed(torch.nn.Module):
    """A model whose logits are computed already."""

    def __init__(self, logits: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self._logits = logits

    def forward(self, **_: torch.Tensor) -> dict[str, torch.Tensor]:
        return self._logits


def compute_logits(model: torch.nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
    """The logits of every head for a batch of rows."""
    pooling = make_pooling(batch[SENTENCE_IDS], batch[SENTENCE_HEAD].shape[1])
    logits: dict[str, torch.Tensor] = model(batch["input_ids"], batch["attention_mask"], pooling)
    return logits


def compute_losses(model: Reader, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of the heads of the multi-task NLI model, and the weighted mean over the labelled sentences."""
    logits = compute_logits(model, batch)
    labels = batch[SENTENCE_HEAD].flatten()
    weights = torch.tensor(LABEL_WEIGHTS, device=labels.device)
    table = logits[SENTENCE_HEAD].float().flatten(0, 1)
    each = torch.nn.functional.cross_entropy(table, labels, weights, ignore_index=IGNORED, reduction="sum")
    weight = torch.where(labels == IGNORED, 0.0, weights[labels.clamp(min=0)]).sum()
    return multitask_loss(_Computed(logits), batch), each / weight.clamp(min=1.0)


class ReaderLoss:
    """The loss of a batch; a line with the means goes to ``path`` every ``every`` batches."""

    def __init__(self, path: Path, every: int = 10) -> None:
        self._path = path
        self._every = every
        self._recent: defaultdict[str, list[torch.Tensor]] = defaultdict(list)
        self._count = 0
        self._started = 0.0

    def __call__(self, model: Reader, batch: Batch) -> torch.Tensor:
        """The loss to minimize."""
        others, sentences = compute_losses(model, batch)
        self._started = self._started or time.monotonic()
        self._recent["others"].append(others.detach())
        self._recent["sentences"].append(sentences.detach())
        self._count += 1
        if self._count % self._every == 0:
            self._write()
        return others + SENTENCE_WEIGHT * sentences

    def _write(self) -> None:
        means = {name: round(float(torch.stack(values).mean()), 4) for name, values in self._recent.items()}
        now = time.monotonic()
        seconds, self._started = round((now - self._started) / self._every, 3), now
        with self._path.open("a") as log:
            log.write(json.dumps({"batches": self._count, **means, "s_per_step": seconds}) + "\n")
        self._recent.clear()

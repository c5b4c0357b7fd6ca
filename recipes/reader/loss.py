"""The reader's loss: the multi-task NLI model's and the sentence head's."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from pathlib import Path

import torch

from ..common.loop import Batch
from ..compact.multitask_model import IGNORED, multitask_loss
from .model import SENTENCE_HEAD, SENTENCE_IDS, UNSUPPORTED, Reader, make_pooling

GROUP = 2
SENTENCE_WEIGHT = 1.0
RANKING_WEIGHT = 0.5
"""Weight of each of the two terms that compare the rows of a group."""
LABEL_WEIGHTS = (1.0, 2.0, 0.7)
"""Weights of the sentence labels: most sentences of an unsupported answer are supported."""


class ComputedLogits(torch.nn.Module):
    """A model whose logits are computed already."""

    def __init__(self, logits: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self._logits = logits

    def forward(self, **_: torch.Tensor) -> dict[str, torch.Tensor]:
        """The logits."""
        return self._logits


def compute_head_logits(model: torch.nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
    """The logits of every head for a batch of rows."""
    pooling = make_pooling(batch[SENTENCE_IDS], batch[SENTENCE_HEAD].shape[1])
    logits: dict[str, torch.Tensor] = model(batch["input_ids"], batch["attention_mask"], pooling)
    return logits


def compute_losses(model: Reader, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of the heads of the multi-task NLI model with the ranking loss, and the weighted mean over the labelled
    sentences."""
    return compare_labels(compute_head_logits(model, batch), batch)


def compare_labels(logits: dict[str, torch.Tensor], batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """``compute_losses`` of logits that are computed already."""
    labels = batch[SENTENCE_HEAD].flatten()
    weights = torch.tensor(LABEL_WEIGHTS, device=labels.device)
    table = logits[SENTENCE_HEAD].float().flatten(0, 1)
    each = torch.nn.functional.cross_entropy(table, labels, weights, ignore_index=IGNORED, reduction="sum")
    weight = torch.where(labels == IGNORED, 0.0, weights[labels.clamp(min=0)]).sum()
    others = multitask_loss(ComputedLogits(logits), batch) + RANKING_WEIGHT * compute_ranking_loss(logits, batch)
    return others, each / weight.clamp(min=1.0)


def compute_ranking_loss(logits: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
    """How badly the groups of a consistent and an inconsistent row are ranked: the mean over all groups.

    The rows of a group differ in little, so their difference says nothing about topic or length. Two scores are
    compared, each as -log sigmoid of the difference: the log-odds of consistent, and the largest log-odds of
    unsupported of a sentence.
    """
    twins, whole, worst = compare_twins(logits, batch)
    log_odds = torch.nn.functional.logsigmoid
    return -(twins * log_odds(whole)).mean() - (twins * log_odds(worst)).mean()


def compare_twins(logits: dict[str, torch.Tensor], batch: Batch) -> list[torch.Tensor]:
    """How much more consistent the consistent row of each group is than the other.

    Returns:
        Three tensors [G]: 1 for groups of a consistent and an inconsistent row, 0 for others; the difference of their
        log-odds of consistent; that of the largest log-odds of unsupported of a sentence.
    """
    labels = batch["consistency"].reshape(-1, GROUP)
    direction = (labels[:, 1] - labels[:, 0]).float() * (labels != IGNORED).all(-1)
    whole = logits["consistency"].float()
    sentences = logits[SENTENCE_HEAD].float()
    others = torch.cat([sentences[..., :UNSUPPORTED], sentences[..., UNSUPPORTED + 1 :]], dim=-1).logsumexp(-1)
    doubt = sentences[..., UNSUPPORTED] - others
    absent = torch.arange(doubt.shape[1], device=doubt.device) >= batch[SENTENCE_IDS].amax(-1, keepdim=True)
    worst = doubt.masked_fill(absent, float("-inf")).amax(-1).clamp(min=-1e4)
    pairs = (score.reshape(-1, GROUP) for score in (whole[:, 0] - whole[:, 1], -worst))
    return [direction.abs(), *(direction * (pair[:, 0] - pair[:, 1]) for pair in pairs)]


def split_batch(batch: Batch, max_tokens: int) -> list[Batch]:
    """Split a batch into parts of ``max_tokens`` tokens at most, or of one group; 0 leaves it whole."""
    rows, width = batch["input_ids"].shape
    size = max(GROUP, max_tokens // width // GROUP * GROUP) if max_tokens else rows
    return [{name: value[start : start + size] for name, value in batch.items()} for start in range(0, rows, size)]


class ReaderLoss:
    """The loss of a batch; a line with the means goes to ``path`` every ``every`` batches.

    A batch of more than ``max_tokens`` tokens, padding included, is read in parts, whose gradients add up, so that the
    states of one part are in memory at a time; 0 reads every batch at once.
    """

    def __init__(self, path: Path, max_tokens: int = 0, every: int = 10) -> None:
        self._path = path
        self._max_tokens = max_tokens
        self._every = every
        self._recent: defaultdict[str, list[torch.Tensor]] = defaultdict(list)
        self._count = 0
        self._started = 0.0

    def __call__(self, model: Reader, batch: Batch) -> torch.Tensor:
        """The loss to minimize; the gradients of all parts but the last are in the parameters already."""
        self._started = self._started or time.monotonic()
        rows = len(batch["input_ids"])
        parts = split_batch(batch, self._max_tokens)
        total = torch.zeros((), device=batch["input_ids"].device)
        for number, part in enumerate(parts, 1):
            share = len(part["input_ids"]) / rows
            others, sentences = (share * loss for loss in compute_losses(model, part))
            self._recent["others"].append(others.detach() * len(parts))
            self._recent["sentences"].append(sentences.detach() * len(parts))
            loss = others + SENTENCE_WEIGHT * sentences
            if number < len(parts) and loss.requires_grad:
                with torch.autocast(loss.device.type, enabled=False):
                    torch.autograd.backward(loss)
                loss = loss.detach()
            total = total + loss
        self._count += 1
        if self._count % self._every == 0:
            self._write()
        return total

    def _write(self) -> None:
        means = {name: round(float(torch.stack(values).mean()), 4) for name, values in self._recent.items()}
        now = time.monotonic()
        seconds, self._started = round((now - self._started) / self._every, 3), now
        with self._path.open("a") as log:
            log.write(json.dumps({"batches": self._count, **means, "s_per_step": seconds}) + "\n")
        self._recent.clear()

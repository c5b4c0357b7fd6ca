"""Trains for so many seconds on rows that are on the device: the reader, then a small model that imitates it."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch

from ..common.loop import Batch
from ..compact.multitask_model import TOKEN_HEAD, WEIGHTS, MultitaskNLI, multitask_loss
from .fused import HalfOptimizer
from .loss import (
    GROUP,
    SENTENCE_WEIGHT,
    ComputedLogits,
    compare_labels,
    compare_twins,
    compute_head_logits,
    compute_losses,
)
from .model import Reader
from .packed_rows import PackedRows

WARMUP, FALL = 0.03, 0.6
"""Shares of the time over which the rate rises, and over which it falls at the end."""
CLIP = 1.0
EVERY, CHECK_EVERY = 25, 500
"""Steps between two looks at the clock, and between two measurements."""
AVERAGED, AVERAGE_EVERY, AVERAGE_SHARE = 0.4, 10, 0.02
"""Share of the time, at the end, whose weights are averaged; steps between two of them; how much each counts."""
IMITATED = ("nli", "consistency", TOKEN_HEAD)
"""Heads whose probabilities the small model learns from the reader; verifiability is one of single texts."""
HARD_WEIGHT = 0.5
"""Weight of the labels beside the reader's probabilities."""


def train_for(
    seconds: float,
    batches: Iterator[Batch],
    compute: Callable[[Batch], torch.Tensor],
    optimizer: HalfOptimizer,
    log: Path,
    check: Callable[[], Mapping[str, object]] = dict,
) -> int:
    """Train until ``seconds`` are over; a line with the mean loss goes to ``log`` from time to time.

    What ``check`` returns is added to a line every ``CHECK_EVERY`` steps and to the last one.

    Returns:
        Steps that were taken.

    Raises:
        FloatingPointError: If the loss is not a number.
    """
    started = time.monotonic()
    share, rows = 0.0, 0
    losses: list[torch.Tensor] = []
    for step in itertools.count():
        if step % EVERY == 0 and losses:
            # Reading the loss waits for the device, so the clock says what was done.
            mean = float(torch.stack(losses).mean())
            elapsed = time.monotonic() - started
            with log.open("a") as file:
                line = {"step": step, "rows": rows, "loss": round(mean, 4), "rate": round(scale_rate(share), 3)}
                held = check() if step % CHECK_EVERY == 0 or elapsed >= seconds else {}
                file.write(json.dumps({**line, "s": round(elapsed, 1), **held}) + "\n")
            if mean != mean:
                raise FloatingPointError(f"The loss is not a number after {step} steps.")
            share, losses = elapsed / seconds, []
            if share >= 1.0:
                return step
        batch = next(batches)
        rows += len(batch["input_ids"])
        loss = compute(batch)
        torch.autograd.backward(loss)
        optimizer.step(scale_rate(share), CLIP)
        if share >= 1.0 - AVERAGED and step % AVERAGE_EVERY == 0:
            optimizer.add_to_average(AVERAGE_SHARE)
        losses.append(loss.detach())
    raise AssertionError


def scale_rate(share: float) -> float:
    """The learning rate after a share of the time, as a share of its peak."""
    return max(0.02, min(1.0, (share + 0.1 * WARMUP) / WARMUP, (1.0 - share) / FALL))


def compute_reader_loss(reader: Reader, batch: Batch) -> torch.Tensor:
    """The loss of all heads of the reader."""
    others, sentences = compute_losses(reader, batch)
    return others + SENTENCE_WEIGHT * sentences


@torch.inference_mode()
def measure_held(reader: Reader, held: Mapping[str, PackedRows], batch: int) -> dict[str, float]:
    """The mean loss on rows that are kept for measuring, and the share of their twins that are ordered rightly.

    Args:
        reader: As it is; it is put back into training.
        held: By source.
        batch: Rows that are read at a time.

    Returns:
        ``loss.{source}``, and ``whole.{source}`` and ``worst.{source}``: twins that the whole response and that the
        worst sentence order rightly, 0–1.
    """
    reader.eval()
    measured: dict[str, float] = {}
    for source, rows in held.items():
        sums = torch.zeros(4)
        for part in rows.list_batches(batch):
            logits = compute_head_logits(reader, part)
            others, sentences = compare_labels(logits, part)
            twins, *differences = compare_twins(logits, part)
            right = [(twins * (difference > 0)).sum() for difference in differences]
            loss = (others + SENTENCE_WEIGHT * sentences) * len(part["input_ids"])
            sums += torch.stack([loss, twins.sum(), *right]).cpu()
        loss, count, whole, worst = sums.tolist()
        measured[f"loss.{source}"] = round(loss / (GROUP * rows.groups), 4)
        measured |= {
            f"{name}.{source}": round(n / max(1.0, count), 4) for name, n in (("whole", whole), ("worst", worst))
        }
    reader.train()
    return measured


def compute_imitation_loss(student: MultitaskNLI, reader: Reader, batch: Batch) -> torch.Tensor:
    """How far the student's probabilities are from the reader's and from the labels.

    The reader's count for rows of two texts, and its token head's for the tokens of the second text.
    """
    with torch.no_grad():
        wanted = compute_head_logits(reader, batch)
    logits = student(batch["input_ids"], batch["token_type_ids"], batch["attention_mask"])
    pairs = batch["token_type_ids"].amax(-1).float()
    total = torch.zeros((), device=pairs.device)
    for name in IMITATED:
        each = -(wanted[name].float().softmax(-1) * logits[name].float().log_softmax(-1)).sum(-1)
        inside = batch["token_type_ids"].float() if name == TOKEN_HEAD else pairs
        total = total + WEIGHTS[name] * (each * inside).sum() / inside.sum().clamp(min=1.0)
    return total + HARD_WEIGHT * multitask_loss(ComputedLogits(logits), batch)

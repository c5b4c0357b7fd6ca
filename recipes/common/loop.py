"""The training loop every recipe shares: seeded, length-bucketed, checkpointed, resumable.

A batch is a function of the seed and the step alone, so a run that is stopped and resumed sees exactly the batches
an uninterrupted run would have seen.
"""

from __future__ import annotations

import contextlib
import functools
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to train."""

    steps: int
    """Optimizer steps in all."""
    batch: int = 32
    """Examples per step."""
    warmup: float = 0.06
    """Share of the steps over which the learning rate rises from 0."""
    decay: float = 1.0
    """Share of the steps, at the end, over which the learning rate falls linearly to 0; it is constant before. With 1
    it falls from the end of the warm-up on. With less the end can be chosen late: ``steps`` may change between two runs
    as long as the fall has not begun (Hu et al. 2024, MiniCPM)."""
    warmup_steps: int | None = None
    """Steps of the warm-up; None takes the share ``warmup``, which depends on ``steps``."""
    weight_decay: float = 0.01
    clip: float = 1.0
    """Largest gradient norm."""
    seed: int = 13
    checkpoint_s: float = 180.0
    """Seconds between checkpoints."""
    autocast: str = "auto"
    """``bf16``, ``off`` or ``auto``: bf16 on a GPU and on a processor where it multiplies faster than float32."""

    def scale_rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0, as a share of its peak."""
        warmup = self.warmup_steps or max(1, int(self.steps * self.warmup))
        fall = max(1, min(self.steps - warmup, round(self.steps * self.decay)))
        return max(0.0, min((step + 1) / warmup, 1.0, (self.steps - step) / fall))


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """Parameters that share a peak learning rate."""

    parameters: list[torch.nn.Parameter]
    lr: float


def select_device() -> torch.device:
    """The GPU when there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


Row: TypeAlias = dict[str, list[int]]
"""An example: id lists, and labels as lists of one number, by name."""
Batch: TypeAlias = dict[str, torch.Tensor]
"""Padded rows by name."""
Model = TypeVar("Model", bound=torch.nn.Module)


def make_batches(
    count: int,
    make_row: Callable[[int, random.Random], Row],
    padding: dict[str, int],
    schedule: Schedule,
    start: int = 0,
) -> Iterator[Batch]:
    """Yield the padded batches of the steps from ``start`` on.

    ``make_row(index, rng)`` makes one example; its ``input_ids`` give its length, and examples of similar length share
    a batch. ``padding`` maps each id list to its padding value; a list of one number is a label. ValueError when there
    are fewer examples than a batch takes.
    """
    return make_group_batches(count, lambda index, rng: (make_row(index, rng),), padding, schedule, start)


def make_group_batches(
    count: int,
    make_group: Callable[[int, random.Random], Sequence[Row]],
    padding: dict[str, int],
    schedule: Schedule,
    start: int = 0,
    size: int = 1,
) -> Iterator[Batch]:
    """``make_batches`` for groups of ``size`` examples that stay in one batch; ``count`` is the number of groups.

    ValueError when ``size`` does not divide a batch.
    """
    per_batch, rest = divmod(schedule.batch, size)
    if rest:
        raise ValueError(f"A batch of {schedule.batch} is no multiple of {size}, the examples of a group.")
    if count < per_batch:
        raise ValueError(f"{count} examples do not fill a batch of {per_batch}; give more, or a smaller batch.")
    step, epoch, span = 0, 0, per_batch * 24
    while step < schedule.steps:
        order = list(range(count))
        random.Random(schedule.seed * 1_000_003 + epoch).shuffle(order)
        for first_row in range(0, count - per_batch + 1, span):
            part = order[first_row : first_row + span]
            batches = len(part) // per_batch
            if step + batches > start:
                groups = [make_group(i, random.Random(schedule.seed * 7_919 + epoch * 15_485_863 + i)) for i in part]
                groups.sort(key=lambda group: max(len(row["input_ids"]) for row in group))
                plan = list(range(batches))
                random.Random(schedule.seed + step).shuffle(plan)
                for batch_step, number in enumerate(plan, step):
                    if start <= batch_step < schedule.steps:
                        chosen = groups[number * per_batch : (number + 1) * per_batch]
                        yield collate([row for group in chosen for row in group], padding)
            step += batches
            if step >= schedule.steps:
                return
        epoch += 1


def fit(
    model: Model,
    groups: Sequence[ParameterGroup],
    feed: Callable[[int], Iterator[Batch]],
    loss: Callable[[Model, Batch], torch.Tensor],
    schedule: Schedule,
    out: Path,
) -> Model:
    """Train ``model`` and return it; a later call with the same ``out`` continues from the last checkpoint.

    ``feed(start)`` yields the batches from step ``start`` on. Progress goes to the terminal, and one line per 50 steps
    to ``out/log.jsonl``.
    """
    out.mkdir(parents=True, exist_ok=True)
    device = select_device()
    model.to(device).train()
    optimizer = torch.optim.AdamW(
        [{"params": g.parameters, "lr": g.lr} for g in groups], weight_decay=schedule.weight_decay, betas=(0.9, 0.98)
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: schedule.scale_rate(s))
    state_path, step = out / "checkpoint.pt", 0
    if state_path.exists():
        state = torch.load(state_path, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["rate"])
        step = int(state["step"])
    trained = [p for g in groups for p in g.parameters]
    saved_at = time.monotonic()
    recent: list[float] = []

    def save() -> None:
        partial = state_path.with_suffix(".part")
        torch.save(
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "rate": scheduler.state_dict(),
                "step": step,
            },
            partial,
        )
        partial.replace(state_path)

    with _progress(schedule.steps, step, out.name) as advance, (out / "log.jsonl").open("a") as log:
        started = time.monotonic()
        for batch in feed(step):
            batch = {name: value.to(device) for name, value in batch.items()}
            # Dropout, like the batch, is a function of the seed and the step alone.
            torch.manual_seed(schedule.seed * 1_000_003 + step)
            with _autocast(schedule.autocast, device):
                value = loss(model, batch)
            torch.autograd.backward(value)
            torch.nn.utils.clip_grad_norm_(trained, schedule.clip)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            recent.append(float(value.detach()))
            if step % 50 == 0 or step == schedule.steps:
                line = {
                    "step": step,
                    "loss": round(float(np.mean(recent)), 4),
                    "s": round(time.monotonic() - started, 1),
                }
                log.write(json.dumps(line) + "\n")
                log.flush()
                advance(step, line["loss"])
                recent.clear()
            if time.monotonic() - saved_at > schedule.checkpoint_s:
                save()
                saved_at = time.monotonic()
    save()
    model.eval()
    return model


def collate(rows: Sequence[Row], padding: dict[str, int]) -> Batch:
    """Pad the id lists that ``padding`` names to one length per name; labels (lists of one) become a vector."""
    batch: Batch = {}
    for name, value in padding.items():
        longest = max(len(row[name]) for row in rows)
        if longest == 1:
            batch[name] = torch.tensor([row[name][0] for row in rows])
            continue
        width = -(-longest // 8) * 8
        table = np.full((len(rows), width), value, dtype=np.int64)
        for index, row in enumerate(rows):
            table[index, : len(row[name])] = row[name]
        batch[name] = torch.from_numpy(table)
    return batch


def write_report(out: Path, report: dict[str, Any]) -> None:
    """Write the recipe's measurements to ``out/report.json`` and print them."""
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    Console().print_json(data=report)


def _autocast(mode: str, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    if mode == "off" or (mode == "auto" and device.type == "cpu" and not _bf16_is_faster()):
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


@functools.cache
def _bf16_is_faster() -> bool:
    """Whether this processor multiplies bf16 faster: measured, because the CPU flags do not show it."""

    def seconds(dtype: torch.dtype) -> float:
        a, b = torch.ones(1024, 384, dtype=dtype), torch.ones(384, 1536, dtype=dtype)
        best = float("inf")
        for _ in range(5):
            started = time.perf_counter()
            torch.mm(a, b)
            best = min(best, time.perf_counter() - started)
        return best

    return seconds(torch.bfloat16) < seconds(torch.float32)


@contextlib.contextmanager
def _progress(total: int, done: int, label: str) -> Iterator[Callable[[int, float], None]]:
    if not sys.stderr.isatty():
        yield lambda step, value: None
        return
    columns = (
        TextColumn(label),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total, completed=done, loss="–")
        yield lambda step, value: bar.update(task, completed=step, loss=value)

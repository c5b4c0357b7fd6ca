"""Trains the reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import torch

from ..common.loop import Batch, ParameterGroup, Schedule, fit
from .feed import MakeGroup, make_local_batches, make_worker_batches
from .loss import ReaderLoss
from .model import FROZEN_LAYERS, Reader, build_reader, check_published_weights, freeze

Feed: TypeAlias = Callable[[int], Iterator[Batch]]
SCHEDULE = Schedule(steps=6000, warmup_steps=60, decay=0.2, checkpoint_s=600.0)
"""Until the rate falls, ``steps`` may change between two runs."""
LEARNING_RATE = 4e-5


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """What to train, and from what."""

    source: Path | None
    """Directory with the files of all-mpnet-base-v2; None if ``start`` has all weights."""
    layers: int = 12
    """Layers of the backbone, from the lowest."""
    frozen: int = FROZEN_LAYERS
    """Lowest layers that are not trained; the embeddings never are."""
    start: Path | None = None
    """A checkpoint to start from; None for the published weights."""
    lr: float = LEARNING_RATE
    workers: int = 0
    """Processes that draw the rows; 0 for the training process."""
    max_tokens: int = 0
    """Tokens that are read at a time, which bounds the memory; 0 for whole batches."""


def train_reader(data: Path, out: Path, schedule: Schedule, options: ReaderOptions) -> Reader:
    """Train on rows drawn from the training sets in ``data``; ``out/checkpoint.pt`` has the last state."""
    if options.source is not None:
        check_published_weights(options.source)
    build = partial(build_examples, data)

    def feed(first: int) -> Iterator[Batch]:
        if options.workers:
            return make_worker_batches(build, schedule, first, options.workers)
        return make_local_batches(build(), schedule, first)

    return run_training(out, schedule, options, feed)


def run_training(out: Path, schedule: Schedule, options: ReaderOptions, feed: Feed) -> Reader:
    """Train from ``options.start``, or continue the run in ``out``."""
    torch.manual_seed(schedule.seed)
    out.mkdir(parents=True, exist_ok=True)
    state = out / "checkpoint.pt"
    reader = build_reader(options.source, options.layers, state if state.exists() else options.start)
    reader.backbone.config.to_json_file(out / "config.json")
    groups = [ParameterGroup(freeze(reader, options.frozen), options.lr)]
    return fit(reader, groups, feed, ReaderLoss(out / "losses.jsonl", options.max_tokens), schedule, out)


def build_examples(data: Path) -> MakeGroup:
    """The function that draws a group of rows; its modules, which need a tokenizer, are imported with its first use."""
    from .examples import ReaderExamples

    return ReaderExamples.read(data).make

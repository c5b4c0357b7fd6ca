"""Feeds batches to the training loop: drawn in its own process, or by worker processes."""

from __future__ import annotations

import multiprocessing
import multiprocessing.pool
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch

from ..common import backbone
from ..common.loop import Batch, Row, Schedule, make_group_batches
from ..compact.multitask_model import HEADS, IGNORED, TOKEN_HEAD
from .model import SENTENCE_HEAD, SENTENCE_IDS

FILL = {
    **dict.fromkeys((*backbone.INPUTS, *HEADS, SENTENCE_IDS), 0),
    **dict.fromkeys((TOKEN_HEAD, SENTENCE_HEAD), IGNORED),
}
"""The padding of each list of a row."""
EPOCH = 100_000
"""Groups between two shuffles; each is drawn anew."""
GROUP = 2
SPAN = 24
"""Batches that ``make_group_batches`` draws together."""
MakeGroup: TypeAlias = Callable[[int, random.Random], Sequence[Row]]

_make_group: MakeGroup
"""State of a worker process."""


def make_worker_batches(
    build: Callable[[], MakeGroup], schedule: Schedule, start: int, workers: int
) -> Iterator[Batch]:
    """Yield the batches of ``make_group_batches`` from ``start`` on, drawn by worker processes, each with a ``build``.

    The processes are new ones, not forks, because a fork of a process that uses a GPU is unusable.
    """
    context = multiprocessing.get_context("spawn")
    # The first span may begin in its middle.
    begins = [start, *range((start // SPAN + 1) * SPAN, schedule.steps, SPAN)]
    tasks = [(begin, min((begin // SPAN + 1) * SPAN, schedule.steps)) for begin in begins if begin < schedule.steps]
    with context.Pool(workers, start_worker, (build,)) as pool:
        ahead: deque[multiprocessing.pool.AsyncResult[list[Batch]]] = deque()
        for task in tasks:
            ahead.append(pool.apply_async(_make_span, (schedule, *task)))
            if len(ahead) > 2 * workers:
                yield from ahead.popleft().get()
        while ahead:
            yield from ahead.popleft().get()


def make_local_batches(make_group: MakeGroup, schedule: Schedule, start: int) -> Iterator[Batch]:
    """Yield the batches from ``start`` on."""
    return make_group_batches(EPOCH, make_group, FILL, schedule, start, size=GROUP)


def start_worker(build: Callable[[], MakeGroup]) -> None:
    """Prepare a process that draws groups."""
    global _make_group
    torch.set_num_threads(1)
    _make_group = build()


def _make_span(schedule: Schedule, begin: int, end: int) -> list[Batch]:
    limited = replace(schedule, steps=end)
    return list(make_local_batches(call_group, limited, begin))


def call_group(index: int, rng: random.Random) -> Sequence[Row]:
    """Draw a group in a process that ``start_worker`` has prepared."""
    return _make_group(index, rng)

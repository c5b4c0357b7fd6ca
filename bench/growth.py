"""Memory growth of a process over many requests: ``python -m bench.growth compact 2 10000 127 q2 beam``.

The resident size alone is not enough: a page of a mapped file counts from the first time a row of it is read, and freed
memory is returned late and in parts. So the C library (glibc) reports the bytes in use, and Python takes all of its
memory from there (``PYTHONMALLOC=malloc``). PyTorch is hidden, as in fresh.py.
"""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import numpy as np

from .support import common
from .support.common import check
from .support.dialogues import distinct
from .support.memory import hide, in_use_mb, resident_mb

POINTS = 50


class Point(msgspec.Struct, frozen=True):
    """The process after a number of requests."""

    requests: int
    resident_mb: float
    in_use_mb: float
    """Allocated and not freed."""


class Growth(msgspec.Struct, frozen=True):
    """Memory over many distinct requests."""

    requests: int
    per_second: float
    points: tuple[Point, ...]
    resident_slope_mb: float
    """Per thousand requests, least squares over the second half, when the cache has long been full."""
    in_use_slope_mb: float
    """The same for the memory in use, which the engine keeps."""
    cached_calls: int


def measure(bundle: str, threads: int, requests: int, max_new_tokens: int, metrics: str = "q2") -> Growth:
    """Score distinct responses in a process of its own, with the default cache, as a service would."""
    command = [sys.executable, "-m", "bench.growth", bundle, *map(str, (threads, requests, max_new_tokens)), metrics]
    env = os.environ | {"PYTHONMALLOC": "malloc"}
    process = subprocess.run(command, cwd=common.ROOT, check=True, stdout=subprocess.PIPE, env=env)
    return msgspec.json.decode(process.stdout, type=Growth)


def main(
    bundle: str, threads: int, requests: int, max_new_tokens: int, metrics: tuple[str, ...], decoding: str = "beam"
) -> Growth:
    """Run one measurement, for ``measure``; ``greedy`` takes a fifth of the time and keeps the same memory."""
    hide("torch")
    from rich.console import Console
    from rich.progress import track

    from groundwire.engine import Engine, Options
    from groundwire.engine.schema.options import Q2Options
    from groundwire.generation import BeamSearch, Greedy

    how = BeamSearch(max_new_tokens=max_new_tokens) if decoding == "beam" else Greedy(max_new_tokens=max_new_tokens)
    options, every, points = Options(Q2Options(how)), max(1, requests // POINTS), []
    screen = Console(stderr=True)
    with Engine.load(bundle, "cpu", threads=threads) as engine:

        def score() -> None:
            scores = engine.score_many(distinct(requests), metrics=metrics, options=options)
            watched = track(scores, "memory", requests, transient=True, console=screen, disable=not screen.is_terminal)
            for done, result in enumerate(watched, 1):
                check(
                    result.status == "scored", f"request {done} of the memory part: {result.status}, {result.message}"
                )
                if done % every == 0:
                    points.append(Point(done, resident_mb(), in_use_mb()))

        spent, _ = common.timed(score)
        cached = engine.core.scheduler.cache_info[0]
    later = [point for point in points if point.requests > requests / 2]

    def slope(sizes: list[float]) -> float:
        return float(np.polyfit([point.requests for point in later], sizes, 1)[0]) * 1000

    resident, in_use = ([getattr(point, name) for point in later] for name in ("resident_mb", "in_use_mb"))
    return Growth(requests, requests / spent * 1000, tuple(points), slope(resident), slope(in_use), cached)


if __name__ == "__main__":
    bundle_name, thread_count, request_count, tokens, metric_names, *decoding = sys.argv[1:]
    growth = main(
        bundle_name, int(thread_count), int(request_count), int(tokens), tuple(metric_names.split(",")), *decoding
    )
    print(msgspec.json.encode(growth).decode())

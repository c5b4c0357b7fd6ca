"""The padding of extractive QA at the capture sizes of a GPU, counted without one.

    python -m bench.padding                              # runs the models on the CPU once, some minutes
    python -m bench.padding --lengths bench/results/padding.json    # counts what that run has recorded again

The models run on the CPU in the batches of a GPU: one thread for each graph, 64 requests in flight, up to 512 rows.
The lengths of the windows that extractive QA reads together are recorded; the rest is arithmetic. ``alone`` is
one response at a time, which asks all its questions at once. ``together`` has 64 in flight, on a CPU, where questions
take no longer than the rest, so many of the batches are small. ``queued N`` cuts the same rows into batches of N, as
they are where extractive QA takes most of the time and its calls queue.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import msgspec
import numpy as np
import typer

from groundwire.engine import Engine, LoadOptions
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.calls import Call
from groundwire.runtime.capture.shapes import list_rows, plan_encoder
from groundwire.runtime.local import SPARE_REQUESTS, LocalRuntime, merge_roles
from groundwire.runtime.models.kinds import kind_of
from groundwire.runtime.models.loading import group_roles, load_group
from groundwire.runtime.ort import session
from groundwire.runtime.ort.blocks import cut_rows
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.protocol import Outcome

from .support import common
from .support.dialogues import Dialogue, distinct, examples

WINDOW = 512
"""Tokens of the papers' models."""
QUEUED = (64, 128, 256)
Lengths = list[list[int]]
"""Lengths of the windows of each run."""


class Padding(msgspec.Struct, frozen=True):
    """What a graph reads."""

    runs: str
    ratio: float
    """Padded tokens over tokens."""
    replays: float
    """Captured graphs that are launched for 20 rows, about a response's."""
    waits: float
    """Times that the host waits, once for each batch of one width, for 20 rows."""


class Paddings(msgspec.Struct, frozen=True):
    """The padding of all runs."""

    shapes: int
    """Captured shapes of an encoder."""
    rows: list[Padding]
    alone: Lengths
    together: Lengths


class GpuLikeRuntime(LocalRuntime):
    """The models on the CPU, in the batches of a GPU."""

    concurrent_requests = 64
    spare_requests = SPARE_REQUESTS
    lengths: Lengths
    current = threading.local()

    @property
    def worker_pools(self) -> dict[str, int]:
        """A thread for each graph."""
        return dict.fromkeys((*map(self.worker_pool, self._roles), "host"), 1)

    def worker_pool(self, role: str) -> str:
        """The graph's own."""
        host = role in self._roles and kind_of(self._roles[role][0]).pool == "host"
        return "host" if host else f"device:{self.batch_group(role)}"

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """As the CPU answers."""
        self.current.role = role
        return super().run(role, calls, max_windows)

    @contextmanager
    def recording(self) -> Iterator[Lengths]:
        """Inside the block, the lengths of the windows of extractive QA are kept."""
        lengths: Lengths = []
        plan = session.plan_batches

        def record(windows: Any, *settings: Any) -> Any:
            if self.current.role == "qa":
                lengths.append(windows.tolist())
            return plan(windows, *settings)

        with mock.patch.object(session, "plan_batches", record):
            yield lengths


def record_lengths(bundle: str, responses: int) -> tuple[Lengths, Lengths]:
    """The lengths of Q²'s questions, one response at a time and together."""
    opened = Bundle.open(bundle)
    roles = merge_roles([opened])
    profile = replace(DeviceProfile.of("cpu", 1), max_tokens=32768, max_rows=512, max_beams=640)
    models = {
        name: model for names in group_roles(roles) for model in [load_group(names, roles, profile)] for name in names
    }
    runtime = GpuLikeRuntime(opened, profile, models)

    def make_item(dialogue: Dialogue) -> dict[str, Any]:
        return {"response": dialogue.response, "knowledge": dialogue.knowledge, "history": ("Tell me.",)}

    with Engine(runtime, LoadOptions(cache_bytes=0)) as engine:
        with runtime.recording() as alone:
            for dialogue in examples():
                engine.score(**make_item(dialogue), metrics=["q2"])
        with runtime.recording() as together:
            list(engine.score_many(map(make_item, distinct(responses)), metrics=["q2"]))
    return alone, together


def count(name: str, runs: Lengths) -> Padding:
    """The padding of some runs."""
    plan = plan_encoder(WINDOW, strict=False)
    sizes = {profile.width: list_rows(profile.max_rows) for profile in plan.profiles}
    padded = replays = waits = 0
    for run in runs:
        for width, rows in zip(*np.unique(plan.fit(np.array(run)), return_counts=True), strict=True):
            for first in range(0, int(rows), sizes[int(width)][-1]):
                batch = min(int(rows) - first, sizes[int(width)][-1])
                blocks = cut_rows(batch, sizes[int(width)], int(width))
                padded += sum(block.rows * int(width) for block in blocks)
                replays += len(blocks)
                waits += 1
    total = sum(map(len, runs))
    return Padding(name, padded / sum(map(sum, runs)), 20 * replays / total, 20 * waits / total)


def main(
    bundle: Annotated[str, typer.Option(help="Bundle: a name, a directory or hf://.")] = "compact",
    responses: Annotated[int, typer.Option(help="Responses together.", min=64)] = 192,
    lengths: Annotated[Path | None, typer.Option(help="Count again what an earlier run has recorded.")] = None,
    out: Annotated[Path | None, typer.Option(help="The JSON file.")] = common.RESULTS / "padding.json",
) -> None:
    """Count the padding of extractive QA on a GPU."""
    if lengths is None:
        alone, together = record_lengths(bundle, responses)
    else:
        earlier = msgspec.json.decode(lengths.read_bytes(), type=common.Report[Paddings]).results
        alone, together = earlier.alone, earlier.together
    flat = [length for run in together for length in run]
    runs = {"alone": alone, "together": together}
    runs |= {f"queued {size}": [flat[first : first + size] for first in range(0, len(flat), size)] for size in QUEUED}
    rows = [count(name, of_name) for name, of_name in runs.items()]
    table = [(row.runs, f"{row.ratio:.3f}", f"{row.replays:.1f}", f"{row.waits:.1f}") for row in rows]
    common.console().print(common.table("for 20 rows", ("runs", "padded / real", "replays", "waits"), table))
    shapes = sum(len(list_rows(profile.max_rows)) for profile in plan_encoder(WINDOW, strict=False).profiles)
    targets = [
        common.PerformanceTarget.at_most("padded / real, one response", rows[0].ratio, 1.3, ""),
        common.PerformanceTarget.at_most("padded / real, saturated", rows[3].ratio, 1.15, ""),
    ]
    common.finish("padding", {"bundle": bundle}, Paddings(shapes, rows, alone, together), targets, out)


if __name__ == "__main__":
    typer.run(main)

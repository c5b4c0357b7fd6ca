"""What sharing brings: model calls that share a batch, and batches that run beside each other.

    python -m bench.batching

- calls: of every role of the device, the calls that all metrics make of the example dialogues, so many at a time. The
  peer is each call alone, and all must get the answers they get alone;
- pools: responses scored one at a time and many at once, by an engine whose device runs one batch at a time and by one
  that runs as many as its profile says. Both must give the same values.

The first part says how much the second, and a service's concurrent requests, can gain at all: where a call in a full
batch costs what it costs alone, only a processor that idles leaves anything to gain.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from groundwire.engine import Engine, Score
from groundwire.runtime.calls import Call, role_of
from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.protocol import Outcome

from . import common
from .common import Timing, check, interleaved, timed
from .dialogues import Dialogue, distinct
from .observed import Observed

SIZES = (1, 2, 4, 8, 16, 32, 64)
WINDOWS = 64


class Shared(msgspec.Struct, frozen=True):
    """So many calls of a role at a time."""

    calls: int
    timing: Timing
    """Of all of them together."""
    ratio: float
    """Median time of the same calls alone, one after another, over that of all together."""


class Lanes(msgspec.Struct, frozen=True):
    """An engine whose device runs so many batches at the same time."""

    pools: int
    alone: Timing
    """One response at a time."""
    together: Timing
    """All responses of a sample, many at once."""
    per_second: float
    """Responses, many at once."""


class Batching(msgspec.Struct, frozen=True):
    """The results."""

    roles: dict[str, list[Shared]]
    pools: list[Lanes]


def calls_of(runtime: LocalRuntime, dialogues: Sequence[Dialogue]) -> dict[str, list[Call]]:
    """The different calls of the device that all metrics make, by role."""
    observed = Observed(runtime)
    observed.calls = []
    engine = Engine(observed)
    _score_many(engine, dialogues)
    found: dict[str, list[Call]] = {}
    for call in dict.fromkeys(observed.calls):
        if runtime.worker_pool(role_of(call)) == "device":
            found.setdefault(role_of(call), []).append(call)
    return found


def shared(runtime: LocalRuntime, role: str, calls: Sequence[Call], repeats: int) -> list[Shared]:
    """Time the first calls of a role in batches of every size there are enough calls for."""

    def run(chosen: Sequence[Call]) -> list[Outcome]:
        return list(runtime.run(role, chosen, WINDOWS))

    def one_by_one(chosen: Sequence[Call]) -> list[Outcome]:
        return [run([call])[0] for call in chosen]

    found = []
    for size in itertools.takewhile(lambda size: size <= len(calls), SIZES):
        chosen = calls[:size]
        alone, together = one_by_one(chosen), run(chosen)
        check(not any(isinstance(outcome, GroundwireError) for outcome in together), f"{role}: a call failed")
        same = all(map(_equal, alone, together))
        check(same, f"{role}: a call among {size} has another answer than alone")
        spent = interleaved({"alone": partial(one_by_one, chosen), "together": partial(run, chosen)}, repeats)
        found.append(Shared(size, spent["together"], spent["alone"].p50_ms / spent["together"].p50_ms))
    return found


def beside(runtime: LocalRuntime, dialogues: Sequence[Dialogue], repeats: int) -> list[Lanes]:
    """Time one pool against as many as the profile has, on samples of distinct responses."""
    whole = runtime.profile
    engines = {}
    for pools in sorted({1, whole.worker_pools}):
        runtime.profile = replace(whole, pools=pools)
        engines[pools] = Engine(runtime, cache_chars=0)
    runtime.profile = whole
    alone: dict[int, list[float]] = {pools: [] for pools in engines}
    together: dict[int, list[float]] = {pools: [] for pools in engines}
    size = len(dialogues) // (repeats + 1)
    for turn in range(repeats + 1):
        part = dialogues[turn * size : (turn + 1) * size]
        values: list[list[float | None]] = []
        for pools in common.in_turn(map(str, engines), turn):
            engine = engines[int(pools)]
            single = [timed(partial(engine.score, *dialogue, metrics="all")) for dialogue in part]
            spent, scores = timed(partial(_score_many, engine, part))
            values += [_values([score for _, score in single]), _values(scores)]
            if turn:  # the first warms up
                alone[int(pools)] += [one for one, _ in single]
                together[int(pools)].append(spent)
        check(all(one == values[0] for one in values), "a value depends on the pools")
    return [
        Lanes(pools, Timing.of(alone[pools]), many := Timing.of(together[pools]), size * 1000 / many.p50_ms)
        for pools in engines
    ]


def main(
    bundle: Annotated[str, typer.Option(help="A bundle's name or directory.")] = "compact",
    threads: Annotated[int | None, typer.Option(help="CPU threads; default: all usable.", min=1)] = None,
    repeats: Annotated[int, typer.Option(help="Samples behind a median.", min=1)] = 5,
    size: Annotated[int, typer.Option(help="Responses in a sample.", min=2)] = 32,
    out: Annotated[Path | None, typer.Option(help="The JSON file.")] = common.RESULTS / "batching.json",
) -> None:
    """Measure what sharing brings."""
    runtime = LocalRuntime.load(bundle, threads=threads)
    calls = calls_of(runtime, list(distinct(size)))
    roles = {role: shared(runtime, role, own, repeats) for role, own in sorted(calls.items())}
    pools = beside(runtime, list(distinct(size * (repeats + 1))), repeats)
    screen = common.console()
    rows = [
        [role, *(f"{one.timing.p50_ms / one.calls:.1f} ({one.ratio:.2f} ×)" for one in roles[role])] for role in roles
    ]
    screen.print(common.table("ms per call, and how much faster than alone", ("role", *map(str, SIZES)), rows))
    rows = [
        [f"{one.worker_pools}", f"{one.alone.p50_ms:.0f}", f"{one.alone.p95_ms:.0f}", f"{one.per_second:.2f}"]
        for one in pools
    ]
    screen.print(common.table("all metrics", ("pools", "alone: p50 ms", "p95 ms", "together: responses/s"), rows))
    settings = {"bundle": bundle, "threads": runtime.profile.threads, "repeats": repeats, "size": size}
    common.finish("batching", settings, Batching(roles, pools), (), out)


def _score_many(engine: Engine, dialogues: Sequence[Dialogue]) -> list[Score]:
    return list(engine.score_many(dialogues, metrics="all"))


def _equal(one: Outcome, other: Outcome) -> bool:
    return bool(msgspec.msgpack.encode(_plain(one)) == msgspec.msgpack.encode(_plain(other)))


def _plain(outcome: object) -> object:
    """An outcome's numbers and texts, arrays as their bytes."""
    return msgspec.to_builtins(outcome, enc_hook=lambda array: array.tobytes())


def _values(scores: Sequence[Score]) -> list[float | None]:
    return [result.value for score in scores for result in score.metrics.values()]


if __name__ == "__main__":
    typer.run(main)

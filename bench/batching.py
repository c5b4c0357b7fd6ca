"""The gain of sharing: model calls that share a batch, and batches that run in parallel.

    python -m bench.batching

- calls: of every role of the device, the calls that all metrics make of the example dialogues, 1, 2, 4 … at a
  time. The peer is each call alone, and each call must give the result that it gives alone;
- pools: responses scored one at a time and many at once, by an engine whose device runs one batch at a time and by an
  engine whose device runs as many as its profile says. Both must give the same values.

The first part bounds the gain of the second, and of a service's concurrent requests: where a call in a full batch costs
as much as alone, only an idle processor leaves anything to gain.
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

from groundwire.engine import Engine, LoadOptions, Score
from groundwire.runtime.calls import Call, role_of
from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.protocol import Outcome

from .support import common
from .support.common import Timing, check, interleaved, timed
from .support.dialogues import Dialogue, distinct
from .support.observed import Observed

SIZES = (1, 2, 4, 8, 16, 32, 64)
WINDOWS = 64


class Shared(msgspec.Struct, frozen=True):
    """A number of calls of a role, run at once."""

    calls: int
    timing: Timing
    """Time of all calls together."""
    ratio: float
    """Median time of the same calls alone, one after another, over the time of all together."""


class PoolTiming(msgspec.Struct, frozen=True):
    """An engine whose device runs a number of batches in parallel."""

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
    pools: list[PoolTiming]


def calls_of(runtime: LocalRuntime, dialogues: Sequence[Dialogue]) -> dict[str, list[Call]]:
    """Return the distinct calls to the device that all metrics make, by role."""
    observed = Observed(runtime)
    observed.calls = []
    engine = Engine(observed)
    _score_many(engine, dialogues)
    by_role: dict[str, list[Call]] = {}
    for call in dict.fromkeys(observed.calls):
        if runtime.worker_pool(role_of(call)) == "device":
            by_role.setdefault(role_of(call), []).append(call)
    return by_role


def time_batches(runtime: LocalRuntime, role: str, calls: Sequence[Call], repeats: int) -> list[Shared]:
    """Time the first calls of a role in batches of every size for which there are enough calls."""

    def run(chosen: Sequence[Call]) -> list[Outcome]:
        return list(runtime.run(role, chosen, WINDOWS))

    def one_by_one(chosen: Sequence[Call]) -> list[Outcome]:
        return [run([call])[0] for call in chosen]

    timings = []
    for size in itertools.takewhile(lambda size: size <= len(calls), SIZES):
        chosen = calls[:size]
        alone, together = one_by_one(chosen), run(chosen)
        check(not any(isinstance(outcome, GroundwireError) for outcome in together), f"{role}: a call failed")
        same = all(map(_equal, alone, together))
        check(same, f"{role}: a call among {size} gives another result than alone")
        spent = interleaved({"alone": partial(one_by_one, chosen), "together": partial(run, chosen)}, repeats)
        timings.append(Shared(size, spent["together"], spent["alone"].p50_ms / spent["together"].p50_ms))
    return timings


def time_pools(runtime: LocalRuntime, dialogues: Sequence[Dialogue], repeats: int) -> list[PoolTiming]:
    """Time one worker pool against the number in the profile, on samples of distinct responses."""
    whole = runtime.profile
    engines = {}
    for pools in sorted({1, whole.concurrent_batches}):
        runtime.profile = replace(whole, concurrent_batches=pools)
        engines[pools] = Engine(runtime, LoadOptions(cache_bytes=0))
    runtime.profile = whole
    alone: dict[int, list[float]] = {pools: [] for pools in engines}
    together: dict[int, list[float]] = {pools: [] for pools in engines}
    size = len(dialogues) // (repeats + 1)
    for turn in range(repeats + 1):
        part = dialogues[turn * size : (turn + 1) * size]
        values: list[list[float | None]] = []
        for pools in common.in_turn(engines, turn):
            engine = engines[pools]
            single = [timed(partial(engine.score, *dialogue, metrics="all")) for dialogue in part]
            spent, scores = timed(partial(_score_many, engine, part))
            values += [_values([score for _, score in single]), _values(scores)]
            if turn:  # the first warms up
                alone[pools] += [spent_alone for spent_alone, _ in single]
                together[pools].append(spent)
        check(all(other == values[0] for other in values), "a value depends on the pools")
    return [
        PoolTiming(pools, Timing.of(alone[pools]), many := Timing.of(together[pools]), size * 1000 / many.p50_ms)
        for pools in engines
    ]


def main(
    bundle: Annotated[str, typer.Option(help="A bundle's name or directory.")] = "compact",
    threads: Annotated[int | None, typer.Option(help="CPU threads; default: all usable.", min=1)] = None,
    repeats: Annotated[int, typer.Option(help="Samples of each median.", min=1)] = 5,
    size: Annotated[int, typer.Option(help="Responses in a sample.", min=2)] = 32,
    out: Annotated[Path | None, typer.Option(help="The JSON file.")] = common.RESULTS / "batching.json",
) -> None:
    """Measure the gain of shared batches and of parallel batches."""
    runtime = LocalRuntime.load(bundle, threads=threads)
    calls = calls_of(runtime, list(distinct(size)))
    roles = {role: time_batches(runtime, role, role_calls, repeats) for role, role_calls in sorted(calls.items())}
    pools = time_pools(runtime, list(distinct(size * (repeats + 1))), repeats)
    screen = common.console()
    rows = [
        [role, *(f"{timing.timing.p50_ms / timing.calls:.1f} ({timing.ratio:.2f} ×)" for timing in roles[role])]
        for role in roles
    ]
    screen.print(common.table("ms per call, and how much faster than alone", ("role", *map(str, SIZES)), rows))
    rows = [
        [f"{timing.pools}", f"{timing.alone.p50_ms:.0f}", f"{timing.alone.p95_ms:.0f}", f"{timing.per_second:.2f}"]
        for timing in pools
    ]
    screen.print(common.table("all metrics", ("pools", "alone: p50 ms", "p95 ms", "together: responses/s"), rows))
    settings: dict[str, int | float | str | None] = {
        "bundle": bundle,
        "threads": runtime.profile.threads,
        "repeats": repeats,
        "size": size,
    }
    common.finish("batching", settings, Batching(roles, pools), (), out)


def _score_many(engine: Engine, dialogues: Sequence[Dialogue]) -> list[Score]:
    return list(engine.score_many(dialogues, metrics="all"))


def _equal(left: Outcome, right: Outcome) -> bool:
    return bool(msgspec.msgpack.encode(_plain(left)) == msgspec.msgpack.encode(_plain(right)))


def _plain(outcome: object) -> object:
    """An outcome's numbers and texts, arrays as their bytes."""
    return msgspec.to_builtins(outcome, enc_hook=lambda array: array.tobytes())


def _values(scores: Sequence[Score]) -> list[float | None]:
    return [result.value for score in scores for result in score.metrics.values()]


if __name__ == "__main__":
    typer.run(main)

"""What a response costs on a GPU besides its arithmetic: kernels launched, bytes copied, times the host waits.

    python -m tests.support.cuda_double bench.device

runs the real CUDA provider on the double of ``tests/device/double``, which counts and computes nothing, so no time is
measured. The answers come from the same bundle on the CPU: every model call runs there too, and the decoder steps on
the GPU go the way that the CPU's have gone. So the work equals real responses': their questions, beams that end, and
batches as the GPU's profile makes them.

- alone: one response after another;
- together: all responses at once, as many in flight as the engine takes.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer
from numpy.typing import NDArray

from groundwire.engine import Engine, LoadOptions
from groundwire.metrics import GROUPS
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.calls import Call
from groundwire.runtime.decoding.search import DecoderStep, DecodingRun, StepHistory, TokenCandidates
from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.local import LocalRuntime, merge_roles
from groundwire.runtime.models import question_generator
from groundwire.runtime.models.kinds import Prepared
from groundwire.runtime.models.loading import group_roles, load_group
from groundwire.runtime.ort.device import Device
from groundwire.runtime.ort.session import Array, DeviceProfile
from groundwire.runtime.protocol import CaptureCounts, Outcome
from tests.support import cuda_double
from tests.support.cuda_double import Counts

from .support import common
from .support.common import check
from .support.dialogues import distinct


class Work(msgspec.Struct, frozen=True):
    """What was counted, per response."""

    launches: float
    """Kernels launched one by one."""
    replays: float
    """Captured graphs launched as a whole."""
    uploads: float
    """Copies to the GPU that the host waits for."""
    uploaded_kb: float
    downloads: float
    """Copies from the GPU that the host waits for."""
    downloaded_kb: float
    waits: float
    """For a stream, an event or the GPU."""


class Result(msgspec.Struct, frozen=True):
    """The work of one set of metrics."""

    metrics: str
    alone: Work
    together: Work
    roles: dict[str, Work]
    """Of responses alone, by role."""
    captures: CaptureCounts
    """Counts since loading."""


class Tape:
    """Plays what decoder steps gave on the CPU to the steps of the same sources on the GPU, in other batches."""

    def __init__(self) -> None:
        self.recording = True
        self._steps: dict[tuple[int, ...], list[tuple[Array, Array]]] = {}

    @contextmanager
    def in_place_of_steps(self) -> Iterator[None]:
        """Inside the block, the steps of question generation are recorded or replaced."""
        module: Any = question_generator
        decode = module.decode

        def decode_taped(step: DecoderStep, sources: Sequence[Sequence[int]], *settings: Any) -> DecodingRun:
            run: DecodingRun = decode(TapedStep(self, step, [tuple(ids) for ids in sources]), sources, *settings)
            return run

        module.decode = decode_taped
        try:
            yield
        finally:
            module.decode = decode

    def record(self, source: tuple[int, ...], step: int, scores: Array, tokens: Array) -> None:
        """Keep what a step gave for one source."""
        steps = self._steps.setdefault(source, [])
        del steps[step:]
        steps.append((scores.copy(), tokens.copy()))

    def play(self, sources: Sequence[tuple[int, ...]], step: int, count: int) -> TokenCandidates:
        """What a step gave for some sources, filled up to ``count`` candidates with impossible ones."""
        check(all(step < len(self._steps[source]) for source in sources), "the GPU made more steps than the CPU")
        rows = [self._steps[source][step] for source in sources]
        most = max(count, *(scores.shape[-1] for scores, _ in rows))
        scores = [np.pad(row, ((0, 0), (0, most - row.shape[-1])), constant_values=-np.inf) for row, _ in rows]
        tokens = [np.pad(row, ((0, 0), (0, most - row.shape[-1]))) for _, row in rows]
        return TokenCandidates(np.stack(scores), np.stack(tokens))


class TapedStep:
    """A step that records its candidates, or runs and gives recorded ones."""

    uses_history = False

    def __init__(self, tape: Tape, step: DecoderStep, sources: list[tuple[int, ...]]) -> None:
        self._tape, self._step, self._sources, self._length = tape, step, sources, 0

    def __call__(self, tokens: Array, parents: Array, count: int, history: StepHistory) -> TokenCandidates:
        candidates = self._step(tokens, parents, count, history)
        length, self._length = self._length, self._length + 1
        if not self._tape.recording:
            return self._tape.play(self._sources, length, count)
        for source, scores, ids in zip(self._sources, candidates.scores, candidates.tokens, strict=True):
            self._tape.record(source, length, scores, ids)
        return candidates

    def keep_sources(self, rows: NDArray[np.int64]) -> None:
        """As the step does."""
        self._sources = [self._sources[row] for row in rows]
        self._step.keep_sources(rows)


class CountedRuntime(LocalRuntime):
    """A runtime on the GPU that counts what its batches cost, and answers them with the results of a CPU."""

    tape: Tape
    reference: LocalRuntime
    counted: list[tuple[str, Counts]]
    prepared: set[str]
    lock = threading.Lock()

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """As the reference answers; ``counted`` has what the GPU did."""
        with self.lock:  # of the worker pools, one at a time is counted
            return self._run_both(role, calls, max_windows)

    def _run_both(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        self._prepare(role)
        self.tape.recording = True
        outcomes = self.reference.run(role, calls, max_windows)
        self.tape.recording = False
        with cuda_double.count() as counts:
            try:
                super().run(role, calls, max_windows)
            except GroundwireError as error:
                check("not finite" in str(error) or "without a direction" in str(error), f"{role} failed: {error}")
        self.counted.append((role, counts))
        return outcomes

    def _prepare(self, role: str) -> None:
        """Capture what is captured before the first response, on the thread that runs the role."""
        model: Any = self._models.get(role)
        if role not in self.prepared and isinstance(model, Prepared):
            model.prepare()
        self.prepared.add(role)


def load_reference(bundle: str, profile: DeviceProfile) -> LocalRuntime:
    """The bundle on the CPU, with the batches of the GPU's profile."""
    opened = Bundle.open(bundle)
    roles = merge_roles([opened])
    profile = replace(profile, device=Device("cpu"), threads=2)
    models = {name: load_group(names, roles, profile) for names in group_roles(roles) for name in names}
    return LocalRuntime(opened, profile, models)


def add_up(counted: Sequence[Counts], responses: int) -> Work:
    """The sum of the counts, per response."""
    waits = sum(counts.syncs for counts in counted)
    up, down = [c.uploads for c in counted], [c.downloads for c in counted]
    numbers = (
        sum(counts.launches for counts in counted),
        sum(counts.replays for counts in counted),
        sum(copies.times for copies in up),
        sum(copies.bytes for copies in up) / 1000,
        sum(copies.times for copies in down),
        sum(copies.bytes for copies in down) / 1000,
        waits,
    )
    return Work(*(round(number / responses, 1) for number in numbers))


def measure(runtime: CountedRuntime, metrics: str, responses: int) -> Result:
    """Score ``responses`` responses alone and together."""
    chosen = metrics if metrics in GROUPS else [metrics]
    dialogues = list(distinct(3 * responses))
    with Engine(runtime, LoadOptions(cache_bytes=0)) as engine:
        items = [{"response": d.response, "knowledge": d.knowledge, "history": ("Tell me.",)} for d in dialogues]
        for item in items[:responses]:  # whatever happens once
            engine.score(**item, metrics=chosen)  # type: ignore[arg-type]
        runtime.counted.clear()
        for item in items[responses : 2 * responses]:
            engine.score(**item, metrics=chosen)  # type: ignore[arg-type]
        alone = list(runtime.counted)
        runtime.counted.clear()
        list(engine.score_many(items[2 * responses :], metrics=chosen))
        together = list(runtime.counted)
    return Result(
        metrics,
        add_up([counts for _, counts in alone], responses),
        add_up([counts for _, counts in together], responses),
        {
            role: add_up([counts for name, counts in alone if name == role], responses)
            for role in sorted({role for role, _ in alone} - {"spans"})
        },
        runtime.captures,
    )


def main(
    bundle: Annotated[str, typer.Option(help="The bundle on the GPU.")] = "compact",
    reference: Annotated[str, typer.Option(help="The bundle on the CPU, whose answers count.")] = "compact",
    responses: Annotated[int, typer.Option(min=1, help="Responses of each kind.")] = 10,
    out: Annotated[Path | None, typer.Option(help="The JSON file.")] = common.RESULTS / "device.json",
) -> None:
    """Count what responses cost on a GPU."""
    check(cuda_double.is_active(), "run this on the double: python -m tests.support.cuda_double bench.device")
    warnings.simplefilter("ignore", RuntimeWarning)
    tape, results = Tape(), []
    with tape.in_place_of_steps():
        for metrics in ("q2", "all"):
            runtime = CountedRuntime.load(bundle, device="cuda")
            assert isinstance(runtime, CountedRuntime)
            runtime.tape, runtime.counted, runtime.prepared = tape, [], set()
            runtime.reference = load_reference(reference, runtime.profile)
            results.append(measure(runtime, metrics, responses))
    rows = [
        (f"{result.metrics} {name}", *(f"{number:,.0f}" for number in msgspec.structs.astuple(work)))
        for result in results
        for name, work in (("alone", result.alone), ("together", result.together))
    ]
    columns = ("per response", "launches", "replays", "uploads", "kB up", "downloads", "kB down", "waits")
    common.console().print(common.table("work on the GPU", columns, rows))
    common.finish("device", {"bundle": bundle, "responses": responses}, results, (), out)


if __name__ == "__main__":
    typer.run(main)

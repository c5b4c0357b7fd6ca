"""What the stages found together: how near each role is to the hardware, targets, tables and plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.table import Table

from ..support import common
from ..support.common import PerformanceTarget
from .predictions import PROCESS_GIB, RESPONSE_TOKENS, RESPONSES_PER_SECOND, Prediction, compare_predictions
from .stages import Record
from .work import Efficiency, rate_work

KERNELS = {"qa": 240, "nli": 240, "qg": 190}
"""Kernels of a pass, and of a step of question generation with the encoder's share, at most."""
WAYS = {"eager": "eager", "graph": "CUDA graph", "compile": "torch.compile", "static": "static cache"}


class RoleEfficiency(msgspec.Struct, frozen=True):
    """A role's batch beside the ceilings of the run."""

    role: str
    input: str
    milliseconds: float
    efficiency: Efficiency


class Results(msgspec.Struct, frozen=True):
    """Everything measured."""

    computes: bool
    """False on the double of CUDA, where counts mean something and times nothing."""
    stages: Sequence[Record]
    efficiency: Sequence[RoleEfficiency]
    predictions: Sequence[Prediction]


def find_stage(records: Sequence[Record], name: str) -> Any:
    """What a stage found; None when it found nothing."""
    return next((record.results for record in records if record.name == name), None)


def list_rows(records: Sequence[Record], name: str) -> Sequence[dict[str, Any]]:
    """The rows of a stage that has rows among other results; none when it found nothing."""
    rows: Sequence[dict[str, Any]] = (find_stage(records, name) or {"rows": ()})["rows"]
    return rows


def list_comparisons(records: Sequence[Record]) -> list[dict[str, Any]]:
    """The rows of all roles; what a later stage compared with a compiler is added to the first's."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for record in records:
        if record.name.startswith(("role.", "compile.")):
            for row in record.results or ():
                earlier = rows.setdefault((row["role"], row["input"]), row)
                for part in ("timings", "ratios", "errors"):
                    earlier[part] = {**row[part], **earlier[part]}
    return list(rows.values())


def make_results(records: Sequence[Record], *, computes: bool) -> Results:
    """Put the stages beside each other."""
    ceilings = find_stage(records, "ceilings")
    rows = [
        RoleEfficiency(
            row["role"],
            row["input"],
            row["timings"]["engine"]["p50_ms"],
            rate_work(row["work"], row["timings"]["engine"]["p50_ms"], ceilings),
        )
        for row in list_comparisons(records)
        if row["work"] is not None and "engine" in row["timings"]
    ]
    return Results(computes, list(records), rows, compare_predictions(records if computes else ()))


def list_targets(records: Sequence[Record]) -> Iterator[PerformanceTarget]:
    """The targets for one H200 with models of the papers' size, as far as they were measured."""
    for row in find_stage(records, "certify") or ():
        yield PerformanceTarget.at_most(f"{row['role']}, bounds missed", len(row["failures"]), 0, "")
    default = find_stage(records, "default") or {"latency": (), "warm_up": None}
    for row in default["latency"]:
        if row["group"] == "1 sentence":
            yield PerformanceTarget.at_most("default, p50", row["timing"]["p50_ms"], 16, "ms")
            yield PerformanceTarget.at_most("default, p99", row["timing"]["p99_ms"], 30, "ms")
        yield from _check_captures(f"default, {row['group']}", row, default["warm_up"])
    latency = find_stage(records, "latency") or {"rows": (), "warm_up": None}
    for row in latency["rows"]:
        if row["metrics"] == "full":
            yield PerformanceTarget.at_most("full set, p50", row["timing"]["p50_ms"], 25, "ms")
            yield PerformanceTarget.at_most("full set, p99", row["timing"]["p99_ms"], 40, "ms")
            yield from _check_captures("full set", row, latency["warm_up"])
    if latency["warm_up"] and latency["warm_up"]["gib"] is not None:
        yield PerformanceTarget.at_most("memory of a process", latency["warm_up"]["gib"], PROCESS_GIB, "GiB")
    loads = [row for row in list_rows(records, "load") if row["metrics"] == "full"]
    rates = [row["rate"]["per_second"] for row in (*loads, *list_rows(records, "processes"))]
    if rates and loads:
        tokens = max(rates) * loads[-1]["qa_tokens"]
        yield PerformanceTarget.at_least("full set, saturated", max(rates), 120, "/s")
        aim = RESPONSES_PER_SECOND * RESPONSE_TOKENS
        yield PerformanceTarget.at_least("tokens of extractive QA, saturated", tokens, aim, "/s")
    for row in list_comparisons(records):
        if row["kernels"] is not None and row["role"] in KERNELS:
            most = KERNELS[row["role"]] * row["steps"]
            yield PerformanceTarget.at_most(f"{row['role']}, kernels of {row['input']}", row["kernels"], most, "")
        if row["ratios"]:
            least = 10.0 if row["role"] == "qg" else 2.0 if row["full"] else 3.0
            name = f"{row['role']}, {'full batch' if row['full'] else 'one response'}, over PyTorch"
            yield PerformanceTarget.at_least(name, min(row["ratios"].values()), least, "×")


def _check_captures(name: str, row: Mapping[str, Any], warm_up: Mapping[str, Any]) -> Iterator[PerformanceTarget]:
    """No response waits for a capture, or runs kernel by kernel."""
    uncaptured, captured = row["captures"]["uncaptured"], row["captures"]["captured"]
    yield PerformanceTarget.at_most(f"{name}, runs that were not captured", uncaptured, 0, "")
    later = captured - warm_up["captures"]["captured"]
    yield PerformanceTarget.at_most(f"{name}, captures after the warm-up", later, 0, "")


def show(results: Results) -> None:
    """Print what was measured."""
    screen, records = common.console(), results.stages
    screen.print(
        common.table(
            "stages",
            ("stage", "", "s", "what happened"),
            [
                (record.name, record.status, f"{record.seconds:.0f}", (record.message.splitlines() or [""])[0][:70])
                for record in records
            ],
        )
    )
    near = {(row.role, row.input): row for row in results.efficiency}
    rows = []
    for row in list_comparisons(records):
        engine = row["timings"].get("engine")
        rated = near.get((row["role"], row["input"]))
        rows.append(
            (
                f"{row['role']}, {row['input']}",
                "–" if engine is None else f"{engine['p50_ms']:.2f} ({engine['p99_ms']:.2f})",
                "–" if rated is None else f"{rated.efficiency.tflops:.1f} / {rated.efficiency.gbs:.0f}",
                "–"
                if rated is None or rated.efficiency.fraction is None
                else f"{rated.efficiency.fraction:.1%} {rated.efficiency.bound}",
                "–" if row["kernels"] is None else f"{row['kernels']}",
                ", ".join(f"{WAYS[way]} {ratio:.2f} ×" for way, ratio in row["ratios"].items()) or "–",
            )
        )
    columns = ("role and batch", "ms p50 (p99)", "TFLOP/s / GB/s", "of the ceiling", "kernels", "PyTorch takes")
    screen.print(common.table("roles", columns, rows))
    for name in ("default", "default.half"):
        if default := find_stage(records, name):
            rates = list_rows(records, f"{name}.processes")
            screen.print(_tabulate_default(name, default, rates))
    equal = find_stage(records, "q2")
    if equal:
        screen.print(_describe_equal_work(equal))
    whole = [
        (row["metrics"], f"{row['timing']['p50_ms']:.1f}", f"{row['timing']['p99_ms']:.1f}",
         "–" if row["launches"] is None else f"{row['launches']['kernels']}")
        for row in list_rows(records, "latency")
    ]  # fmt: skip
    screen.print(common.table("one response at a time", ("metrics", "p50 ms", "p99 ms", "kernels"), whole))
    loads = [
        (row["metrics"], str(row["rate"]["in_flight"]), f"{row['rate']['per_second']:.1f}",
         f"{row['processor_ms']:.1f}",
         f"{row['interpreter_ms']:.1f}", f"{row['qa_tokens']:.0f}", f"{row['qa_tflop']:.2f}",
         "–" if row["rate"]["latency"] is None else f"{row['rate']['latency']['p50_ms']:.0f}")
        for row in list_rows(records, "load")
    ]  # fmt: skip
    each = ("processor ms each", "Python ms", "QA tokens", "TFLOP", "p50 ms")
    screen.print(common.table("under load", ("metrics", "in flight", "responses/s", *each), loads))
    running = [
        (str(row["processes"]), f"{row['rate']['per_second']:.1f}", f"{row['warm_up']['seconds']:.0f}",
         "–" if row["warm_up"]["gib"] is None else f"{row['warm_up']['gib']:.1f}")
        for row in list_rows(records, "processes")
    ]  # fmt: skip
    screen.print(common.table("processes, full set", ("processes", "responses/s", "s to warm up", "GiB"), running))
    expected = [
        (f"{row.name}, {row.unit}", f"{row.low:g} to {row.high:g}", f"{row.measured:.3g}" if row.measured else "–")
        for row in results.predictions
    ]
    screen.print(common.table("predictions", ("figure", "expected", "measured"), expected))
    parity = find_stage(records, "parity")
    if parity:
        screen.print(
            f"{parity['bundle']} on the device and on the CPU, {parity['responses']} responses: verdicts equal "
            f"{parity['same_verdicts']:.0%}, marked words {parity['same_marks']:.0%}, largest difference of a value "
            f"{max(parity['largest'].values(), default=0.0):.2g}, of a probability {parity['largest_probability']:.2g}"
        )


def _tabulate_default(name: str, default: Mapping[str, Any], processes: Sequence[Mapping[str, Any]]) -> Table:
    rows = [
        (row["group"], f"{row['timing']['p50_ms']:.1f}", f"{row['timing']['p99_ms']:.1f}", "–")
        for row in default["latency"]
    ]
    loads = [(f"{rate['in_flight']} in flight", rate) for rate in default["rates"]]
    loads += [(f"{row['processes']} processes", row["rate"]) for row in processes]
    for load, rate in loads:
        times = rate["latency"] or {"p50_ms": float("nan"), "p99_ms": float("nan")}
        rows.append((load, f"{times['p50_ms']:.0f}", f"{times['p99_ms']:.0f}", f"{rate['per_second']:.1f}"))
    warm_up = default["warm_up"]
    title = f"{name}, {warm_up['captures']['captured']} captures in {warm_up['seconds']:.0f} s"
    return common.table(title, ("responses", "p50 ms", "p99 ms", "responses/s"), rows)


def _describe_equal_work(equal: Mapping[str, Any]) -> str:
    parts = [
        f"{side} {timing['p50_ms']:.1f} ms p50, {timing['p99_ms']:.1f} p99" for side, timing in equal["timings"].items()
    ]
    parts += [f"{side} {rate:.1f} responses/s together" for side, rate in equal["per_second"].items()]
    return f"Q² with every question valid, {equal['questions']} questions: {', '.join(parts)}"


def draw(results: Results, stem: Path) -> None:
    """Write ``stem_roles`` and ``stem_load`` as SVG and PNG, as far as there is something to draw."""
    from groundwire.evaluate.report.drawing import DASHES, MARKERS, SERIES, SIZE, finish_drawing, open_figure
    from groundwire.evaluate.report.drawing import save_drawing as save

    rows = [row for row in list_comparisons(results.stages) if row["ratios"]]
    if rows:
        with open_figure(SIZE) as (figure, axes):
            axes.set_position((0.4, 0.2, 0.57, 0.77))
            heights = range(len(rows), 0, -1)
            for way, colour, marker in zip(WAYS, SERIES, MARKERS, strict=False):
                there = [(row, y) for row, y in zip(rows, heights, strict=True) if way in row["ratios"]]
                if there:
                    ratios = [row["ratios"][way] for row, _ in there]
                    axes.scatter(ratios, [y for _, y in there], s=22, color=colour, marker=marker, label=WAYS[way])
            axes.axvline(1.0, color=SERIES[2], linewidth=0.8)
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} ×")
            axes.set_yticks(list(heights), [f"{row['role']}, {'full' if row['full'] else 'one'}" for row in rows])
            axes.set(xlabel="time of PyTorch over that of the engine")
            axes.legend(loc="upper center", bbox_to_anchor=(0.2, -0.12), ncols=2)
            alternative = "For each role, the time of batched PyTorch over that of the engine"
            save(finish_drawing(figure, "gpu-roles", alternative), stem.with_name(f"{stem.name}_roles"))
    loads = list_rows(results.stages, "load")
    if loads:
        with open_figure(SIZE) as (figure, axes):
            names = list(dict.fromkeys(row["metrics"] for row in loads))
            for name, colour, dashes, marker in zip(names, SERIES, DASHES, MARKERS, strict=False):
                rates = [row["rate"] for row in loads if row["metrics"] == name]
                axes.plot(
                    [rate["in_flight"] for rate in rates],
                    [rate["per_second"] for rate in rates],
                    color=colour, linestyle=dashes, marker=marker, label=name,
                )  # fmt: skip
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.set_ylim(bottom=0)
            axes.set(xlabel="requests in flight", ylabel="responses per second")
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
            alternative = "Responses per second against requests in flight"
            save(finish_drawing(figure, "gpu-load", alternative), stem.with_name(f"{stem.name}_load"))

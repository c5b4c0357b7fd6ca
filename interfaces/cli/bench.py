"""``groundwire bench``: how fast a bundle is on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from groundwire.cli import display, options
from groundwire.cli.groups import expand_groups
from groundwire.cli.output import print_json
from groundwire.engine import Engine, Options, Request
from groundwire.engine.extend import to_request
from groundwire.metrics import GROUPS
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.ort.device import parse_device
from groundwire.runtime.texts.characters import is_digits

from . import evaluation as common

if TYPE_CHECKING:
    from groundwire.evaluate.speed.measure import Latency, Speed
    from groundwire.evaluate.speed.records import Report

PLOTS = (".svg", ".png")


@expand_groups
def bench(
    source: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="Responses of your own, as `groundwire score` reads them. Default: built-in short dialogues; "
            "longer ones take longer.",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="Metrics or a group that are measured together, separated by commas; repeatable. Default: the groups "
            "fast, the verdict's own (default) and all, as far as the bundle has them."
        ),
    ] = None,
    concurrency: Annotated[
        str, typer.Option(help="Requests in flight at the same time, separated by commas; one rate for each.")
    ] = "1,8,64",
    seconds: Annotated[float, typer.Option(help="Time of each measurement.", min=0.05)] = 5.0,
    out: Annotated[Path | None, typer.Option(help="Write the results to this JSON file.", dir_okay=False)] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw them to this .svg or .png file; needs groundwire[evaluate].", dir_okay=False),
    ] = None,
    *,
    summary: common.SummaryOptions,
    engine_options: options.EngineOptions,
) -> None:
    """Measure how fast a bundle is on this machine.

    The command scores responses one at a time by each group of metrics, and prints p50, p95 and p99 of the time of a
    response and the time in each model. Then it keeps several requests in flight, and prints responses per second and
    the time of a response. Nothing is cached, and no two responses are the same. It takes about a minute; let nothing
    else run meanwhile.

        groundwire bench
        groundwire bench --bundle my-bundle --device cuda --concurrency 1,64,256 --out bench.json --plot bench.svg
        groundwire bench --metrics values,nli --metrics q2 --input mine.jsonl

    Read the p99 before a time limit is chosen, and take the smallest concurrency whose rate is near the largest: more
    requests in flight only wait. The exit code is 3 when a response ended without a result.
    """
    from groundwire.evaluate.speed.measure import measure_speed
    from groundwire.evaluate.speed.records import make_report

    callers = _parse_concurrency(concurrency)
    wanted = [options.parse_metrics(value) or () for value in metrics or ()]
    _check_plot(plot)
    requests = _read_requests(source, summary.columns)
    screen = display.error_console()

    def load() -> Engine:
        return engine_options.open(cache_bytes=0)

    def watch(what: str) -> None:
        if display.is_interactive():
            screen.print(f"[dim]{display.escape_markup(what)}[/]")

    chosen = parse_device(options.parse_device(engine_options.device))
    gpu = 0 if chosen is None else chosen.index
    speed = measure_speed(load, lambda engine: _choose_groups(engine, wanted), requests, callers, seconds, watch, gpu)
    settings: dict[str, int | float | str | None] = {
        "bundle": engine_options.bundle,
        "device": engine_options.device,
        "threads": engine_options.threads,
        "input": None if source is None else source.name,
        "responses": len(requests),
        "seconds": seconds,
    }
    report = make_report("speed", settings, speed)
    if out is not None:
        report.write(out)
    if plot is not None:
        _draw(speed, plot)
    if summary.json:
        print_json(report)
    else:
        _print_speed(report)
    if any(set(latency.statuses) - display.DONE for latency in speed.latency):
        raise typer.Exit(display.EXIT_UNSCORED)


def _parse_concurrency(value: str) -> tuple[int, ...]:
    numbers = [part.strip() for part in value.split(",") if part.strip()]
    if not numbers or not all(is_digits(part) and 1 <= int(part) <= 4096 for part in numbers):
        raise typer.BadParameter(
            f"{value!r} is no list of numbers from 1 to 4096, such as 1,8,64.", param_hint="--concurrency"
        )
    return tuple(dict.fromkeys(map(int, numbers)))


def _check_plot(plot: Path | None) -> None:
    """Before minutes of measuring: that the plot can be drawn."""
    if plot is None:
        return
    if plot.suffix.lower() not in PLOTS:
        raise typer.BadParameter(f"{plot} ends neither with .svg nor with .png.", param_hint="--plot")
    common.require_extra()


def _read_requests(source: Path | None, columns: str | None) -> tuple[Request, ...]:
    """The requests of the file that can be used; its other lines are named on standard error."""
    from groundwire.evaluate.speed.dialogues import read_examples

    if source is None:
        return read_examples()
    requests = []
    errors = display.error_console()
    with options.open_lines(source, columns) as lines:
        for line in lines:
            try:
                if line.row is None:
                    raise InvalidRequest(line.problem)
                requests.append(to_request(line.row, Options()))
            except InvalidRequest as error:
                display.print_line_error(errors, line, str(error))
    if not requests:
        raise InvalidRequest(f"{source} has no response that can be scored.")
    return tuple(requests)


def _choose_groups(engine: Engine, wanted: Sequence[Sequence[str]]) -> dict[str, Sequence[str] | str | None]:
    """The requested groups; by default the groups that the engine can compute, each set of metrics once."""
    if wanted:
        return {",".join(names): options.choose_metrics(engine, names) for names in wanted}
    groups: dict[str, Sequence[str] | str | None] = {}
    seen = set()
    for name, metrics in (("fast", "fast"), ("default", None), ("all", "all")):
        try:
            names = engine.plan(metrics).names
        except InvalidRequest:  # a bundle without the models of this group
            continue
        if names and names not in seen:
            seen.add(names)
            groups[name] = metrics
    if not groups:
        raise InvalidRequest(f"The bundle has no metric of the groups {', '.join(GROUPS)}; name some with --metrics.")
    return groups


def _draw(speed: Speed, plot: Path) -> None:
    from groundwire.evaluate.speed.plot import draw_speed

    drawing = draw_speed(speed)
    plot.parent.mkdir(parents=True, exist_ok=True)
    plot.write_bytes(drawing.svg if plot.suffix.lower() == ".svg" else drawing.png)


def _print_speed(report: Report[Speed]) -> None:
    console, speed, machine = display.output_console(), report.results, report.machine
    console.print(f"[dim]{display.escape_markup(speed.signature)}[/]", soft_wrap=True)
    console.print(f"[dim]{machine.processor}, {machine.cores} processors, load {machine.load_average}[/]")
    table = _make_table("one response at a time", ("metrics", "responses", "p50 ms", "p95 ms", "p99 ms", "not scored"))
    for latency in speed.latency:
        timing = latency.timing
        table.add_row(
            latency.group,
            str(timing.repeats),
            *(f"{value:.1f}" for value in (timing.p50_ms, timing.p95_ms, timing.p99_ms)),
            _format_failures(latency.statuses),
        )
    console.print(table)
    _print_stages(console, speed.latency)
    table = _make_table("several in flight", ("metrics", "in flight", "responses/s", "p50 ms", "p99 ms"))
    for entry in speed.rates:
        rate, timing_or_none = entry.rate, entry.rate.latency
        times = (
            ("–", "–")
            if timing_or_none is None
            else (f"{t:.0f}" for t in (timing_or_none.p50_ms, timing_or_none.p99_ms))
        )
        table.add_row(entry.group, str(rate.in_flight), f"{rate.per_second:.1f}", *times)
    console.print(table)
    memory = speed.memory
    sizes = {"loaded": memory.loaded, "at the peak": memory.peak, "on the GPU, of all processes": memory.gpu}
    parts = [f"{value:,.0f} MB {what}" for what, value in sizes.items() if value is not None]
    console.print(f"Loaded in {speed.load_ms / 1000:.1f} s" + (f"; memory: {', '.join(parts)}" if parts else "") + ".")


def _print_stages(console: Console, latencies: Sequence[Latency]) -> None:
    """The time in each model per response, a column for each group."""
    roles = sorted({role for latency in latencies for role in latency.stages})
    table = _make_table("milliseconds in a model, per response", ("model", *(latency.group for latency in latencies)))
    for role in roles:
        cells = []
        for latency in latencies:
            stage = latency.stages.get(role)
            count = latency.timing.repeats
            cells.append("" if stage is None else f"{stage.run_ms / count:.1f} ({stage.calls / count:.1f} calls)")
        table.add_row(role, *cells)
    if roles:
        console.print(table)


def _format_failures(statuses: dict[str, int]) -> str:
    failed: dict[str, Any] = {status: count for status, count in statuses.items() if status != "scored"}
    return ", ".join(f"{count} {status}" for status, count in failed.items())


def _make_table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left", no_wrap=True)
    return table

"""Everything about a GPU in one run of at most eight minutes.

    python -m bench.gpu_all                       # on the machine with the GPU
    python -m bench.gpu_all --tiny --device cpu   # tries all of it in about a minute

Makes models of the papers' sizes with random weights, exports them, and measures, each in a process of its own with a
time limit (``gpu/stages.py``), writing what is known after every stage:

- ceilings: products, copies and launches of this hardware, by PyTorch (``gpu/ceilings.py``);
- export: each role's checkpoint and graphs, all roles at the same time (``gpu/prepare.py``);
- parity: the embedded bundle on the device against the CPU: values, verdicts, marked words (``gpu/parity.py``);
- latency, load: Q² and the full set, one response at a time and with 64, 256 and 1,024 in flight (``gpu/whole.py``);
- q2: the calls of Q² with every question valid, against batched PyTorch;
- role, compile: each graph against batched PyTorch on the same inputs: eager, a CUDA graph, ``torch.compile``; its
  rates beside the ceilings, and its kernels and copies (``gpu/roles.py``).

Random weights leave the time of a graph as it is, and show nothing of accuracy; of a question they know nothing, so Q²
asks all questions of a span and then falls back to inference. On the double of CUDA only the counts mean something:

    python -m tests.support.cuda_double bench.gpu_all --tiny
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from groundwire.evaluate.speed.records import make_report
from groundwire.runtime.cores import usable_cores

from . import common
from .gpu.setup import ROLES, SPANS, Setup, find_gpu, is_double
from .gpu.stages import Record, Stage, run_stages

COMPARED = tuple(role for role in ROLES if role != "detector.verifiability")
"""Roles that are measured by themselves: of two with the same architecture one."""
WHOLE = "bench.gpu.whole"


def make_stages(roles: Sequence[str] = ROLES) -> list[list[Stage]]:
    """The stages in groups; the stages of a group run at the same time, what matters most comes first.

    Their limits add up to more than eight minutes: a stage that has none of them left is skipped.
    """
    compared = [role for role in COMPARED if role in roles]
    prepare = "bench.gpu.prepare"
    return [
        [Stage("ceilings", "bench.gpu.ceilings", "measure", 60)],
        [
            *(Stage(f"export.{role}", prepare, "prepare", 180, (role,)) for role in roles),
            Stage(f"export.{SPANS}", prepare, "prepare_spans", 60),
            Stage("parity", "bench.gpu.parity", "measure", 240),
        ],
        [Stage("latency", WHOLE, "measure_latency", 100)],
        [Stage("load", WHOLE, "measure_load", 150)],
        [Stage("q2", WHOLE, "measure_equal_work", 90)],
        *([Stage(f"role.{role}", "bench.gpu.roles", "measure", 60, (role, "eager", "graph"))] for role in compared),
        *([Stage(f"compile.{role}", "bench.gpu.roles", "measure", 90, (role, "compile", "static"))]
          for role in compared),
    ]  # fmt: skip


def main(
    device: Annotated[str, typer.Option(help="Of the engine: cuda, cuda:1 or cpu.")] = "cuda",
    work: Annotated[
        Path | None, typer.Option(help="Where models are kept (12 GB); default: a temporary directory.")
    ] = None,
    minutes: Annotated[float, typer.Option(help="Time of everything.", min=0.1)] = 8.0,
    seconds: Annotated[float, typer.Option(help="Time of each comparison; rates take six times as long.")] = 1.0,
    roles: Annotated[str, typer.Option(help="Roles to prepare and measure.")] = ",".join(ROLES),
    only: Annotated[str | None, typer.Option(help="Stages to run, by the beginnings of their names.")] = None,
    tiny: Annotated[bool, typer.Option(help="Tiny models, to try the benchmark itself; checks no targets.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="JSON file, beside which plots go; default bench/results, or none with --tiny.")
    ] = None,
) -> None:
    """Measure a GPU."""
    chosen = tuple(roles.split(","))
    if set(chosen) - set(ROLES):
        raise typer.BadParameter(f"{roles}: give some of {','.join(ROLES)}", param_hint="--roles")
    target = out or (None if tiny else common.RESULTS / "gpu_all.json")
    groups = make_stages(chosen)
    if only is not None:
        begins = tuple(only.split(","))
        groups = [[stage for stage in group if stage.name.startswith(begins)] for group in groups]
    if tiny and (device == "cpu" or is_double()):
        # A compiler takes minutes on a CPU, and says nothing of a GPU.
        groups = [[stage for stage in group if not stage.name.startswith("compile.")] for group in groups]
    computes = device == "cpu" or not is_double()
    with tempfile.TemporaryDirectory(prefix="groundwire-gpu-") as folder:
        setup = Setup(device, tiny, work or Path(folder), chosen)
        setup = msgspec.structs.replace(
            setup, seconds=0.1 if tiny else seconds, in_flight=(2, 4, 8) if tiny else setup.in_flight
        )
        settings: dict[str, int | float | str | None] = {
            "device": device,
            "gpu": getattr(find_gpu(), "name", None),
            "size": setup.size.name,
            "precision": setup.precision,
            "seconds": setup.seconds,
            "minutes": minutes,
        }

        def write(records: Sequence[Record]) -> None:
            last = records[-1]
            common.console().print(f"{last.name}: {last.status} in {last.seconds:.0f} s {last.message}", markup=False)
            if target is not None:
                from .gpu.report import list_targets, make_results

                checked = () if tiny or not computes else tuple(list_targets(records))
                make_report("gpu_all", settings, make_results(records, computes=computes), checked).write(target)

        records = run_stages(groups, setup, Path(folder) / "stages", 60 * minutes, write, max(2, usable_cores()))
    finish(records, target, computes=computes)
    if any(record.status == "failed" for record in records):
        raise typer.Exit(1)


def finish(records: Sequence[Record], target: Path | None, *, computes: bool) -> None:
    """Print the tables and draw the plots."""
    from .gpu.report import draw, make_results, show

    results = make_results(records, computes=computes)
    show(results)
    if target is not None:
        common.console().print(f"written to {target}")
        draw(results, target.with_suffix(""))


if __name__ == "__main__":
    typer.run(main)

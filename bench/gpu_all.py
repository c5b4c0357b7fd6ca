"""Everything about a GPU in one run of at most eight minutes.

    python -m bench.gpu_all                       # on the machine with the GPU
    python -m bench.gpu_all --tiny --device cpu   # tries all of it in about a minute

Makes models of the papers' sizes with random weights, exports them, and measures, each in a process of its own with a
time limit (``gpu/stages.py``), writing what is known after every step:

- certify: the parity reports of the embedded bundles on the device (``gpu/parity.py``);
- default: what a user gets by default, warm for the default metrics alone: responses of 1 and of 8 sentences one at a
  time, rates with 64 and 256 in flight, and by 8, 4 and 1 processes (``gpu/default.py``); after the exports the first
  two with graphs for the GPU of the reader's weights, in float16;
- ceilings: products, copies and launches of this hardware, by PyTorch (``gpu/ceilings.py``);
- export: each role's checkpoint and graphs, all roles at the same time (``gpu/prepare.py``);
- latency, load: after a warm-up, the full set and Q², one response at a time and with 64 and 256 in flight, with the
  tokens of extractive QA, their work and the processor time of a response (``gpu/whole.py``);
- processes: the full set by 8, 4, 2 and 1 processes on the one GPU, never more than its memory holds
  (``gpu/processes.py``);
- role: each graph against batched PyTorch on the same inputs: eager, and as a CUDA graph; its rates beside the
  ceilings, and its kernels and copies (``gpu/roles.py``); question generation and extractive QA first;
- parity: the embedded bundle on the device against the CPU: values, verdicts, marked words;
- q2: the calls of Q² with every question valid, against batched PyTorch.

``--resume --work W``, after a run with the same folder, runs what was cut, failed or left out, and the results have
both runs; with ``--only compile``, the comparisons with ``torch.compile``. The
predictions of ``gpu/predictions.py`` are in the results from the start.

Random weights leave the time of a graph as it is, and show nothing of accuracy; of a question they know nothing, so Q²
asks all questions of a span and then falls back to inference. On the double of CUDA only the counts mean something:

    python -m tests.support.cuda_double bench.gpu_all --tiny
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from groundwire.evaluate.speed.records import make_report
from groundwire.runtime.resources import usable_cores

from .gpu.setup import READER, ROLES, SPANS, Setup, find_gpu, is_double
from .gpu.stages import Record, Stage, read_done, run_stages
from .support import common

COMPARED = tuple(role for role in ROLES if role != "detector.verifiability")
"""Roles that are measured by themselves: of two with the same architecture one."""
FIRST = ("qg", "qa")
"""Those that decide latency and rate."""
WHOLE = "bench.gpu.whole"


def make_stages(roles: Sequence[str] = ROLES, *, compiled: bool = False) -> list[list[Stage]]:
    """The stages in groups; the stages of a group run at the same time, what matters most comes first.

    The limits of the groups add up to eight minutes at most; ``compiled`` adds the comparisons with compilers, which
    are skipped where no time is left.
    """
    compared = [role for role in FIRST if role in roles]
    others = [role for role in COMPARED if role in roles and role not in FIRST]
    prepare, parity, measured = "bench.gpu.prepare", "bench.gpu.parity", "bench.gpu.roles"
    default = "bench.gpu.default"
    return [
        [Stage("certify", parity, "certify_embedded", 40)],
        [Stage("default", default, "measure", 60)],
        [Stage("default.processes", default, "measure_by_processes", 40)],
        [Stage("ceilings", "bench.gpu.ceilings", "measure", 10)],
        [
            *(Stage(f"export.{role}", prepare, "prepare", 90, (role,)) for role in roles),
            Stage(f"export.{SPANS}", prepare, "prepare_spans", 60),
            Stage(f"export.{READER}", prepare, "prepare_reader", 90),
        ],
        [Stage("default.half", default, "measure_half", 30)],
        *([Stage(f"role.{role}", measured, "measure", 20, (role, "eager", "graph"))] for role in compared),
        [Stage("latency", WHOLE, "measure_latency", 40)],
        [Stage("load", WHOLE, "measure_load", 35)],
        [Stage("parity", parity, "measure", 20)],
        [Stage("processes", "bench.gpu.processes", "measure", 30)],
        [Stage("q2", WHOLE, "measure_equal_work", 15)],
        *([Stage(f"role.{role}", measured, "measure", 7, (role, "eager", "graph"))] for role in others),
        *([Stage(f"compile.{role}", measured, "measure", 90, (role, "compile", "static"))]
          for role in COMPARED if compiled and role in roles),
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
    resume: Annotated[
        bool, typer.Option(help="Run no stage again that was done in an earlier run with the same --work.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="JSON file, beside which plots go; default bench/results, or none with --tiny.")
    ] = None,
) -> None:
    """Measure a GPU."""
    chosen = tuple(roles.split(","))
    if set(chosen) - set(ROLES):
        raise typer.BadParameter(f"{roles}: give some of {','.join(ROLES)}", param_hint="--roles")
    if resume and work is None:
        raise typer.BadParameter("give --work, the folder of the earlier run", param_hint="--resume")
    target = out or (None if tiny else common.RESULTS / "gpu_all.json")
    groups = make_stages(chosen, compiled=only is not None and "compile" in only)
    if only is not None:
        begins = tuple(only.split(","))
        groups = [[stage for stage in group if stage.name.startswith(begins)] for group in groups]
    if tiny:  # the machine may be slow, and nothing waits for it
        groups = [[stage._replace(seconds=10 * stage.seconds) for stage in group] for group in groups]
    computes = device == "cpu" or not is_double()
    with tempfile.TemporaryDirectory(prefix="groundwire-gpu-") as folder:
        setup = Setup(device, tiny, work or Path(folder), chosen)
        setup = msgspec.structs.replace(
            setup,
            seconds=0.1 if tiny else seconds,
            in_flight=(2, 4, 8) if tiny else setup.in_flight,
            stages=setup.bundles / "stages",
        )
        assert setup.stages is not None
        every = [stage for group in make_stages(chosen, compiled=True) for stage in group]
        done = read_done(setup.stages, every) if resume else []
        settings: dict[str, int | float | str | None] = {
            "device": device,
            "gpu": getattr(find_gpu(), "name", None),
            "size": setup.size.name,
            "precision": setup.precision,
            "seconds": setup.seconds,
            "minutes": minutes,
        }

        def write(records: Sequence[Record]) -> None:
            if records and records[-1].status != "running":
                last = records[-1]
                common.console().print(
                    f"{last.name}: {last.status} in {last.seconds:.0f} s {last.message}", markup=False
                )
            if target is not None:
                from .gpu.report import list_targets, make_results

                checked = () if tiny or not computes else tuple(list_targets(records))
                make_report("gpu_all", settings, make_results(records, computes=computes), checked).write(target)

        write(done)  # the predictions, before anything is known
        records = run_stages(groups, setup, setup.stages, 60 * minutes, write, max(2, usable_cores()), done)
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
        if find_spec("matplotlib") is None:
            common.console().print("no plots: matplotlib is not installed")
        else:
            draw(results, target.with_suffix(""))


if __name__ == "__main__":
    typer.run(main)

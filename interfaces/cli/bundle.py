"""``groundwire bundle``: shows what a bundle contains, verifies its files, and prepares it for a device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from groundwire.export.answers import list_calls
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import Parity, SpansRole, TargetRole
from groundwire.runtime.compilation import compile_bundle, compile_portable
from groundwire.runtime.errors import DeviceError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.ort.device import PROVIDERS, Device, name_kernels, parse_device, start_device
from groundwire.runtime.ort.processor import int8_kernel
from groundwire.runtime.parity.certified import record_certified
from groundwire.runtime.parity.certify import Certified, certify_each, record_answers
from groundwire.runtime.parity.recorded import write_answers
from groundwire.runtime.version import VERSION

from . import display

app = typer.Typer(
    help="Show what a bundle contains, verify its files, compare it with its checkpoints, or build its engines.",
    no_args_is_help=True,
)
BundleArgument = Annotated[str, typer.Argument(help="Name of an embedded bundle, or a bundle directory.")]


@app.command()
def inspect(bundle: BundleArgument = "compact") -> None:
    """Show the roles of a bundle, their checkpoints, and how closely the exported graphs match them.

    The column `parity` reports the comparison with the checkpoint that export made: its gate, the share of equal
    decisions and spans, and the largest logit error beside the standard deviation of the logits. The last line names
    the labelled sets that the calibration was fitted on.

        groundwire bundle inspect compact
        groundwire bundle inspect my-bundle
    """
    manifest = Bundle.open(bundle).manifest
    console = display.output_console()
    console.print(
        f"[bold]{escape(manifest.name)}[/] {escape(manifest.version)}  {manifest.size / 1e6:.1f} MB  "
        f"digest {manifest.digest()}  schema {manifest.schema}  {escape(manifest.license)}"
    )
    table = Table(expand=True)
    for title in ("role", "checkpoint", "architecture", "precision", "parity"):
        table.add_column(title, overflow="fold")
    for name, role in manifest.roles.items():
        if isinstance(role, SpansRole):
            table.add_row(name, escape(role.source), "spaCy", "", "")
            continue
        parity = _format_parity(role.parity)
        table.add_row(name, escape(role.source), escape(role.architecture), role.precision, parity)
        for device, target in (role.targets or {}).items() if isinstance(role, TargetRole) else ():
            table.add_row(f"  on {device}", "", "", target.precision, _format_parity(target.parity))
    console.print(table)
    if (fitted := manifest.calibration) is not None:
        fusions = ", ".join(fusion.name for fusion in fitted.fusions)
        about = f"calibration {fitted.digest()}: fitted on {fitted.rows} examples of {', '.join(fitted.fitted_on)}; "
        console.print(escape(f"{about}fusions {fusions}"), soft_wrap=True)


@app.command()
def verify(bundle: BundleArgument = "compact") -> None:
    """Compare every file of a bundle with its digest; the exit code is 1 if one differs, and the message names it.

    groundwire bundle verify my-bundle
    """
    opened = Bundle.open(bundle)
    opened.verify()
    files, digest = len(opened.manifest.files), opened.manifest.digest()
    display.output_console().print(f"[green]intact[/]: {files} files, digest {digest}")


@app.command()
def record(bundle: BundleArgument) -> None:
    """Store in a bundle what its models compute here, for `warmup` and `bundle certify` to compare with elsewhere.

    `groundwire export` stores what `warmup` needs of the roles that it writes. The answers that `bundle certify` needs
    of generators, language models, embedders, retrievers, and token classifiers without logits of their checkpoints,
    this command alone stores: it takes minutes for large models. Run it on the machine that exported the bundle and
    compared it with the checkpoints. Neither the models nor the digest of the bundle change.

        groundwire bundle record my-bundle
    """
    runtime = LocalRuntime.load(bundle)
    opened = runtime.bundle
    answers = record_answers(opened, list_calls(opened.manifest.roles))
    opened.record(runtime.record_canaries(), write_answers(answers) if answers else None)
    display.output_console().print(f"[green]recorded[/]: {len(runtime.roles)} roles, {len(answers)} with answers")


@app.command(name="certify")
def certify_roles(
    bundle: BundleArgument,
    device: Annotated[str, typer.Option(help=f"{', '.join(PROVIDERS)}: where the graphs are run.")] = "cpu",
) -> None:
    """Compare a bundle's models with their checkpoints on this machine; the exit code is 1 if one is too far.

    It prints a line for each model as soon as the model is compared, and on standard error which one it compares now.

    A bundle keeps the logits of its extractive QA models, classifiers and token classifiers on 64 texts, and the
    answers of its other models (`groundwire bundle record`), so neither torch nor the checkpoints are needed. `batch
    spread` is the largest difference of a number of one text between batches, `captured` between runs of a captured
    graph and of its kernels one by one, on a GPU. The last word names the kernels: int8 sums of `avx2` saturate, those
    of `avx512_vnni` do not. A bundle whose models all pass on a GPU is loaded there by `device="auto"` from then on.

        groundwire bundle certify my-bundle --device cuda
    """
    chosen = parse_device(device)
    if chosen is None:
        raise DeviceError(f"device='auto' is no device to certify; name one: {', '.join(PROVIDERS)}.")
    if chosen.kind != "cpu":
        start_device(chosen)
    opened = Bundle.open(bundle)
    errors = display.error_console()
    reports = certify_each(opened, chosen, watch=lambda role: errors.print(f"comparing {escape(role)}"))
    compared = _print_certified(chosen, reports, "nothing to compare with; groundwire bundle record")
    if compared and chosen.kind != "cpu":
        record_certified(opened, chosen)


@app.command(name="compile")
def compile_engines(
    bundle: BundleArgument,
    device: Annotated[str, typer.Option(help="tensorrt or tensorrt-rtx.")] = "tensorrt",
    capability: Annotated[
        list[str] | None,
        typer.Option(
            help="tensorrt-rtx: a compute capability to build for, such as 8.9; without it, for all from 8.0."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Build engines that are there already again.")] = False,
) -> None:
    """Build the TensorRT engines of a bundle; the exit code is 1 if one is not kept.

    They are written to the folder `engines` of the bundle; the runtime loads them with `--device` and builds none.

    Run it for `tensorrt` on the machine that will serve: an engine is for one GPU and one version of TensorRT, and
    takes minutes. Each engine is compared with its checkpoint, and kept if it passes.

    Run it for `tensorrt-rtx` on any machine, without a GPU: an engine is for one version of TensorRT-RTX. Nothing is
    compared; `groundwire bundle certify` does that on the machine that will serve.

        groundwire export nli --source ./my-nli --target tensorrt --precision fp16 --out my-bundle
        groundwire bundle compile my-bundle
        groundwire bundle compile my-bundle --device tensorrt-rtx --capability 8.6 --capability 8.9
    """
    chosen = parse_device(device)
    if chosen is None or not chosen.runs_engines:
        raise DeviceError(f"device={device!r} needs no engines; compile takes device='tensorrt' or 'tensorrt-rtx'.")
    opened = Bundle.open(bundle)
    errors = display.error_console()
    if chosen.kind == "tensorrt-rtx":
        sizes = compile_portable(
            opened,
            capability or (),
            created_with=f"groundwire {VERSION}",
            force=force,
            watch=lambda role: errors.print(f"building the engine of {escape(role)}"),
        )
        for name, size in sizes.items():
            built = "there already" if size is None else f"built, {size / 1e6:.1f} MB; not run here"
            display.output_console().print(f"[bold]{escape(name)}[/] {built}")
        return
    if capability:
        raise DeviceError("--capability is for device='tensorrt-rtx'; TensorRT builds for the GPU of this machine.")
    reports = compile_bundle(
        opened,
        chosen,
        created_with=f"groundwire {VERSION}",
        force=force,
        watch=lambda role: errors.print(f"building the engine of {escape(role)}, which takes minutes"),
    )
    _print_certified(chosen, reports.items(), "there already")


def _print_certified(device: Device, reports: Iterable[tuple[str, Certified | None]], absent: str) -> bool:
    """Print a line for each role as it comes, and return whether all were compared; exit with 1 when one fails."""
    console, passes, compared = display.output_console(), True, True
    kernels = int8_kernel() if device.kind == "cpu" else name_kernels(device)
    for name, report in reports:
        if report is None:
            compared = False
            console.print(f"[bold]{escape(name)}[/] {absent}")
            continue
        passes = passes and not report.failures
        verdict = f"[red]fails[/]: {'; '.join(report.failures)}" if report.failures else "[green]passes[/]"
        captured = "" if report.captured_spread is None else f", captured {report.captured_spread:.2g}"
        console.print(
            f"[bold]{escape(name)}[/] on {device} {verdict} ({_format_numbers(report.parity)}, "
            f"batch spread {report.batch_spread:.2g}{captured}, {kernels})"
        )
    if not passes:
        raise typer.Exit(1)
    return compared


def _format_parity(parity: Parity | None) -> str:
    return "none" if parity is None else f"{parity.gate}: {_format_numbers(parity)}"


def _format_numbers(parity: Parity) -> str:
    agreement = f"{parity.decision_agreement:.1%} of decisions"
    if parity.span_agreement is not None:
        agreement += f", {parity.span_agreement:.1%} of spans"
    numbers = f"{agreement}, error {parity.max_logit_error:.3f} (std {parity.logit_std:.2f})"
    return f"{numbers}; {parity.explanation}" if parity.explanation else numbers

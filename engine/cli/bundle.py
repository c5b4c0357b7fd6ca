"""``groundwire bundle``: shows what a bundle contains, and verifies its files."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from groundwire.runtime.bundle import Bundle
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.manifest import Parity, SpansRole

from . import display

app = typer.Typer(help="Show what a bundle contains, or verify its files.", no_args_is_help=True)
BundleArgument = Annotated[str, typer.Argument(help="Name of an embedded bundle, or a bundle directory.")]


@app.command()
def inspect(bundle: BundleArgument = "compact") -> None:
    """Show the roles of a bundle, their checkpoints, and how closely the exported graphs match them.

    The column `parity` reports the comparison with the checkpoint that export made: its gate, the share of equal
    decisions and spans, and the largest logit error beside the standard deviation of the logits.

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
        else:
            parity = _format_parity(role.parity)
            table.add_row(name, escape(role.source), escape(role.architecture), role.precision, parity)
    console.print(table)


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
    """Store in a bundle what its models compute here, for `warmup` to compare with on other machines.

    `groundwire export` does it for the roles that it writes. Use this for a bundle that has none, on the machine that
    exported it and compared it with the checkpoints. Neither the models nor the digest of the bundle change.

        groundwire bundle record my-bundle
    """
    runtime = LocalRuntime.load(bundle)
    runtime.bundle.record(runtime.record_canaries())
    display.output_console().print(f"[green]recorded[/]: {len(runtime.roles)} roles")


def _format_parity(parity: Parity | None) -> str:
    if parity is None:
        return "none"
    agreement = f"{parity.decision_agreement:.1%} of decisions"
    if parity.span_agreement is not None:
        agreement += f", {parity.span_agreement:.1%} of spans"
    return f"{parity.gate}: {agreement}, error {parity.max_logit_error:.3f} (std {parity.logit_std:.2f})"

"""``groundwire bundle``: look at a bundle and check it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from groundwire.runtime.bundle import Bundle, SpansRole

from . import common

app = typer.Typer(help="Look at a bundle, or check its files.", no_args_is_help=True)
Where = Annotated[str, typer.Argument(help="An embedded bundle's name, or a bundle directory.")]


@app.command()
def inspect(where: Where = "compact") -> None:
    """Show the roles of a bundle, their checkpoints and how far the graphs are from them."""
    opened = Bundle.open(where)
    manifest = opened.manifest
    size = manifest.size / 1e6
    console = common.stdout()
    console.print(
        f"[bold]{escape(manifest.name)}[/] {escape(manifest.version)}  {size:.1f} MB  digest {manifest.digest()}  "
        f"schema {manifest.schema}  {escape(manifest.license)}"
    )
    table = Table(expand=True)
    for title in ("role", "checkpoint", "architecture", "precision", "parity"):
        table.add_column(title, overflow="fold")
    for name, role in manifest.roles.items():
        if isinstance(role, SpansRole):
            table.add_row(name, escape(role.source), "spaCy", "", "")
            continue
        parity = "none"
        if role.parity is not None:
            agree = f"{role.parity.decision_agreement:.1%} of decisions"
            if role.parity.span_agreement is not None:
                agree += f", {role.parity.span_agreement:.1%} of spans"
            error = f"error {role.parity.max_logit_error:.3f} (std {role.parity.logit_std:.2f})"
            parity = f"{role.parity.gate}: {agree}, {error}"
        table.add_row(name, escape(role.source), escape(role.architecture), role.precision, parity)
    console.print(table)


@app.command()
def verify(where: Where = "compact") -> None:
    """Compare every file of a bundle with its digest; exit code 1 names the first that differs."""
    opened = Bundle.open(where)
    opened.verify()
    common.stdout().print(f"[green]intact[/]: {len(opened.manifest.files)} files, digest {opened.manifest.digest()}")

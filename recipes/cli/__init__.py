"""``python -m groundwire.recipes``: the recipes as commands."""

from __future__ import annotations

import typer

from ..common import extra as _extra  # noqa: F401 - says what to install
from ..reader.command import app as _reader
from . import compact, conv_fever, generator, nph, synthesis

app = typer.Typer(
    help="Train the models of the embedded bundles, measure them and export them.",
    no_args_is_help=True,
    add_completion=False,
)
for _group in (compact, synthesis, generator, conv_fever, nph):
    app.add_typer(_group.app)
app.add_typer(_reader, name="reader")

__all__ = ["app"]

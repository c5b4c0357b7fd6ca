"""``groundwire mcp``."""

from __future__ import annotations

import typer

from . import options
from .groups import expand_groups


@expand_groups
def mcp(*, engine_options: options.EngineOptions) -> None:
    """Serve tools of the Model Context Protocol on standard input and output.

    The tools are check, correct and explain. A host, such as an assistant or an editor, starts this command and calls
    them; it ends with its standard input.

        groundwire mcp
        groundwire mcp --bundle compact --set threads=2
    """
    try:
        from groundwire.adapters.mcp import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        typer.echo("The tools need mcp; install it with: pip install 'groundwire[mcp]'", err=True)
        raise typer.Exit(1) from error
    with engine_options.open() as engine:
        make_server(engine).run()

"""``groundwire serve``: the options of the command line are the fields of ``Settings``."""

from __future__ import annotations

import inspect
import os
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from groundwire.engine import InvalidRequest
from groundwire.service.settings import (
    HINTS,
    NOT_OPTIONS,
    PREFIX,
    Settings,
    is_list,
    load_settings,
    plain_type,
    read_field_docs,
    read_tokens,
)

HELP = f"""Serve the engine over HTTP.

Answers when its models are warm: `/readyz` says so. Every request has a deadline and limits; what is stopped is an
error and never a score. `/openapi.json` describes all paths, `/metrics` is for Prometheus, and each request is one line
of JSON on standard error, without texts. SIGTERM finishes what has begun.

    groundwire serve
    curl localhost:8000/score --json '{{"response": "Honey is blue.", "knowledge": "Honey is golden."}}'

    groundwire serve --extra nph --metrics fast --port 9000            # also repairs: /refine
    GROUNDWIRE_TOKENS=secret groundwire serve --host 0.0.0.0           # needs Authorization: Bearer secret
    groundwire serve --config groundwire.toml --drain-delay-ms 5000

Every option may also be a variable ({PREFIX}PORT=9000; several values are separated by commas) or a key of the file of
--config (port = 9000, extra = ["nph"]). The command line wins over the environment, and this over the file.
"""


def _serve(config: Path | None = None, check: bool = False, **given: Any) -> None:
    options = {name: value for name, value in given.items() if value not in (None, [])}
    for name in options:
        if is_list(name):
            options[name] = [part for value in options[name] for part in value.split(",")]
    try:
        settings = load_settings(config, os.environ, options)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from error
    run = _import_run()
    if check:
        read_tokens(settings)
        typer.echo("The settings are usable.")
        return
    sys.exit(run(settings))


def _import_run() -> Callable[..., int]:
    try:
        from groundwire.service.server import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "prometheus_client"):
            raise
        typer.echo(f"The service needs {error.name}; install it with: pip install 'groundwire[serve]'", err=True)
        raise typer.Exit(1) from error
    return run


def ui(
    bundle: Annotated[str, typer.Option(help="Bundle: a name, a directory or hf://.")] = "compact",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or tensorrt.")] = "auto",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 chooses a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Open a page on which to try the engine.

    Paste knowledge, history and a response, and see the verdict, the words that are not supported and why, citations,
    questions, and where the time went. It is the page /ui of `groundwire serve`, on this machine alone; Ctrl+C ends it.

        groundwire ui
        groundwire ui --bundle mine --no-browser --port 8080
    """
    try:
        settings = load_settings(options={"bundle": bundle, "device": device, "port": port, "log_level": "warning"})
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from error

    def open_page(url: str) -> None:
        typer.echo(f"{url}/ui")
        if browser:
            webbrowser.open(f"{url}/ui")

    sys.exit(_import_run()(settings, open_page))


def _make_parameters() -> list[inspect.Parameter]:
    """One option per setting, with its docstring as help; what is not given stays None, for the other sources."""
    docs = read_field_docs(Settings)
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(
            "config",
            kind,
            default=None,
            annotation=Annotated[Path | None, typer.Option(help="TOML file with settings.", dir_okay=False)],
        ),
        inspect.Parameter(
            "check",
            kind,
            default=False,
            annotation=Annotated[bool, typer.Option("--check", help="Read the settings, say if they are usable, end.")],
        ),
    ]
    for name in HINTS:
        if name in NOT_OPTIONS:
            continue
        default = getattr(Settings(), name)
        shown = (
            ""
            if default in (None, (), False, True)
            else f" Default: {default:g}."
            if isinstance(default, float)
            else f" Default: {default}."
        )
        option = typer.Option(help=docs.get(name, "") + shown, show_default=False)
        plain: Any = plain_type(name)
        annotation = list[str] | None if is_list(name) else plain | None
        parameters.append(inspect.Parameter(name, kind, default=None, annotation=Annotated[annotation, option]))
    return parameters


def serve(**given: Any) -> None:
    """See ``HELP``; the signature is made of the settings."""
    _serve(**given)


serve.__doc__ = HELP
serve.__signature__ = inspect.Signature(_make_parameters())  # type: ignore[attr-defined]
serve.__annotations__ = {parameter.name: parameter.annotation for parameter in _make_parameters()}

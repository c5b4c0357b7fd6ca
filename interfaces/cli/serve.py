"""``groundwire serve``; the fields of ``Settings`` are its options."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groundwire.engine import InvalidRequest
from groundwire.service.settings import (
    FORMS,
    HINTS,
    NOT_OPTIONS,
    PREFIX,
    Settings,
    is_list,
    list_warnings,
    load_settings,
    plain_type,
    read_field_docs,
)

from .groups import expand_groups

NEWLINE = "\n    "
HELP = f"""Serve the engine over HTTP.

The service answers when its models are warm: `/readyz` says so. Every request has a deadline and limits; a request
that is stopped is an error and never a score. `/openapi.json` describes all paths, `/metrics` is for Prometheus, and
each request is one line of JSON on standard error, without texts. After SIGTERM the service finishes its requests.

    groundwire serve
    curl localhost:8000/score --json '{{"response": "Honey is blue.", "knowledge": "Honey is golden."}}'

    groundwire serve --open                                            # opens a page on which to try the engine
    groundwire serve --extra nph --metrics fast --port 9000            # also repairs: /refine
    GROUNDWIRE_TOKENS=secret groundwire serve --host 0.0.0.0           # needs Authorization: Bearer secret
    groundwire serve --config groundwire.toml --drain-delay-ms 5000

Every option may also be a variable ({PREFIX}PORT=9000; several values are separated by commas) or a key of the file of
--config (port = 9000, extra = ["nph"]). The command line wins over the environment, and this over the file. Three
settings are not options, as other users of the machine can read a command line:

    {NEWLINE.join(FORMS.values())}
"""


def _import_run() -> tuple[Callable[..., int], Callable[[Settings], str]]:
    try:
        from groundwire.service.server import check_service, run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "httptools", "prometheus_client"):
            raise
        typer.echo(f"The service needs {error.name}; install it with: pip install 'groundwire[serve]'", err=True)
        raise typer.Exit(1) from error
    return run, check_service


def _make_options() -> list[tuple[str, Any, Any]]:
    """Return one option per setting, with its docstring as help; an option not given stays None."""
    docs = read_field_docs(Settings)
    fields = []
    for name in HINTS:
        if name in NOT_OPTIONS:
            continue
        default = getattr(Settings(), name)
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        note = "" if default in (None, (), False, True) else f" Default: {shown}."
        kind: Any = list[str] | None if is_list(name) else plain_type(name) | None
        option = typer.Option(help=docs.get(name, "") + note, show_default=False)
        fields.append((name, Annotated[kind, option], field(default=None)))
    return fields


if TYPE_CHECKING:
    SettingOptions = Any
else:
    SettingOptions = make_dataclass("SettingOptions", _make_options(), frozen=True)


@expand_groups
def serve(
    config: Annotated[Path | None, typer.Option(help="TOML file with settings.", dir_okay=False)] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say if settings, bundles and metrics are usable; end.")
    ] = False,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page /ui in the browser when the service listens.")
    ] = False,
    *,
    given: SettingOptions,
) -> None:
    """Serve the engine over HTTP; the user reads ``HELP``."""
    values = {name: value for name, value in vars(given).items() if value not in (None, [])}
    for name in values:
        if is_list(name):
            values[name] = [part for value in values[name] for part in value.split(",")]
    try:
        settings = load_settings(config, os.environ, values)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from error
    if open_page and not settings.ui:
        raise typer.BadParameter("the settings leave the page /ui out.", param_hint="--open")
    run, check_service = _import_run()
    if check:
        said = check_service(settings)
        for warning in list_warnings(settings, os.environ):
            typer.echo(f"Warning: {warning}", err=True)
        typer.echo(said)
        return
    sys.exit(run(settings, _open_page) if open_page else run(settings))


def _open_page(url: str) -> None:
    typer.echo(f"{url}/ui")
    webbrowser.open(f"{url}/ui")


serve.__doc__ = HELP

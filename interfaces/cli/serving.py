"""The options of the commands that serve over HTTP: settings that are chosen at a start, and how they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from groundwire.engine import InvalidRequest
from groundwire.service.settings import (
    FORMS,
    S,
    Settings,
    is_list,
    list_hints,
    list_warnings,
    load_settings,
    plain_type,
    read_field_docs,
)

ConfigOption = Annotated[Path | None, typer.Option("--config", help="TOML file with settings.", dir_okay=False)]
CheckOption = Annotated[bool, typer.Option("--check", help="Say if settings, bundles and metrics are usable; end.")]
_PACKAGES = ("starlette", "uvicorn", "httptools", "prometheus_client", "httpx")
"""What the extras of the commands bring."""


def make_options(record: type[Settings], names: Sequence[str]) -> type:
    """Return a group with an option for each of these settings, described as the setting is; one not given is None."""
    docs, defaults, hints = read_field_docs()[record.__name__], record(), list_hints(record)
    fields: list[tuple[str, Any, Any]] = [
        (name, _make_option(hints[name], docs[name], getattr(defaults, name)), field(default=None)) for name in names
    ]
    return make_dataclass(f"{record.__name__}Options", fields, frozen=True)


def _make_option(hint: Any, doc: str, default: Any) -> Any:
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    if isinstance(default, tuple):
        shown = ",".join(default)
    note = "" if default in (None, "", (), False, True) else f" Default: {shown}."
    kind: Any = list[plain_type(hint)] | None if is_list(hint) else plain_type(hint) | None  # type: ignore[misc]
    return Annotated[kind, typer.Option(help=doc + note, show_default=False)]


def list_forms(record: type[Settings]) -> str:
    """How to write tokens and tables, as an indented part of a command's help."""
    return "\n    ".join(FORMS[name] for name in list_hints(record) if name in FORMS)


def list_others(record: type[Settings], names: Sequence[str]) -> str:
    """The settings that are not options, as a sentence of a command's help has them."""
    return ", ".join(name for name in list_hints(record) if name not in names)


def read_settings(record: type[S], config: Path | None, setting_options: Any) -> S:
    """The settings of the options, the environment and the file; wrong usage if they are not usable."""
    hints = list_hints(record)
    values = {name: value for name, value in vars(setting_options).items() if value not in (None, [])}
    for name in values:
        if is_list(hints[name]):
            values[name] = [part for value in values[name] for part in value.split(",")]
    try:
        return load_settings(config, os.environ, values, record)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from error


def report_check(report: str, settings: Settings) -> None:
    """Print the report of ``check_service``, after warnings on standard error."""
    for warning in list_warnings(settings, os.environ):
        typer.echo(f"Warning: {warning}", err=True)
    typer.echo(report)


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Import what the extra brings in this block; where it is missing, say what to install, and end with 1."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES:
            raise
        typer.echo(
            f"groundwire {extra} needs {error.name}; install it with: pip install 'groundwire[{extra}]'", err=True
        )
        raise typer.Exit(1) from error

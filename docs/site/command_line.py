"""Writes the reference of the ``groundwire`` command from the commands themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec


def write_cli_page() -> str:
    """Return the reference of the ``groundwire`` command as Markdown."""
    import typer

    from groundwire.cli import app

    command = typer.main.get_command(app)
    return "# Command line\n\n" + "\n".join(_describe(command, "groundwire", 2))


def _describe(command: Any, path: str, level: int) -> Iterator[str]:
    if level > 2:
        yield f"{'#' * (level - 1)} `{path}`\n"
    if command.help:
        yield command.help.replace("\b", "").strip() + "\n"
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = [path, *(_metavar(argument) for argument in arguments), *(["[OPTIONS]"] if options else [])]
    if getattr(command, "commands", None):
        yield f"```text\n{path} COMMAND [ARGUMENTS] [OPTIONS]\n```\n"
        for name, child in command.commands.items():
            yield from _describe(child, f"{path} {name}", level + 1)
        return
    yield f"```text\n{' '.join(usage)}\n```\n"
    rows = [parameter for parameter in (*arguments, *options) if not getattr(parameter, "hidden", False)]
    if rows:
        yield "| argument or option | type | default | meaning |"
        yield "|---|---|---|---|"
        for parameter in rows:
            names = (
                [_metavar(parameter).replace("|", "\\|")]
                if parameter in arguments
                else [*parameter.opts, *parameter.secondary_opts]
            )
            yield (
                f"| {', '.join(f'`{name}`' for name in names)} | {_type(parameter)} | {_default(parameter)} "
                f"| {_cell(getattr(parameter, 'help', None) or '')} |"
            )
        yield ""
    if path in ("groundwire serve", "groundwire proxy"):
        yield from _describe_settings(path)


def _describe_settings(path: str) -> Iterator[str]:
    """Describe all settings of a server; those that the proxy shares with the service are at the service."""
    from groundwire.service.settings import ProxySettings, Settings, read_field_docs

    is_proxy = path == "groundwire proxy"
    record, shared = (ProxySettings, Settings.__struct_fields__) if is_proxy else (Settings, ())
    if is_proxy:
        yield "Settings beside those of `groundwire serve`:\n"
    yield "| setting, and its variable | default | meaning |"
    yield "|---|---|---|"
    defaults = msgspec.to_builtins(record())
    for name in record.__struct_fields__:
        if name not in shared:
            default = json.dumps(defaults[name]) if defaults[name] not in (None, "", [], {}) else ""
            row = f"`{name}`, `GROUNDWIRE_{name.upper()}`", f"`{default}`" if default else "–"
            yield f"| {' | '.join(row)} | {_cell(read_field_docs()[record.__name__][name])} |"
    yield ""


def _metavar(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper().strip("[].")
    return name if argument.required else f"[{name}]"


def _type(parameter: Any) -> str:
    """Return the type of a parameter; newer versions of typer describe it, older ones keep click's type."""
    if getattr(parameter, "is_flag", False):
        return "flag"
    described = getattr(parameter, "type_descriptor", None)
    if described is None:
        return str(parameter.type.name)
    annotation = described.annotation
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        choices = tuple(choice.value for choice in annotation)
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    names = {bool: "flag", float: "number", int: "integer", str: "text", Path: "path"}
    return names.get(annotation, str(getattr(annotation, "__name__", annotation)))


def _default(parameter: Any) -> str:
    default = parameter.default() if callable(parameter.default) else parameter.default
    if default is None or default in ("", (), []):
        return "required" if parameter.required else "–"
    if default is True or default is False:
        return "on" if default else "off"
    return f"`{default.value if isinstance(default, Enum) else default}`"


def _cell(text: str) -> str:
    """Return a text as one line of a table; the keys of ``--set`` begin lines of their own."""
    return " ".join(text.replace("\n- ", "<br>").split()).replace("|", "\\|").replace("<", "&lt;")

"""Option groups: a record of options is one parameter of a command, and its rare options are keys of ``--set``.

A group is a frozen dataclass whose fields are annotated as Typer's parameters are. ``expand_groups`` gives Typer a
function with one option for each field, and the command gets the record::

    @dataclass(frozen=True)
    class Input:
        columns: Annotated[str | None, typer.Option(help="…")] = None
        limit: Annotated[int | None, Setting("Lines to read, at most.", min=1)] = None

    @expand_groups
    def score(source: Path, input_options: Input) -> None: ...

Here ``groundwire score FILE --columns … --set limit=5`` reads five lines.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
import typer

KEYWORD = inspect.Parameter.KEYWORD_ONLY
SET = "set_"
"""The parameter of ``--set``."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """Marks a field of a group that few need: a key of the command's one option ``--set KEY=VALUE``."""

    help: str
    min: float | None = None
    max: float | None = None
    envvar: str | None = None
    """The variable that has the value where ``--set`` does not."""
    is_file: bool = False
    """Whether the value is the path of a file that exists."""


class _Key(NamedTuple):
    """A key of ``--set``: the type of its values, and what is said about it."""

    kind: Any
    setting: Setting

    @classmethod
    def find(cls, annotation: Any) -> _Key | None:
        """The key that an annotation describes; None for an option of its own."""
        if get_origin(annotation) is not Annotated:
            return None
        kind, *notes = get_args(annotation)
        return next((cls(_strip_none(kind), note) for note in notes if isinstance(note, Setting)), None)

    def read(self, hint: str, text: str) -> Any:
        """Convert a value; wrong usage where it is of another type or outside the range."""
        if self.kind is Path:
            if self.setting.is_file and not Path(text).is_file():
                raise typer.BadParameter(f"there is no file {text}.", param_hint=hint)
            return Path(text)
        kind = str if self.kind == list[str] else self.kind
        try:
            value: Any = msgspec.convert(text, kind, strict=False)
        except msgspec.ValidationError as error:
            message = f"{text!r} is not {_NAMES.get(kind, 'a usable value')}."
            raise typer.BadParameter(message, param_hint=hint) from error
        low, high = self.setting.min, self.setting.max
        if low is not None and not value >= low:
            raise typer.BadParameter(f"{text} is not {low:g} or more.", param_hint=hint)
        if high is not None and not value <= high:
            raise typer.BadParameter(f"{text} is not {high:g} or less.", param_hint=hint)
        return value


_NAMES = {int: "an integer", float: "a number", bool: "true or false"}


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is annotated with a dataclass by the fields of the dataclass.

    Args:
        command: A function with annotated parameters; a group needs no default.

    Returns:
        A function with the same name and docstring, whose parameters are the fields in the place of their groups, and
        ``--set`` for the fields that are a ``Setting``. The attribute ``__wrapped__`` is ``command``.

    Raises:
        TypeError: Two parameters or fields have the same name.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    keys: list[tuple[str, _Key]] = []
    hints = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if dataclasses.is_dataclass(kind):
            groups[parameter.name] = kind
            options, its_keys = _list_options(kind)
            parameters += options
            keys += its_keys
        elif key := _Key.find(kind):
            keys.append((parameter.name, key))
        else:
            parameters.append(parameter.replace(kind=KEYWORD, annotation=kind))
    names = [parameter.name for parameter in parameters] + [name for name, _ in keys]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TypeError(f"{command.__qualname__} has several options {', '.join(repeated)}; give each another name.")

    if keys:
        parameters.append(_make_set_option(dict(keys)))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        values |= _read_settings(values.pop(SET, None) or (), dict(keys))
        for name, kind in groups.items():
            names = [field.name for field in dataclasses.fields(kind) if field.name in values]
            values[name] = kind(**{name: values.pop(name) for name in names})
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _list_options(group: Any) -> tuple[list[inspect.Parameter], list[tuple[str, _Key]]]:
    """The fields of a group as keyword parameters, and those that are keys of ``--set``."""
    hints = get_type_hints(group, include_extras=True)
    options, keys = [], []
    for field in dataclasses.fields(group):
        if key := _Key.find(hints[field.name]):
            keys.append((field.name, key))
        else:
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            options.append(inspect.Parameter(field.name, KEYWORD, default=default, annotation=hints[field.name]))
    return options, keys


def _make_set_option(keys: Mapping[str, _Key]) -> inspect.Parameter:
    """The parameter of ``--set``, whose help lists the keys."""
    listed = "".join(f"\n- `{name}`: {key.setting.help}" for name, key in keys.items())
    option = typer.Option("--set", metavar="KEY=VALUE", help=f"A setting that few need; repeatable.\n{listed}")
    return inspect.Parameter(SET, KEYWORD, default=None, annotation=Annotated[list[str] | None, option])


def _read_settings(texts: Sequence[str], keys: Mapping[str, _Key]) -> dict[str, Any]:
    """The values by key of ``--set`` and of the environment; wrong usage for an unknown key."""
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in keys or not equals:
            message = f"{text!r} is not KEY=VALUE with one of the keys {', '.join(keys)}."
            raise typer.BadParameter(message, param_hint="--set")
        is_list = keys[name].kind == list[str]
        if name in values and not is_list:
            raise typer.BadParameter(f"{name} is given twice; give it once.", param_hint="--set")
        read = keys[name].read(f"--set {name}", value)
        values[name] = [*values.get(name, ()), read] if is_list else read
    for name, key in keys.items():
        variable = key.setting.envvar
        if name not in values and variable is not None and os.environ.get(variable):
            values[name] = key.read(variable, os.environ[variable])
    return values


def _strip_none(kind: Any) -> Any:
    """The type of a value that is given: ``int`` for ``int | None``."""
    others = [part for part in get_args(kind) if part is not NoneType]
    return others[0] if NoneType in get_args(kind) and len(others) == 1 else kind

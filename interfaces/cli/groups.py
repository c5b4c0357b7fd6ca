"""Option groups: a record of options is one parameter of a command.

A group is a frozen dataclass whose fields are annotated as Typer's parameters are. ``expand_groups`` gives Typer a
function with one option for each field, and the command gets the record::

    @dataclass(frozen=True)
    class Input:
        columns: Annotated[str | None, typer.Option(help="…")] = None

    @expand_groups
    def score(source: Path, input_options: Input) -> None: ...
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

KEYWORD = inspect.Parameter.KEYWORD_ONLY


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is annotated with a dataclass by the fields of the dataclass.

    Args:
        command: A function with annotated parameters; a group needs no default.

    Returns:
        A function with the same name and docstring, whose parameters are the fields in the place of their groups. The
        attribute ``__wrapped__`` is ``command``.

    Raises:
        TypeError: Two parameters or fields have the same name.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if dataclasses.is_dataclass(kind):
            groups[parameter.name] = kind
            parameters += _list_options(kind)
        else:
            parameters.append(parameter.replace(kind=KEYWORD, annotation=kind))
    names = [parameter.name for parameter in parameters]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TypeError(f"{command.__qualname__} has several options {', '.join(repeated)}; give each another name.")

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{field.name: values.pop(field.name) for field in dataclasses.fields(kind)})
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _list_options(group: Any) -> list[inspect.Parameter]:
    """The fields of a group as keyword parameters."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            KEYWORD,
            default=inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(group)
    ]

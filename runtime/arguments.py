"""Checks of what callers pass, with one typed error that says what was given, what is allowed and what to do."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from math import inf
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec.inspect

from .errors import InvalidRequest

T = TypeVar("T")


class _Constructor(msgspec.StructMeta):
    """Calls of a class of options: a field that does not exist is InvalidRequest, not TypeError."""

    if not TYPE_CHECKING:  # type checkers know the fields

        def __call__(cls, *values: Any, **fields: Any) -> Any:  # noqa: N805 - the methods of a metaclass
            try:
                return super().__call__(*values, **fields)
            except TypeError as error:
                names = cls.__struct_fields__
                unknown = [name for name in fields if name not in names]
                what = f"no field {unknown[0]!r}{suggest(unknown[0], names)}" if unknown else f"other fields: {error}"
                where = f" {cls.ELSEWHERE[unknown[0]]}" if unknown and unknown[0] in cls.ELSEWHERE else ""
                raise InvalidRequest(f"{cls.__name__} has {what}.{where} Its fields are {', '.join(names)}.") from error


class OptionRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, metaclass=_Constructor):
    """Base of the records that callers set options with: a field that does not exist is InvalidRequest, whether the
    record is constructed or read from JSON. The values are checked where the record is used."""

    ELSEWHERE: ClassVar[Mapping[str, str]] = {}
    """By names that are looked for here, a sentence that says where they are."""


def suggest(name: str, names: Iterable[str]) -> str:
    """A part of a sentence that names the nearest of ``names``; empty where none is near.

    >>> suggest("deadline", ["priority", "deadline_ms"])
    ' (did you mean deadline_ms?)'
    >>> suggest("x", ["priority", "deadline_ms"])
    ''
    """
    near = difflib.get_close_matches(name, list(names), 1)
    return f" (did you mean {near[0]}?)" if near else ""


class Suggesting:
    """Base of the classes that callers hold: an attribute that they lack is an error that names the right one."""

    __slots__ = ()
    _other_words: ClassVar[Mapping[str, str]] = {}
    """What an error names for an attribute that other libraries call otherwise."""

    if not TYPE_CHECKING:  # type checkers know the attributes

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}{suggest_attribute(self, name)}.", name=name, obj=self
            )


def suggest_attribute(value: Any, name: str, words: Iterable[str] = ()) -> str:
    """Return a part of a sentence that names what an attribute is called: by the class's ``_other_words``, or nearly.

    Args:
        value: What lacks the attribute; its class has ``_other_words``.
        name: The attribute; of one that begins with an underscore nothing is said.
        words: What is meant besides.
    """
    if name.startswith("_"):
        return ""
    kind = type(value)
    meant = [*([kind._other_words[name]] if name in kind._other_words else []), *words]
    if meant:
        return f" (did you mean {' or '.join(meant)}?)"
    return suggest(name, (key for key in dir(kind) if not key.startswith("_")))


_STEP = re.compile(r"\.(\w+)|\[[^]]*\]")
"""A field, or a member of a list, in a path of msgspec."""


def name_values(record: Any, message: str) -> str:
    """Return a part of a sentence that lists the allowed values where msgspec refuses one of an enumeration.

    >>> from typing import Literal
    >>> name_values(Literal["all", "single"], "Invalid enum value 'any'")
    '; allowed are "all", "single"'
    >>> name_values(str, "Expected `str`, got `int`")
    ''

    Args:
        record: The type that was converted to.
        message: What msgspec says, with its path.
    """
    if not message.startswith(("Invalid enum value", "Invalid value")):
        return ""
    kinds = _list_kinds(msgspec.inspect.type_info(record))
    for step in _STEP.finditer(message.partition(" - at `$")[2]):
        kinds = [kind for outer in kinds for inner in _enter(outer, step[1]) for kind in _list_kinds(inner)]
    values = [value for kind in kinds for value in _list_values(kind)]
    return f"; allowed are {', '.join(json.dumps(value) for value in dict.fromkeys(values))}" if values else ""


def _list_kinds(kind: Any) -> list[Any]:
    """The types of a union; another type alone."""
    if isinstance(kind, msgspec.inspect.Metadata):
        return _list_kinds(kind.type)
    return list(kind.types) if isinstance(kind, msgspec.inspect.UnionType) else [kind]


def _list_values(kind: Any) -> tuple[Any, ...]:
    """The values of an enumeration, and of booleans beside them."""
    if isinstance(kind, msgspec.inspect.BoolType):
        return (True, False)
    return kind.values if isinstance(kind, msgspec.inspect.LiteralType) else ()


def _enter(kind: Any, name: str | None) -> list[Any]:
    """The types of a field of a record, or of the members of a list if there is no name."""
    if name is None:
        return [kind.item_type] if hasattr(kind, "item_type") else list(getattr(kind, "item_types", ()))
    if not isinstance(kind, msgspec.inspect.StructType):
        return []
    if name == kind.tag_field:
        return [msgspec.inspect.LiteralType((kind.tag,))]
    return [field.type for field in kind.fields if field.encode_name == name]


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """``value`` when it is a whole number from ``low`` to ``high``; None is without limit."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < low or (high is not None and value > high):
        limits = f"from {low}" if high is None else f"from {low} to {high}"
        raise InvalidRequest(f"{name} is {value!r}; allowed are whole numbers {limits}.")
    return int(value)


def check_number(name: str, value: Any, low: float) -> float:
    """``value`` when it is a number, ``low`` or more."""
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= low:
        raise InvalidRequest(f"{name} is {value!r}; allowed are numbers from {low:g}.")
    return float(value)


def check_weights(name: str, value: Any) -> dict[str, float]:
    """``value`` when it is a mapping of names to finite numbers above 0."""
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{name} is {type(value).__name__}; pass a mapping of names to numbers above 0.")
    for key, weight in value.items():
        is_number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not isinstance(key, str) or not is_number or not 0 < float(weight) < inf:
            raise InvalidRequest(f"{name}[{key!r}] is {weight!r}; allowed are names with finite numbers above 0.")
    return {key: float(weight) for key, weight in value.items()}


def check_path(name: str, value: Any) -> Path:
    """``value`` as a path, when it is a string or a path."""
    if not isinstance(value, str | PathLike):
        raise InvalidRequest(f"{name} is {type(value).__name__}; pass a string or a path.")
    return Path(value)


def read_table(value: Any) -> Any:
    """Return the rows of a table of pandas, Polars or Arrow as mappings, None for NaN; any other value as it is.

    Iterated, such a table gives the names of its columns.
    """
    if not hasattr(value, "columns"):
        return value
    methods: Mapping[str, tuple[str, ...]] = {"to_dicts": (), "to_pylist": (), "to_dict": ("records",)}
    for method, arguments in methods.items():
        if hasattr(value, method):
            rows = getattr(value, method)(*arguments)
            return [{name: None if _is_nan(cell) else cell for name, cell in row.items()} for row in rows]
    return value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


def check_sequence(name: str, value: Iterable[T], allowed: str) -> tuple[T, ...]:
    """The items of ``value`` in their order; ``allowed`` says what to pass.

    One string is not a sequence of strings, and a set has no order.
    """
    return tuple(check_iterable(name, value, allowed))


def check_iterable(name: str, value: Iterable[T], allowed: str) -> Iterable[T]:
    """``value`` when ``check_sequence`` takes it; no item of it is read."""
    if isinstance(value, set | frozenset):
        raise InvalidRequest(f"{name} is a set, which has no order; pass {allowed}.")
    if isinstance(value, str):
        raise InvalidRequest(f"{name} is one string; pass {allowed}.")
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        raise InvalidRequest(f"{name} is {type(value).__name__}; pass {allowed}.")
    return value

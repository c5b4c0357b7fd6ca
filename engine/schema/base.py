"""The base of every record that callers see."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from groundwire.runtime.arguments import suggest_attribute
from groundwire.runtime.bundles.decode import decode_json
from groundwire.runtime.errors import InvalidRequest

R = TypeVar("R", bound="Record")

Probability: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
MAX_DEADLINE_MS = 1e9
"""About twelve days."""
Milliseconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=MAX_DEADLINE_MS)]
"""Above 0, up to ``MAX_DEADLINE_MS``."""
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**31)]
"""1 or more."""


METHODS: Mapping[str, str] = {
    **dict.fromkeys(("asdict", "as_dict", "dict", "model_dump"), "to_dict()"),
    **dict.fromkeys(("json", "dumps", "model_dump_json"), "to_json()"),
}
"""What other libraries call the methods of records."""


class Record(msgspec.Struct, frozen=True):
    """Base of the records: a JSON form, and back."""

    _other_words: ClassVar[Mapping[str, str]] = METHODS
    """What an error names for an attribute that other libraries call otherwise."""

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return msgspec.json.encode(self).decode()

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dictionaries and lists."""
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read ``to_json``'s form; InvalidRequest names the field that does not fit."""
        if not isinstance(text, str | bytes):
            raise InvalidRequest(f"The JSON form of {cls.__name__} is a string, not {type(text).__name__}.")
        return decode_json(text, cls, lambda reason: InvalidRequest(f"Not the JSON form of {cls.__name__}: {reason}."))

    if not TYPE_CHECKING:  # type checkers know the fields

        def __getattr__(self, name: str) -> Any:
            """Say what a name that the record lacks is called here, or in which of its fields it is."""
            near = suggest_attribute(self, name, _find_fields(self, name))
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{near}.", name=name, obj=self)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """``to_dict``: FastAPI sends ``vars`` of what a route without types returns."""
        return self.to_dict()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic, and so FastAPI, take and return records; pydantic itself is not required."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else msgspec.convert(value, cls),
            serialization=core_schema.plain_serializer_function_ser_schema(msgspec.to_builtins),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        """The record is an object in the OpenAPI document of another program."""
        return {"type": "object", "title": cls.__name__, "description": (cls.__doc__ or "").partition("\n")[0]}


def _find_fields(record: Record, name: str) -> Iterator[str]:
    """Where a value of this name is in the record's fields."""
    for field in record.__struct_fields__:
        value = getattr(record, field)
        if isinstance(value, Record) and name in value.__struct_fields__:
            yield f"{field}.{name}"
        elif isinstance(value, dict) and name in value:
            yield f"{field}[{name!r}]"


def check_record(value: Any, kind: type[R]) -> R:
    """``value`` when it is a ``kind`` whose fields have the types and ranges of their annotations.

    msgspec checks what it decodes and nothing that is constructed. InvalidRequest names the field and what is allowed.
    """
    if not isinstance(value, kind):
        raise InvalidRequest(f"{kind.__name__.lower()} is {type(value).__name__}; pass an instance of {kind.__name__}.")
    try:
        with _LOCK:
            checked: R = msgspec.convert(msgspec.to_builtins(value, enc_hook=_to_number), kind)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(_explain(value, str(error))) from error
    _check_kinds(value, checked, kind.__name__)
    return checked


def _to_number(value: Any) -> int | float:
    """A number of another library, such as NumPy, as Python's own."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{value!r:.200} is no value of an option")


def _check_kinds(value: Any, checked: Any, name: str) -> None:
    """InvalidRequest if a record in ``value`` is of another kind than in ``checked``, its converted form: msgspec takes
    a dictionary, or a record of any kind, for the record that has their fields."""
    if isinstance(checked, msgspec.Struct):
        if type(value) is not type(checked):
            raise InvalidRequest(f"{name} is {value!r:.200}; pass an instance of {type(checked).__name__}.")
        for field in checked.__struct_fields__:
            _check_kinds(getattr(value, field), getattr(checked, field), f"{name}.{field}")


def _explain(value: Record, error: str) -> str:
    """What msgspec says about a field, with the field's name, what was given, and the allowed words or records."""
    name, location = type(value).__name__, _LOCATION.search(error)
    if location is None:
        return f"{name} is not usable: {error}."
    argument: Any = value
    allowed = ""
    for field in location[1].split("."):
        if isinstance(argument, msgspec.Struct):
            allowed = _list_allowed(get_type_hints(type(argument)).get(field))
        argument = getattr(argument, field, argument)
    reason = allowed or error[: location.start()].replace("null", "None")
    return f"{name}.{location[1]} is {argument!r:.200}; {reason}."


def _list_allowed(hint: Any) -> str:
    """The words or the records that a type allows; empty for other types."""
    if get_origin(hint) is Literal:
        return f"use one of {', '.join(map(str, get_args(hint)))}"
    kinds = [kind.__name__ for kind in (hint, *get_args(hint)) if isinstance(kind, type(msgspec.Struct))]
    return f"pass an instance of {' or '.join(kinds)}" if kinds else ""


_LOCATION = re.compile(r" - at `\$\.([\w.]+)[^`]*`$")


_LOCK = threading.Lock()
"""msgspec reads a type's annotations at its first use, and crashes when two threads do so at the same time."""


def digest_fields(fields: dict[str, Any]) -> str:
    """Sixteen hexadecimal digits of the fields of a request, in order."""
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()[:16]

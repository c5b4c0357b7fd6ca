"""What each path does, and the OpenAPI 3.1 document about it: msgspec gives the JSON Schema of its types."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

import msgspec
from starlette.responses import Response

from groundwire import __version__

from .problems import MEDIA_TYPE, STATUS, TITLES, Code, Problem
from .records import JsonObject
from .request import ServiceRequest
from .settings import read_field_docs

Handle: TypeAlias = Callable[[ServiceRequest], Awaitable[Response]]

EVENTS = "text/event-stream"
"""Media type of server-sent events."""
WORK: tuple[Code, ...] = (
    "malformed", "unauthorized", "body_timeout", "too_large", "unsupported_media_type", "invalid", "unreadable",
    "overloaded", "failed", "not_ready", "closed", "deadline",
)  # fmt: skip
TEMPLATE = "#/components/schemas/{name}"
_ID = {"schema": {"type": "string"}, "description": "That of the request, or a new one."}
_DEADLINES = [
    {
        "name": "Groundwire-Deadline-Ms",
        "in": "header",
        "description": "Milliseconds from the arrival; later there is 504.",
        "schema": {"type": "number", "exclusiveMinimum": 0},
    },
    {
        "name": "grpc-timeout",
        "in": "header",
        "description": "The same as gRPC writes it: 500m. The shorter of both holds.",
        "schema": {"type": "string", "pattern": "^[0-9]{1,8}[HMSmun]$"},
    },
]


@cache
def read_examples() -> Mapping[str, JsonObject]:
    """An example of each operation by its name: ``response``, and ``request`` where it has a body.

    Lines and events are text.
    """
    examples: Mapping[str, JsonObject] = json.loads(
        files(__package__).joinpath("ui", "operations.json").read_text(encoding="utf-8")
    )
    return examples


class Operation(NamedTuple):
    """A method of a path. The handler's docstring is its description."""

    method: str
    path: str
    handle: Handle
    body: Any = None
    """Type of the body; None for no body."""
    result: Any = None
    """Type of the answer; None for text."""
    body_type: str = "application/json"
    result_type: str = "application/json"
    problems: tuple[Code, ...] = WORK
    parameters: tuple[Mapping[str, Any], ...] = ()
    """The parameters of the path and the query, as OpenAPI describes them."""

    @property
    def name(self) -> str:
        """The handler's name."""
        return self.handle.__name__

    @property
    def is_open(self) -> bool:
        """Whether it needs no token."""
        return "unauthorized" not in self.problems

    @property
    def has_deadline(self) -> bool:
        """Whether it ends with 504 when its deadline has passed."""
        return "deadline" in self.problems


def make_document(operations: Sequence[Operation]) -> JsonObject:
    """The document of these operations."""
    types = [kind for operation in operations for kind in (operation.body, operation.result) if kind is not None]
    schemas, components = msgspec.json.schema_components([*types, Problem], ref_template=TEMPLATE)
    _describe_fields([*types, Problem], components)
    schema_of = {id(kind): schema for kind, schema in zip(types, schemas, strict=False)}
    paths: JsonObject = {}
    for operation in operations:
        entry = _describe(operation, schema_of)
        paths.setdefault(operation.path, {})[operation.method.lower()] = entry
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Groundwire",
            "version": __version__,
            "description": "How faithful a dialogue response is to its knowledge.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe(operation: Operation, schema_of: dict[int, JsonObject]) -> JsonObject:
    summary, _, description = (inspect.getdoc(operation.handle) or "").partition("\n")
    entry: JsonObject = {
        "operationId": operation.name,
        "summary": summary.rstrip("."),
        "description": " ".join(description.split()),
        "parameters": [dict(parameter) for parameter in operation.parameters],
        "responses": {},
    }
    if operation.is_open:
        entry["security"] = []
    else:
        entry["security"] = [{}, {"bearer": []}]
    if operation.has_deadline:
        entry["parameters"] += _DEADLINES
    example = read_examples()[operation.name]
    if operation.body is not None:
        body = {"schema": schema_of[id(operation.body)], "example": example["request"]}
        entry["requestBody"] = {"required": True, "content": {operation.body_type: body}}
    content: JsonObject = {"schema": {"type": "string"}}
    if operation.result is not None:
        content = {"schema": schema_of[id(operation.result)]}
    if operation.result_type == EVENTS:
        content = {"schema": _describe_event(content["schema"])}
    content["example"] = example["response"]
    entry["responses"]["200"] = {
        "description": "The result.",
        "headers": {"X-Request-Id": _ID},
        "content": {operation.result_type: content},
    }
    for status in sorted({STATUS[code] for code in operation.problems}):
        codes = [code for code in operation.problems if STATUS[code] == status]
        entry["responses"][str(status)] = {
            "description": f"{TITLES.get(status, '')} {', '.join(codes)}".strip(),
            "headers": {"X-Request-Id": _ID},
            "content": {MEDIA_TYPE: {"schema": {"$ref": TEMPLATE.format(name="Problem")}}},
        }
    return entry


def _describe_event(schema: JsonObject) -> JsonObject:
    """A server-sent event whose data are JSON of this schema."""
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": schema}
    return {"type": "object", "properties": {"event": {"type": "string"}, "data": data}, "required": ["event", "data"]}


def _describe_fields(types: Iterable[Any], components: dict[str, JsonObject]) -> None:
    """Add the descriptions of the records' fields to their properties."""
    docs = read_field_docs()
    for record in list_records(types):
        properties = components.get(record.__name__, {}).get("properties", {})
        names = dict(zip(record.__struct_fields__, record.__struct_encode_fields__, strict=True))
        for field, text in docs.get(record.__name__, {}).items():
            if names[field] in properties:
                properties[names[field]]["description"] = text


def list_records(types: Iterable[Any]) -> Iterable[Any]:
    """The records in these types, and in their fields, each once."""
    waiting: list[Any] = list(msgspec.inspect.multi_type_info(types))
    seen: set[Any] = set()
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, msgspec.inspect.StructType):
            if kind.cls in seen:
                continue
            seen.add(kind.cls)
            waiting += [field.type for field in kind.fields]
        for name in ("types", "item_types"):
            waiting += getattr(kind, name, ())
        for name in ("type", "item_type", "key_type", "value_type"):
            if isinstance(inner := getattr(kind, name, None), msgspec.inspect.Type):
                waiting.append(inner)
    return seen

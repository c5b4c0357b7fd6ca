"""How schemathesis reads the OpenAPI document and writes bodies; the program loads it as SCHEMATHESIS_HOOKS."""

from __future__ import annotations

import json
from typing import Any

import schemathesis

DEADLINES = {
    "Groundwire-Deadline-Ms": {"type": "number", "minimum": 60_000},
    "grpc-timeout": {"enum": ["60S"]},
}
"""Values of the headers with which answers are computed: the least that the document allows end every request."""
VARIED = "ScoreBody"
"""The body whose options take every value; the options of the others are the same record, and are left out."""


@schemathesis.hook
def before_load_schema(context: Any, raw_schema: dict[str, Any]) -> None:
    """Give answers time, and vary shared options in one body alone."""
    for name, schema in raw_schema["components"]["schemas"].items():
        if name.endswith("Body") and name != VARIED and "options" in schema["properties"]:
            schema["properties"]["options"] = {"const": {}}
    operations = (operation for path in raw_schema["paths"].values() for operation in path.values())
    for parameter in (parameter for operation in operations for parameter in operation.get("parameters", ())):
        if parameter["name"] in DEADLINES:
            parameter["schema"] = DEADLINES[parameter["name"]]


@schemathesis.serializer("application/x-ndjson")
def write_line(context: Any, value: Any) -> bytes:
    """One line of what is JSON otherwise."""
    return value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"

"""What schemathesis writes into bodies of lines of JSON; the program loads it as SCHEMATHESIS_HOOKS."""

from __future__ import annotations

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def write_line(context: Any, value: Any) -> bytes:
    """One line of what is JSON otherwise."""
    return value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"

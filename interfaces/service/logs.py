"""Logs as lines of JSON, without texts unless the settings ask for them."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

log = logging.getLogger("groundwire.service")
FIELDS = "groundwire_fields"
"""Attribute of a log record with the fields of its line."""


def write(level: int, event: str, **fields: Any) -> None:
    """Log an event with its fields; those that are None are left out."""
    if log.isEnabledFor(level):
        log.log(level, event, extra={FIELDS: {name: value for name, value in fields.items() if value is not None}})


class JsonFormatter(logging.Formatter):
    """One object per line: time (UTC), level, logger, event, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def configure(level: str) -> None:
    """Write the logs of this process to standard error as JSON. For programs; a library leaves logging as it is."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("groundwire", "uvicorn"):
        logging.getLogger(name).setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True

"""Logs as lines of JSON, without texts unless the settings ask for them, and a span of OpenTelemetry for each request.

There are spans where the API of OpenTelemetry is installed; where they go is up to the program:
``opentelemetry-instrument groundwire serve`` reads the usual variables. A span has the route, the status, the verdict
and where the time went, and no text.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

try:
    from opentelemetry import propagate, trace
except ModuleNotFoundError:  # it is optional
    HAS_TRACES = False
else:
    HAS_TRACES = True

from groundwire.engine import GroundwireError

from .context import RequestContext
from .problems import Refusal, refuse_error

log = logging.getLogger("groundwire.service")
connections = logging.getLogger("groundwire.service.connections")
REPEAT_SECONDS = 10.0
"""A line about connections is logged once in this time, with the number of the lines that were left out."""
FIELDS = "groundwire_fields"
"""Attribute of a log record with the fields of its line."""
SERVER_ERROR = 500


def write(level: int, event: str, **fields: Any) -> None:
    """Log an event with its fields; fields that are None are left out."""
    if log.isEnabledFor(level):
        log.log(level, event, extra={FIELDS: {name: value for name, value in fields.items() if value is not None}})


def refuse_logged(error: Exception, request_id: str) -> Refusal:
    """Return the refusal for an error; an error that nothing expects is logged as a defect."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, GroundwireError):
        return refuse_error(error)
    log.error("defect", exc_info=error, extra={FIELDS: {"request_id": request_id}})
    return Refusal("failed", "The server has a defect; its log has the request id and the reason.")


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


class RepeatFilter(logging.Filter):
    """Passes a message on once in ``REPEAT_SECONDS``, and counts how often it was left out."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._passed: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log the record."""
        key = f"{record.msg} {getattr(record, FIELDS, {}).get('reason', '')}"
        if record.levelno < logging.WARNING:
            return True
        now = self._now()
        if now - self._passed.get(key, -REPEAT_SECONDS) < REPEAT_SECONDS:
            self._left_out[key] = self._left_out.get(key, 0) + 1
            return False
        self._passed[key] = now
        if left_out := self._left_out.pop(key, 0):
            setattr(record, FIELDS, {**getattr(record, FIELDS, {}), "left_out": left_out})
        return True


def configure(level: str) -> None:
    """Write the logs of this process to standard error as JSON. For programs; a library leaves logging as it is."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    least = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger("groundwire").setLevel(least)
    # what it informs of is in the service's own lines, and would have the clients and queries of WebSockets
    for name in ("uvicorn", "uvicorn.error"):  # whatever a configuration of uvicorn has set
        logging.getLogger(name).setLevel(max(least, logging.WARNING))
    for logger in (connections, logging.getLogger("asyncio"), logging.getLogger("uvicorn.error")):
        logger.filters[:] = [RepeatFilter()]
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


@contextmanager
def trace_request(method: str, headers: Mapping[str, str], context: RequestContext) -> Iterator[None]:
    """Trace a request as a part of its caller's trace (``traceparent``).

    ``context`` gets its route, status and log fields while it is served.
    """
    if not HAS_TRACES:
        yield
        return
    tracer = trace.get_tracer("groundwire.service")
    parent = propagate.extract(headers)
    with tracer.start_as_current_span(method, parent, trace.SpanKind.SERVER) as span:
        yield
        if not span.is_recording():
            return
        route, status = context.route, context.status
        span.update_name(f"{method} {route}")
        attributes: dict[str, Any] = {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
        }
        attributes["groundwire.request_id"] = context.id
        for name, value in context.log_fields.items():
            if name != "body":
                attributes[f"groundwire.{name}"] = value
        span.set_attributes(attributes)
        if status >= SERVER_ERROR:
            span.set_status(trace.StatusCode.ERROR)


def find_trace_id() -> str | None:
    """The id of the current trace, for the log; None without one."""
    if not HAS_TRACES:
        return None
    span = trace.get_current_span().get_span_context()
    return trace.format_trace_id(span.trace_id) if span.is_valid else None

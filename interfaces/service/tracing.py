"""A span of OpenTelemetry for each request, where its API is installed; without it nothing happens.

Where spans go is up to the program: ``opentelemetry-instrument groundwire serve`` reads the usual variables. A span has
the route, the status, the verdict and where the time went, and no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

try:
    from opentelemetry import propagate, trace
except ModuleNotFoundError:  # it is optional
    IS_INSTALLED = False
else:
    IS_INSTALLED = True

SERVER_ERROR = 500


@contextmanager
def trace_request(method: str, headers: Mapping[str, str], known: Mapping[str, Any]) -> Iterator[None]:
    """Trace a request as a part of its caller's trace (``traceparent``).

    ``known`` gets its route, status and log fields while it is served.
    """
    if not IS_INSTALLED:
        yield
        return
    tracer = trace.get_tracer("groundwire.service")
    context = propagate.extract(headers)
    with tracer.start_as_current_span(method, context, trace.SpanKind.SERVER) as span:
        yield
        if not span.is_recording():
            return
        route, status = known.get("route", "other"), known["status"]
        span.update_name(f"{method} {route}")
        attributes = {"http.request.method": method, "http.route": route, "http.response.status_code": status}
        attributes["groundwire.request_id"] = known["id"]
        for name, value in known["log"].items():
            if name != "body":
                attributes[f"groundwire.{name}"] = value
        span.set_attributes(attributes)
        if status >= SERVER_ERROR:
            span.set_status(trace.StatusCode.ERROR)


def find_trace_id() -> str | None:
    """The id of the current trace, for the log; None without one."""
    if not IS_INSTALLED:
        return None
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else None

"""``/healthz``, ``/readyz`` and ``/metrics``: whether the server lives and should be sent requests, and its numbers."""

from __future__ import annotations

from starlette.responses import PlainTextResponse, Response

from .problems import Refusal, make_json
from .records import Health
from .request import ServiceRequest


async def healthz(request: ServiceRequest) -> Response:
    """Say whether the server lives.

    If it does not, restart it.
    """
    if not request.service.engine.core.is_open:
        raise Refusal("closed", "The engine is closed or has failed; restart the server.")
    return make_json(Health("alive"))


async def readyz(request: ServiceRequest) -> Response:
    """Say whether the server should be sent requests.

    It is ready when its models are warm and a real score, which is at most ten seconds old, has succeeded; and not
    while it is about to stop or none of its worker processes computes. It answers within five seconds.
    """
    request.service.readiness.begin()
    await request.service.readiness.check()
    return make_json(Health("ready"))


async def metrics(request: ServiceRequest) -> Response:
    """List the server's numbers in Prometheus' text format."""
    await request.service.update_gauges()
    return PlainTextResponse(request.service.monitoring.render(), media_type="text/plain; version=0.0.4")

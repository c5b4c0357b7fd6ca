"""``/healthz``, ``/readyz`` and ``/metrics``."""

from __future__ import annotations

from starlette.responses import PlainTextResponse, Response

from .call import Call, make_json
from .problems import Refusal
from .records import Health


async def healthz(call: Call) -> Response:
    """Say whether the server lives.

    If it does not, restart it.
    """
    if not call.service.engine.core.is_open:
        raise Refusal("closed", "The engine is closed or has failed; restart the server.")
    return make_json(Health("alive"))


async def readyz(call: Call) -> Response:
    """Say whether the server should be sent requests.

    It is ready when its models are warm and a real score, which is at most ten seconds old, has succeeded; and not
    while it is about to stop.
    """
    call.service.readiness.begin()
    await call.service.readiness.check()
    return make_json(Health("ready"))


async def metrics(call: Call) -> Response:
    """List the server's numbers in Prometheus' text format."""
    call.service.update_gauges()
    return PlainTextResponse(call.service.monitoring.render(), media_type="text/plain; version=0.0.4")

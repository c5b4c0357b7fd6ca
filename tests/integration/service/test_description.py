"""The requests of the examples in the OpenAPI document are answered, by the embedded models."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from groundwire import service
from groundwire.engine import Engine
from groundwire.runtime.bundles.bundle import embedded
from groundwire.service.application import OPERATIONS
from groundwire.service.openapi import read_examples

EXTRA = sorted({"nph", "generator"} & set(embedded()))


@pytest.mark.skipif(
    "compact" not in embedded() or "nph" not in EXTRA, reason="this checkout lacks the embedded bundles"
)
def test_the_requests_of_the_examples_are_answered() -> None:
    async def ask(engine: Engine) -> dict[str, int]:
        application = service.app(engine)
        await application.warm()
        transport = httpx.ASGITransport(application)
        statuses = {}
        async with httpx.AsyncClient(transport=transport, base_url="http://groundwire") as client:
            for operation in OPERATIONS:
                request = read_examples()[operation.name].get("request")
                path = operation.path.replace("{name}", "groundwire")
                headers = {"Groundwire-Deadline-Ms": "60000"} if operation.has_deadline else {}
                if isinstance(request, str):
                    headers["Content-Type"] = operation.body_type
                answer = await client.request(
                    operation.method,
                    path,
                    headers=headers,
                    content=request if isinstance(request, str) else None,
                    json=None if isinstance(request, str) else request,
                )
                statuses[operation.name] = answer.status_code
        return statuses

    with Engine.load("compact", extra=EXTRA) as engine:
        statuses = asyncio.run(ask(engine))
    if "generator" not in EXTRA:
        statuses.pop("generate")
    assert statuses == dict.fromkeys(statuses, 200)

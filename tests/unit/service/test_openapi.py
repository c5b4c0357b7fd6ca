"""Random requests by the OpenAPI document: every answer is one that the document describes, and none is a defect."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from groundwire.engine import Engine
from groundwire.service.application import OPERATIONS, app
from groundwire.service.openapi import Operation
from tests.support import openapi_bodies  # noqa: F401  the bodies of lines of JSON
from tests.support.streams import world

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]


EXAMPLES = int(os.environ.get("GROUNDWIRE_EXAMPLES", "15"))
"""Requests for each operation."""


@pytest.fixture(scope="module")
def document() -> Iterator[Any]:
    with Engine(world()) as engine:
        front = app(engine)
        asyncio.run(front.warm())
        yield schemathesis.openapi.from_asgi("/openapi.json", front)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}")
def test_answers_are_those_of_the_document(document: Any, operation: Operation) -> None:
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(case=document[operation.path][operation.method].as_strategy())
    def check(case: schemathesis.Case) -> None:
        for deadline in ("Groundwire-Deadline-Ms", "grpc-timeout"):  # most of them have passed when they are read
            case.headers.pop(deadline, None)
        assert case.call_and_validate(checks=CHECKS).status_code != 500

    check()

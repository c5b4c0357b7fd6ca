"""The page ``/docs``, and the examples of the OpenAPI document."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import jsonschema_rs
import msgspec
import pytest

from groundwire.service.application import OPERATIONS, encode_document
from groundwire.service.front import Front
from groundwire.service.openapi import EVENTS, Operation, read_examples
from groundwire.service.records import Delta
from tests.support.service import run


def read_content(operation: Operation) -> dict[str, Any]:
    """What the document says of the answer of an operation."""
    answer = json.loads(encode_document())["paths"][operation.path][operation.method.lower()]["responses"]["200"]
    (content,) = answer["content"].values()
    assert isinstance(content, dict)
    return content


def validate(value: Any, schema: dict[str, Any]) -> None:
    """Raise an error unless a value is of a schema of the document."""
    components = json.loads(encode_document())["components"]
    jsonschema_rs.validator_for({**schema, "components": components}).validate(value)


def test_every_operation_has_an_example_and_no_other() -> None:
    assert {operation.name for operation in OPERATIONS} == read_examples().keys()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_the_example_is_of_the_types_of_its_operation(operation: Operation) -> None:
    example = read_examples()[operation.name]
    assert ("request" in example) == (operation.body is not None)
    if operation.body is not None:
        request = example["request"]
        first, *others = request.splitlines() if isinstance(request, str) else [json.dumps(request)]
        msgspec.json.decode(first, type=operation.body)
        for line in others:
            msgspec.json.decode(line, type=Delta)
    content = read_content(operation)
    answer = content["example"]
    assert answer == example["response"]
    if operation.result_type == EVENTS:
        events = [dict(line.split(": ", 1) for line in event.splitlines()) for event in answer.strip().split("\n\n")]
        for event in events:
            validate(json.loads(event["data"]), content["schema"]["properties"]["data"]["contentSchema"])
    elif operation.result is not None:
        validate(json.loads(answer) if isinstance(answer, str) else answer, content["schema"])


def test_the_page_has_every_operation_needs_no_token_and_loads_nothing_from_elsewhere() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        assert (await client.get("/openapi.json")).status_code == 401
        return await client.get("/docs")

    answer = run(test, tokens=("secret",))
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.search(r"https?://|<script", answer.text)
    for operation in OPERATIONS:
        assert (
            f'<section id="{operation.name}"><h2><code>{operation.method} {operation.path}</code></h2>' in answer.text
        )


def test_the_page_escapes_the_texts_of_the_document() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> str:
        return (await client.get("/docs")).text

    text = run(test)
    assert "&quot;response&quot;: &quot;Express delivery costs £5.95.&quot;" in text
    assert set(re.findall(r"<(\w+)", text)) <= {
        *("html", "head", "meta", "title", "link", "body", "header", "main", "nav", "section", "h1", "h2", "h3", "p"),
        *("a", "ul", "li", "code", "pre", "details", "summary", "div", "table", "thead", "tbody", "tr", "th", "td"),
    }


def test_a_server_without_the_page_to_try_it_has_no_page_of_its_paths() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> int:
        return (await client.get("/docs")).status_code

    assert run(test, ui=False) == 404

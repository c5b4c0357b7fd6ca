"""``/ui``, a page on which people try the service, and ``/docs``, the OpenAPI document as a page.

``/ui`` is static; what it shows comes from ``/score``. ``/docs`` has an example of every operation and no script. Both
load nothing from elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from starlette.responses import Response

from groundwire.engine import Engine, InvalidRequest

from .records import Metrics
from .state import Service

PATHS = ("/ui", "/ui/page.css", "/ui/page.js")
DESCRIPTION_PATH = "/docs"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_TYPES = {"css": "text/css", "js": "text/javascript"}


def show_page(service: Service, name: str) -> Response:
    """The page, or its style or script; ``name`` is the last part of one of ``PATHS``."""
    kind = name.partition(".")[2]
    if kind:
        return Response(_read(name), headers=HEADERS, media_type=_TYPES[kind])
    data = {
        "metrics": choose_metrics(service.engine, service.metrics),
        "needs_token": bool(service.tokens),
        "examples": json.loads(_read("examples.json")),
    }
    encoded = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return Response(_read("page.html").replace("{{ data }}", encoded), headers=HEADERS, media_type="text/html")


def choose_metrics(engine: Engine, usual: Metrics | None) -> Mapping[str, tuple[str, ...]]:
    """What the page offers to compute, by name: with citations, where the engine has the models for them."""
    offers: dict[str, tuple[str, ...]] = {}
    for name, metrics in (("default", usual), ("fast", "fast"), ("all", "all")):
        try:
            names = engine.plan(metrics).names
        except InvalidRequest:
            continue
        more = [metric.name for metric in engine.plan("all").metrics if metric.cites] if name == "default" else ()
        offers[name] = tuple(dict.fromkeys((*names, *more)))
    return offers


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath("ui", name).read_text(encoding="utf-8")


_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Groundwire: paths of the service</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="ui/page.css">
</head>
<body>
<header>
  <h1>Paths of the service</h1>
  <p>What each path takes and answers, with an example.
  {{ openapi }} · <a href="ui">Check a response</a></p>
</header>
<main class="paths">"""
_FOOT = """</main>
</body>
</html>
"""


_LINK = '<a href="openapi.json">OpenAPI 3.1</a>'
_PATH_WITH_TOKEN = "OpenAPI 3.1: <code>/openapi.json</code>, with a token"


def show_description(document: bytes, *, needs_token: bool = False) -> Response:
    """The page of an OpenAPI document; with ``needs_token`` no browser gets the document itself by a link."""
    text = _write_page(document).replace("{{ openapi }}", _PATH_WITH_TOKEN if needs_token else _LINK, 1)
    return Response(text, headers=HEADERS, media_type="text/html")


@cache
def _write_page(document: bytes) -> str:
    described = json.loads(document)
    operations = [
        (method.upper(), path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = described["components"]["schemas"]
    contents = "".join(
        f'<li><a href="#{escape(operation["operationId"])}"><code>{method} {escape(path)}</code></a> '
        f"{escape(operation['summary'])}</li>"
        for method, path, operation in operations
    )
    sections = "".join(
        part for method, path, operation in operations for part in _write_operation(method, path, operation, schemas)
    )
    return f"{_HEAD}\n<nav><ul>{contents}</ul></nav>\n{sections}{_FOOT}"


def _write_operation(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    yield f'<section id="{escape(operation["operationId"])}"><h2><code>{method} {escape(path)}</code></h2>\n'
    yield f"<p>{_mark_code(operation['summary'])}. {_mark_code(operation['description'])}</p>\n"
    body_type, body = next(iter(operation.get("requestBody", {}).get("content", {}).items()), ("", None))
    if body is not None:
        yield from _write_fields(body["schema"], schemas)
    yield from _write_parameters(operation["parameters"])
    yield f"<h3>Example</h3>\n<pre>{escape(_write_command(method, path, body_type, body))}</pre>\n"
    content = next(iter(operation["responses"]["200"]["content"].values()))
    yield f"<details><summary>Answer</summary><pre>{escape(_write_text(content['example']))}</pre></details>\n"
    errors = {status: answer["description"] for status, answer in operation["responses"].items() if status != "200"}
    if errors:
        rows = [[f"<code>{status}</code>", escape(description)] for status, description in errors.items()]
        yield f"<details><summary>Errors</summary>{_write_table(['status', 'code'], rows)}</details>\n"
    yield "</section>\n"


def _write_fields(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    """A table of the fields of a body."""
    record = schemas[schema["$ref"].rpartition("/")[2]]
    rows = [
        [
            f"<code>{escape(name)}</code>",
            "needed" if name in record.get("required", ()) else "",
            _mark_code(field.get("description", "")),
        ]
        for name, field in record["properties"].items()
    ]
    yield _write_table(["field", "", "meaning"], rows)


def _write_parameters(parameters: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rows = [
        [f"<code>{escape(parameter['name'])}</code>", parameter["in"], _mark_code(parameter.get("description", ""))]
        for parameter in parameters
    ]
    if rows:
        yield _write_table(["parameter", "in", "meaning"], rows)


def _mark_code(text: str) -> str:
    """A text as HTML, with the words in backquotes as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _write_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML."""
    header = "".join(f"<th>{title}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>\n'


def _write_command(method: str, path: str, body_type: str, body: Mapping[str, Any] | None) -> str:
    """The command of curl that sends the example; a shell takes it as it is."""
    address = f"localhost:8000{path.replace('{name}', 'groundwire')}"
    if body is None:
        return f"curl {address}"
    text = _write_text(body["example"]).replace("'", "'\\''")
    if body_type == "application/json":
        return f"curl {address} --json '{text}'"
    return f"curl -sN -X {method} {address} -H 'Content-Type: {body_type}' --data-binary '{text}'"


def _write_text(example: Any) -> str:
    """An example as text: lines and events are text, others JSON."""
    return example if isinstance(example, str) else json.dumps(example, ensure_ascii=False, indent=1)

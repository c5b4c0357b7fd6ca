"""``/ui``: a page on which people try the service. It is static; what it shows comes from ``/score``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from starlette.responses import Response

from groundwire.engine import Engine, InvalidRequest

from .records import Metrics
from .state import Service

PATHS = ("/ui", "/ui/page.css", "/ui/page.js")
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

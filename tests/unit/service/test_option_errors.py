"""Options that are wrong are the caller's mistake: 422 with the field, never 500."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from groundwire.engine import Options
from groundwire.engine.core.core import Core, count_tokens
from groundwire.engine.schema.options import BertScoreOptions, PmiOptions, Q2Options
from groundwire.engine.schema.validation import make_request
from groundwire.runtime.errors import InvalidRequest
from groundwire.service.front import Front
from tests.support.fakes import world as every_role
from tests.support.service import HONEY, run

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31 + 1, 10**30, -0.5, 0.5, 1e308, "", "x", "{document.__class__}", "{response}{response}",
    "{history}", "all", [], [1], ["x"], [[5, 2]], [[-5, 10**11]], [[0, 1]] * 1001, [1.0, 2.0, 3.0], {},
    {"type": "Greedy"}, {"x": 1}, {"type": "BeamSearch", "num_beams": 10**9}, ["word " * 9000] * 2,
)  # fmt: skip
"""Of every kind that JSON has; those that one field or another takes are among them."""


def list_fields(record: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every field, of those with fields too."""
    for name, value in record.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from list_fields(value, (*path, name))


FIELDS = tuple(list_fields(msgspec.to_builtins(Options())))


@pytest.mark.no_cover
def test_no_value_of_any_option_is_an_error_of_the_server() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> list[str]:
        problems = []
        for path in FIELDS:
            for value in VALUES:
                options: Any = value
                for name in reversed(path):
                    options = {name: options}
                body = HONEY | {"options": options, "metrics": ["q2", "nli", "overlap"]}
                answer = await client.post("/score", json=body)
                where = answer.json().get("path", "")
                is_named = answer.status_code != 422 or where.startswith("$.options") or path[0].endswith("_chars")
                if answer.status_code not in (200, 422, 504) or not is_named:
                    problems.append(f"{path} = {value!r:.60}: {answer.status_code} {answer.text:.200}")
        return problems

    assert run(test, every_role()) == []


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"q2": {"spans": [[5, 2]]}}, "$.options.q2.spans"),
        ({"q2": {"spans": [[-5, 10**11]]}}, "$.options.q2.spans"),
        ({"q2": {"spans": [[0, 1]] * 20_000}}, "$.options.q2.spans"),
        ({"pmi": {"document": "{document.__class__}"}}, "$.options.pmi.document"),
        ({"pmi": {"between_turns": "x" * 10_001}}, "$.options.pmi.between_turns"),
        ({"bertscore": {"idf_documents": ["word " * 5000] * 3}}, "$.options.bertscore.idf_documents"),
    ],
)
def test_the_mistake_is_named_with_its_path(options: dict[str, Any], path: str) -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        return await client.post("/score", json=HONEY | {"options": options})

    answer = run(test)
    assert (answer.status_code, answer.json()["path"]) == (422, path)


def test_texts_in_options_are_charged() -> None:
    from groundwire.engine import Engine

    with Engine(every_role()) as engine:
        core: Core = engine.core
        request = make_request("Honey is sweet.", "Honey.")
        sizes = [
            count_tokens([request], core.plan(["nli"], options))
            for options in (
                Options(),
                Options(q2=Q2Options(spans=((0, 5),) * 900)),
                Options(bertscore=BertScoreOptions(idf_documents=("x" * 40_000,))),
            )
        ]
        assert min(sizes[1:]) > 3_000 > sizes[0]
        with pytest.raises(InvalidRequest, match=r"pmi\.response"):
            core.plan(["nli"], Options(pmi=PmiOptions(response="none")))


@pytest.mark.parametrize(
    ("path", "body", "allowed"),
    [
        ("/score", {"explanations": "some"}, 'true, false, "all"'),
        ("/score", {"options": {"q2": {"questions": "some"}}}, '"all", "single"'),
        ("/evidence", {"options": {"profile": "some"}}, '"balanced", "lenient", "strict"'),
        ("/stream", {"policy": {"failed": "some"}}, '"block", "flag", "redact"'),
        ("/stream", {"policy": {"failed": {"type": "some"}}}, '"redact", "fallback", "refine", "correct"'),
    ],
)
def test_an_unknown_value_of_an_enumeration_is_refused_with_the_allowed_ones(
    path: str, body: dict[str, Any], allowed: str
) -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> str:
        texts = {"knowledge": "Honey is sweet."} if path == "/stream" else HONEY
        answer = await client.post(path, content=msgspec.json.encode(texts | body) + b"\n")
        return str(answer.json()["detail"])

    assert f"allowed are {allowed}." in run(test, every_role())

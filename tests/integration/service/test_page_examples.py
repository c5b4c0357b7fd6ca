"""The examples of the web page: each has its wrong words marked, and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files

import pytest

from groundwire.engine import Engine
from groundwire.runtime.bundles.bundle import embedded

PAGE = files("groundwire.service").joinpath("ui/examples.json")
EXAMPLES = {row["title"]: row for row in json.loads(PAGE.read_text("utf-8"))}
WRONG = {
    "A number that is wrong": ["430 metres"],
    "Partly supported": ["born in France"],
    "In other words": [],
    "Small talk": [],
    "Support: a price": ["£5.95"],
    "A list": ["60 days"],
    "A long answer": ["14 days"],
}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    if not {"compact", "reader"} <= set(embedded()):
        pytest.skip("this checkout lacks the bundle 'compact' or 'reader'")
    with Engine.load("compact", "cpu") as engine:
        yield engine


def test_every_example_is_tested() -> None:
    assert EXAMPLES.keys() == WRONG.keys()


@pytest.mark.parametrize("title", WRONG)
def test_exactly_the_wrong_words_are_marked(engine: Engine, title: str) -> None:
    example = EXAMPLES[title]
    score = engine.score(example["response"], example["knowledge"], history=example["history"])
    assert [span.text for span in score.unsupported] == WRONG[title]
    assert (score.verdict.label == "inconsistent") == bool(WRONG[title])

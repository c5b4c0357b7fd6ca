"""What is read of a request's texts is read once, and shared with requests about the same knowledge."""

from __future__ import annotations

from typing import Any

import pytest

from groundwire.engine import Engine, Request
from groundwire.engine.metrics import requests
from groundwire.engine.metrics.requests import ReadRequest, read_together
from groundwire.engine.text import sentences, words
from tests.support.streams import world

KNOWLEDGE = ("Honey is sweet and golden. It never spoils.",)


def watch(patch: pytest.MonkeyPatch, module: Any, name: str) -> list[str]:
    """The texts that a function of ``requests`` is called with from now on."""
    read: list[str] = []
    original = getattr(module, name)
    patch.setattr(requests, name, lambda text: read.append(text) or original(text))
    return read


def test_the_texts_of_a_score_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, split = watch(monkeypatch, words, "words"), watch(monkeypatch, sentences, "sentences")
    with Engine(world()) as engine:
        engine.score("Honey is sweet. Honey is blue.", KNOWLEDGE, metrics=["overlap", "overlap_precision", "values"])
    assert sorted(read) == sorted(["Honey is sweet. Honey is blue.", *KNOWLEDGE])
    assert split == ["Honey is sweet. Honey is blue."]


def test_equal_knowledge_is_read_once_for_requests_that_are_made_together(monkeypatch: pytest.MonkeyPatch) -> None:
    read = watch(monkeypatch, words, "words")
    with Engine(world()) as engine:
        engine.rank(["Honey is sweet.", "Honey is blue."], KNOWLEDGE[0], metric="overlap")
    assert sorted(read) == sorted(["Honey is sweet.", "Honey is blue.", *KNOWLEDGE])
    first, second, other = read_together([Request("a", KNOWLEDGE), Request("b", KNOWLEDGE), Request("c", ("x",))])
    assert first.read_knowledge is second.read_knowledge
    assert first.read_knowledge is not other.read_knowledge


def test_another_response_shares_the_knowledge_and_nothing_else() -> None:
    request = ReadRequest.of(Request("Honey is sweet.", KNOWLEDGE, ("Hi!",)))
    assert ReadRequest.of(request) is request
    other = request.ask("It is blue.")
    assert (other.response, other.knowledge, other.history) == ("It is blue.", KNOWLEDGE, ("Hi!",))
    assert request.ask("It is blue.", ()).history == ()
    assert other.read_knowledge is request.read_knowledge
    assert [word.text for word in other.content] == ["blue"]
    assert [part.text for part in request.sentences] == ["Honey is sweet."]


def test_what_was_read_is_no_part_of_the_record() -> None:
    request = ReadRequest.of(Request("Honey is **sweet**.", KNOWLEDGE))
    before = request.to_json()
    assert (request.whole.text, request.is_plain) == ("Honey is sweet.", False)
    assert request.to_json() == before == Request("Honey is **sweet**.", KNOWLEDGE).to_json()

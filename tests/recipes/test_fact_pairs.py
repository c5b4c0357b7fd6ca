"""Minimal pairs of made-up facts."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from groundwire.recipes.synthesis.chat_style import ChatStyle
from groundwire.recipes.synthesis.fact_pairs import MARK, FactPairs
from groundwire.recipes.synthesis.opposite_facts import OppositeFacts
from groundwire.recipes.synthesis.structured_edits import REASONS

NAMES = {"PERSON": ["Anna Weber", "John Miller"], "LOC": ["Ohio", "Naples"], "ORG": ["Acme Ltd", "Nova Records"]}


def make_pairs() -> FactPairs:
    return FactPairs(OppositeFacts(NAMES), lambda words, rng: "It rained.", ChatStyle(["I like that."]))


@pytest.mark.parametrize("split", ["train", "dev"])
def test_both_sides_fill_all_slots_and_differ(split: str) -> None:
    facts, rng = OppositeFacts(NAMES, split), random.Random(1)
    kinds = set()
    for _ in range(3000):
        drawn = facts.draw(rng)
        kinds.add(drawn.kind)
        assert drawn.reason in REASONS
        here, there = (set(side.claims) for side in drawn.sides)
        assert here
        assert there
        assert not here & there, drawn
        for side in drawn.sides:
            for text in (*side.claims, *side.list_sources()):
                assert not re.search(r"[{}]|  |\bNone\b", text), text
            assert all(MARK.search(text) for text in side.claims), side
    assert len(kinds) == 12


def test_lengths_follow_from_the_years() -> None:
    facts, rng = OppositeFacts(NAMES), random.Random(2)
    checked = 0
    for _ in range(3000):
        drawn = facts.draw(rng)
        for side in drawn.sides if drawn.kind == "years" else ():
            start, end = (int(year) for year in re.findall(r"\b\d{4}\b", side.list_sources()[0]))
            numbers = [re.search(r"\[(\d+) years\]", claim) for claim in side.claims]
            checked += len([number for number in numbers if number])
            assert all(int(number[1]) == end - start for number in numbers if number)
    assert checked > 100


def test_pairs_share_knowledge_or_response_and_mark_what_differs() -> None:
    pairs, rng = make_pairs(), random.Random(3)
    same_knowledge = 0
    for _ in range(2000):
        supported, unsupported = pairs.draw(60, rng)
        same = supported.knowledge == unsupported.knowledge
        same_knowledge += same
        assert same or supported.response == unsupported.response
        assert not supported.spans
        assert unsupported.spans
        for span in unsupported.spans:
            assert unsupported.response[span.start : span.end].strip()
        assert supported.inference in ("entailment", None)
        assert unsupported.inference in ("contradiction", "not_entailment", None)
    assert 800 < same_knowledge < 1200


def test_true_responses_are_mostly_in_other_words() -> None:
    pairs, rng = make_pairs(), random.Random(4)
    drawn = [pairs.draw(60, rng)[0] for _ in range(2000)]
    copied = [pair for pair in drawn if pair.response.rstrip(".").lower() in pair.knowledge.lower()]
    assert len(copied) < 0.15 * len(drawn)


def test_the_splits_share_no_relation() -> None:
    def find_relations(split: str) -> set[str]:
        facts, rng = OppositeFacts(NAMES, split), random.Random(5)
        drawn = (facts.draw(rng) for _ in range(4000))
        return {
            re.sub("|".join(NAMES["PERSON"] + NAMES["LOC"] + NAMES["ORG"]), "", min(fact.sides[0].claims, key=len))
            for fact in drawn
            if fact.kind == "relation"
        }

    train, dev = (find_relations(split) for split in ("train", "dev"))
    assert train
    assert dev
    assert not {text for text in dev if "thing" not in text} & train


def test_no_pair_of_the_showcase_is_trained_on() -> None:
    """The showcase measures; its sentences are in no list of words."""
    root = Path(__file__).parents[2]
    listed = (root / "recipes/synthesis/facts.toml").read_text(encoding="utf-8").lower()
    for line in (root / "examples/showcase.jsonl").read_text(encoding="utf-8").splitlines():
        response = json.loads(line)["response"].lower().rstrip(".!?")
        assert response not in listed


def test_without_names_facts_are_about_things() -> None:
    facts, rng = OppositeFacts({}), random.Random(6)
    kinds = {facts.draw(rng).kind for _ in range(1500)}
    assert not kinds & {"voice", "age"}
    assert {"relation", "compared"} <= kinds

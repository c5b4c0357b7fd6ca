"""Conv-FEVER's corruptions: tables of input and expected text, and what holds for all of them."""

from __future__ import annotations

import random
import re

import pytest

from groundwire.recipes.conv_fever import corpus
from groundwire.recipes.conv_fever.corpus import (
    KINDS,
    ConvFeverExample,
    CorpusRecord,
    EntityIndex,
    count_kinds,
    make_examples,
    negate_knowledge,
    negate_response,
    pair_knowledge,
    pair_response,
    substitute,
    swap_context,
    swap_knowledge,
)

INTERNET = CorpusRecord(
    ("I couldn't imagine living when internet access was rare", "Oh me either! I wonder when Internet was created?"),
    "Use by a wider audience only came in 1995 when restrictions on the use of the Internet were lifted.",
    "It used to be restricted but around 1995, the restrictions were lifted",
    "internet",
)
PIE = CorpusRecord(
    ("i didnt know vanilla was added into it",), "Pecan pie is often served with vanilla.", "I love it!", "pie"
)
CITY = CorpusRecord(
    ("Have you been to Paris?", "No, but to Rome."), "Paris had 2 million people in 2019.", "Paris is big.", "c"
)


def entities(text: str) -> list[tuple[str, str]]:
    """Years are dates, other capitalised words places."""
    years = [(match.group(), "DATE") for match in re.finditer(r"\b\d{4}\b", text)]
    return years + [(match.group(), "GPE") for match in re.finditer(r"\b(?:Paris|Rome|Internet)\b", text)]


def test_the_negated_record_keeps_the_rest() -> None:
    response = negate_response(INTERNET, random.Random(1))
    knowledge = negate_knowledge(INTERNET, random.Random(1))
    assert response is not None
    assert knowledge is not None
    assert re.sub(r"weren't|were not", "were", response.record.response) == INTERNET.response
    assert (response.record.context, response.record.knowledge) == (INTERNET.context, INTERNET.knowledge)
    assert re.sub(r"weren't|were not", "were", knowledge.record.knowledge) == INTERNET.knowledge
    assert (knowledge.record.context, knowledge.record.response) == (INTERNET.context, INTERNET.response)
    assert (response.kind, knowledge.kind) == ("negate_response", "negate_knowledge")
    assert negate_response(PIE, random.Random(0)) is None


def test_pairing_takes_another_conversation() -> None:
    same = CorpusRecord((), "Other knowledge.", "Another response.", "pie")
    for seed in range(20):
        made = pair_response(PIE, [PIE, same, INTERNET], random.Random(seed))
        assert made == ConvFeverExample(
            CorpusRecord(PIE.context, PIE.knowledge, INTERNET.response, "pie"), "pair_response"
        )
        made = pair_knowledge(PIE, [PIE, same, INTERNET], random.Random(seed))
        assert made == ConvFeverExample(
            CorpusRecord(PIE.context, INTERNET.knowledge, PIE.response, "pie"), "pair_knowledge"
        )
    assert pair_response(PIE, [PIE, same], random.Random(0)) is None
    assert pair_response(PIE, [], random.Random(0)) is None
    # The same words from elsewhere would make no other record.
    assert pair_response(PIE, [CorpusRecord((), "Else.", PIE.response, "x")], random.Random(0)) is None


def test_records_without_a_name_are_conversations_of_their_own() -> None:
    first, second = CorpusRecord((), "k", "one"), CorpusRecord((), "k", "two")
    made = pair_response(first, [first, second], random.Random(0))
    assert made is not None
    assert made.record.response == "two"


def test_entities_are_swapped_for_others_of_their_label_in_the_source_only() -> None:
    index = EntityIndex.build([entities("Paris 1995 1971 Internet"), entities("1995")])
    assert index.by_label == {"DATE": ("1971", "1995"), "GPE": ("Internet", "Paris")}
    made = swap_knowledge(INTERNET, entities(INTERNET.knowledge)[:1], index, random.Random(0))
    assert made is not None
    assert made.kind == "swap_knowledge"
    # The paper's figure 2: the year of the knowledge becomes one that another knowledge names.
    assert made.record.knowledge == INTERNET.knowledge.replace("1995", "1971")
    assert (made.record.response, made.record.context) == (INTERNET.response, INTERNET.context)
    made = swap_context(
        CITY, entities(" ".join(CITY.context)), EntityIndex.build([entities("Paris Rome")]), random.Random(0)
    )
    assert made == ConvFeverExample(
        CorpusRecord(("Have you been to Rome?", "No, but to Rome."), CITY.knowledge, CITY.response, "c"), "swap_context"
    )


@pytest.mark.parametrize(
    ("record", "index"),
    [
        (PIE, "Paris 1995"),  # nothing is shared
        (INTERNET, "1995"),  # nothing to put in its place
        (INTERNET, "Paris Rome"),  # only entities of another label
    ],
)
def test_no_swap(record: CorpusRecord, index: str) -> None:
    dates = [entity for entity in entities(record.knowledge) if entity[1] == "DATE"]
    assert swap_knowledge(record, dates, EntityIndex.build([entities(index)]), random.Random(0)) is None


def test_a_rival_is_no_part_of_what_it_replaces() -> None:
    index = EntityIndex.build([[("United States", "GPE"), ("the United States", "GPE"), ("States", "GPE")]])
    assert index.draw_other("United States", "GPE", random.Random(0)) is None


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("Roman Rome, rome.", "Rome", "Oslo", "Roman Oslo, Oslo."),
        ("A $5 pie", "$5", r"\1", r"A \1 pie"),
        ("in 19951 and 1995", "1995", "1971", "in 19951 and 1971"),
    ],
)
def test_whole_words_are_replaced_in_any_case(text: str, old: str, new: str, expected: str) -> None:
    assert substitute(text, old, new) == expected


def test_the_corpus_counts_what_applies() -> None:
    records = [INTERNET, PIE, CITY]
    examples = list(make_examples(records, entities, seed=3))
    assert count_kinds(examples) == {
        "consistent": 3,
        "pair_response": 3,
        "pair_knowledge": 3,
        "negate_response": 2,
        "negate_knowledge": 3,
        # Paris in the last; the first response does not mention the Internet of its context.
        "swap_context": 1,
        # 1995 in the first, Paris in the last.
        "swap_knowledge": 2,
    }
    assert [example.consistent for example in examples].count(True) == 3
    for example in examples:
        (origin,) = [record for record in records if record.dialogue == example.record.dialogue]
        assert (example.record == origin) == example.consistent


def test_the_corpus_is_a_function_of_the_seed() -> None:
    records = [INTERNET, PIE, CITY] * 3
    first = list(make_examples(records, entities, seed=3))
    assert first == list(make_examples(records, entities, seed=3))
    assert first != list(make_examples(records, entities, seed=4))
    # Leaving kinds out leaves the others as they were.
    some: tuple[corpus.RecordKind, ...] = ("consistent", "swap_knowledge")
    assert list(make_examples(records, entities, 3, some)) == [example for example in first if example.kind in some]
    assert {example.kind for example in first} == set(KINDS)

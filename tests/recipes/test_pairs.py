"""Pairs of the consistency head and sentences of the verifiability head: what their labels promise."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest

from groundwire.recipes.common.corpus import Squad, read_topical_chat, word_set
from groundwire.recipes.synthesis.chat_style import ChatStyle, StyleChances
from groundwire.recipes.synthesis.pairs import CORRUPTIONS, ConsistencyPair, ConsistencyPairs, shorten_sentence
from groundwire.recipes.synthesis.verifiability import VerifiabilitySentences, read_chat_sentences
from groundwire.recipes.synthesis.weak_labels import LABELS as VERIFIABILITY
from tests.support.training_sets import INFERENCE, PARAGRAPHS, QUESTIONS

PLAIN = ChatStyle([], StyleChances(**dict.fromkeys(StyleChances.__dataclass_fields__, 0.0)))
TEXT = " ".join(text for texts in PARAGRAPHS.values() for text in texts)


@pytest.fixture(scope="module")
def squad(sets: Path) -> Squad:
    return Squad.read(sets / "squad1_train.jsonl.gz")


@pytest.fixture(scope="module")
def drawn(sets: Path, squad: Squad) -> dict[str, list[ConsistencyPair]]:
    """Pairs without chat style, by kind."""
    source = ConsistencyPairs.read(sets, squad, PLAIN)
    by_kind: dict[str, list[ConsistencyPair]] = defaultdict(list)
    for seed in range(3000):
        pair = source.draw(random.Random(seed))
        by_kind[pair.kind].append(pair)
    return by_kind


def test_labels_are_balanced_and_every_kind_occurs(drawn: dict[str, list[ConsistencyPair]]) -> None:
    pairs = [pair for made in drawn.values() for pair in made]
    share = sum(pair.label == "consistent" for pair in pairs) / len(pairs)
    assert 0.46 < share < 0.54
    assert set(drawn) == {"consistent", "inference", "chat", *CORRUPTIONS}
    assert {pair.label for kind in CORRUPTIONS for pair in drawn[kind]} == {"inconsistent"}
    assert {pair.label for pair in drawn["consistent"]} == {"consistent"}


def test_knowledge_is_text_of_the_articles(drawn: dict[str, list[ConsistencyPair]]) -> None:
    for kind in ("consistent", "answer", "response", "addition", "random", "unsupported"):
        for pair in drawn[kind]:
            bare = pair.knowledge.removeprefix("Elvis Presley ").removeprefix("Amazon River ").strip()
            assert bare in TEXT or pair.knowledge in TEXT


def test_a_consistent_response_says_no_more_than_its_knowledge_or_a_question(
    drawn: dict[str, list[ConsistencyPair]],
) -> None:
    asked = {word for asked in QUESTIONS.values() for question, _ in asked for word in word_set(question)}
    pronouns = {"it", "he", "was", "i", "think", "acted", "moved", "discovered", "flows", "directed"}
    for pair in drawn["consistent"]:
        assert word_set(pair.response) <= word_set(pair.knowledge) | asked | pronouns


def test_unsupported_knowledge_lacks_the_answer(squad: Squad, drawn: dict[str, list[ConsistencyPair]]) -> None:
    form = word_set("who what when where which in how many year are there did move act")
    # Of two sentences one may well be supported.
    single = [pair for pair in drawn["unsupported"] if ". " not in pair.response]
    stated = [
        (pair, question)
        for pair in single
        for question in squad.questions
        if question.answer in pair.response and word_set(question.text) - form <= word_set(pair.response)
    ]
    assert len(stated) > 20
    assert [(p.knowledge, p.response) for p, question in stated if question.answer in p.knowledge] == []


def test_another_answer_is_in_the_statement(squad: Squad, drawn: dict[str, list[ConsistencyPair]]) -> None:
    answers = {question.answer for question in squad.questions}
    for pair in drawn["answer"]:
        assert any(answer in pair.response for answer in answers)
    # The rival never is the answer to the question that the knowledge gives.
    assert not any("born in Tupelo" in pair.response for pair in drawn["answer"])


def test_an_addition_keeps_what_is_supported(drawn: dict[str, list[ConsistencyPair]]) -> None:
    for pair in drawn["addition"]:
        assert not word_set(pair.response) <= word_set(pair.knowledge)


def test_negation_changes_one_side_only(drawn: dict[str, list[ConsistencyPair]]) -> None:
    for pair in drawn["negation"]:
        changed = pair.response + " " + pair.knowledge
        assert " not " in changed or "n't" in changed or "can be reached" in changed


def test_inference_pairs_are_mapped(drawn: dict[str, list[ConsistencyPair]]) -> None:
    expected = {(h, "consistent" if label == "entailment" else "inconsistent") for _, h, label in INFERENCE}
    assert {(pair.response, pair.label) for pair in drawn["inference"]} == expected


def test_chat_facts_rest_on_one_another(drawn: dict[str, list[ConsistencyPair]]) -> None:
    labels = {True: set(), False: set()}
    for pair in drawn["chat"]:
        labels[pair.response in pair.knowledge].add(pair.label)
    assert labels == {True: {"consistent"}, False: {"inconsistent"}}
    assert not any("held out" in pair.knowledge + pair.response for pair in drawn["chat"])


def test_the_style_is_the_same_for_both_labels(squad: Squad) -> None:
    source = ConsistencyPairs(squad, [], [], ChatStyle(["Lovely weather today."]))
    has_aside: dict[str, list[bool]] = defaultdict(list)
    for seed in range(4000):
        pair = source.draw(random.Random(seed))
        has_aside[pair.label].append("Lovely weather" in pair.response)
    shares = [sum(flags) / len(flags) for flags in has_aside.values()]
    # Before or after: 0.32 of all; 0.05 is three standard errors of the difference.
    assert len(shares) == 2
    assert abs(shares[0] - shares[1]) < 0.05
    assert min(shares) > 0.25


def test_pairs_are_a_function_of_the_random_source(sets: Path, squad: Squad) -> None:
    source = ConsistencyPairs.read(sets, squad, ChatStyle(["Hm."]))
    assert source.draw(random.Random(5)) == source.draw(random.Random(5))


def test_one_article_cannot_be_corrupted_at_random() -> None:
    source = ConsistencyPairs(Squad(("He sat in it alone.",), (((0, 19),),), ("A",), {"A": (0,)}, ()), [], [], PLAIN)

    def draw_many() -> None:
        for seed in range(20):
            source.draw(random.Random(seed))

    with pytest.raises(ValueError, match="All articles say the same"):
        draw_many()


@pytest.mark.parametrize(
    ("sentence", "around", "expected"),
    [
        (
            "Elvis Presley (1935) was a singer from Tupelo, but his songs are known everywhere.",
            "he sang",
            {
                "Elvis Presley (1935) was a singer from Tupelo, but his songs are known everywhere.",
                "Elvis Presley was a singer from Tupelo, but his songs are known everywhere.",
                "Elvis Presley (1935) was a singer from Tupelo.",
                "Elvis Presley was a singer from Tupelo.",
                "he was a singer from Tupelo, but his songs are known everywhere.",
                "he was a singer from Tupelo.",
            },
        ),
        ("In 1935, it was sold to Ed.", "", {"In 1935, it was sold to Ed.", "it was sold to Ed."}),
        # Less than four words would be left without the aside.
        ("Elvis was (very) old.", "", {"Elvis was (very) old.", "it was (very) old."}),
    ],
)
def test_shortened(sentence: str, around: str, expected: set[str]) -> None:
    assert {shorten_sentence(sentence, around, random.Random(seed)) for seed in range(300)} == expected


def test_sentences_wear_their_labels(sets: Path, squad: Squad) -> None:
    source = VerifiabilitySentences.read(sets, squad)
    assert "The Iowa locker room for visiting teams is painted pink." in source.verifiable
    assert "You should watch the next game." in source.non_verifiable
    labels: dict[str, list[str]] = defaultdict(list)
    for seed in range(1000):
        text, label = source.draw(random.Random(seed))
        labels[label].append(text)
    assert set(labels) == set(VERIFIABILITY)
    assert 440 < len(labels["verifiable"]) < 560
    # Every verifiable sentence has something of a source that states facts.
    facts = [*(word_set(fact) for fact in source.verifiable), word_set(TEXT)]
    assert all(any(len(word_set(text) & fact) > 2 for fact in facts) for text in labels["verifiable"])
    assert not any("1932" in text for text in labels["non-verifiable"])


def test_held_out_dialogues_are_not_read(sets: Path) -> None:
    assert len(list(read_topical_chat(sets / "topical_chat.jsonl.gz"))) == 1
    assert len(list(read_topical_chat(sets / "topical_chat.jsonl.gz", held_out=""))) == 2
    assert "I like my bakery." in list(read_chat_sentences(sets))
    assert not any("held out" in sentence for sentence in read_chat_sentences(sets))


def test_sentences_need_both_labels(squad: Squad) -> None:
    with pytest.raises(ValueError, match="no verifiable"):
        VerifiabilitySentences(squad, ["Hello!"], ["Why?"])

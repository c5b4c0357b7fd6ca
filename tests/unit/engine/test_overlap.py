"""Word overlap: worked out by hand, against the authors' way, and on any text."""

from __future__ import annotations

import string
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from groundwire.engine import Engine, OverlapExplanation, Score
from groundwire.engine.metrics.overlap import split_words
from groundwire.engine.text.words import words
from groundwire.runtime.fake import FakeRuntime
from tests.reference import overlap as reference
from tests.support.texts import sentences

NAMES = ("overlap", "overlap_precision", "unigram_f1")
SENTENCES = list(sentences())
RESPONSE = "Bob Ross hosted the Joy of Cooking in 1983!"
KNOWLEDGE = "The Joy of Painting was hosted by Bob Ross; Ross painted in 1994."


def score(response: str, *knowledge: str, metrics: tuple[str, ...] = NAMES) -> Score:
    with Engine(FakeRuntime({})) as engine:
        return engine.score(response, knowledge, metrics=metrics)


def explained(found: Score, name: str = "overlap") -> OverlapExplanation:
    explanation = found.metrics[name].explanation
    assert isinstance(explanation, OverlapExplanation)
    return explanation


def test_values_worked_out_by_hand() -> None:
    """Content words: bob ross hosted joy cooking 1983 / joy painting hosted bob ross ross painted 1994."""
    found = score(RESPONSE, KNOWLEDGE).metrics
    assert found["overlap_precision"].value == pytest.approx(4 / 6)
    assert found["overlap"].value == pytest.approx(2 * 4 / (6 + 8))
    # bob ross hosted joy of cooking in 1983 / joy of painting was hosted by bob ross ross painted in 1994
    assert found["unigram_f1"].value == pytest.approx(2 * 6 / (8 + 12))
    assert all(result.unsupported == () for result in found.values())


def test_the_explanation_names_every_content_word_and_what_the_knowledge_lacks() -> None:
    found = explained(score(RESPONSE, KNOWLEDGE))
    assert [(word.text, word.in_knowledge) for word in found.words] == [
        ("Bob", True), ("Ross", True), ("hosted", True), ("Joy", True), ("Cooking", False), ("1983", False),
    ]  # fmt: skip
    assert [(span.text, span.start, span.end) for span in found.unsupported] == [("Cooking", 27, 34), ("1983", 38, 42)]
    assert {(span.reason, span.metric) for span in found.unsupported} == {("not_in_knowledge", "overlap")}
    assert (found.precision, found.f1) == (pytest.approx(4 / 6), pytest.approx(8 / 14))


def test_a_repeated_word_counts_as_often_as_the_knowledge_has_it() -> None:
    """The F1 is of bags; the precision asks of every word alone whether it is there."""
    found = score("pizza pizza pizza", "pizza cheese").metrics
    assert found["overlap"].value == pytest.approx(2 * 1 / (3 + 2))
    assert found["overlap_precision"].value == 1.0


def test_passages_count_as_one_text() -> None:
    halves = KNOWLEDGE.split(";")
    assert score(RESPONSE, *halves).metrics == score(RESPONSE, " ".join(halves)).metrics
    assert score(RESPONSE, *halves).value != score(RESPONSE, halves[0]).value


@pytest.mark.parametrize("response", ["It is what it is.", "... !?", "the"])
def test_without_content_words_there_is_nothing_to_verify(response: str) -> None:
    found = score(response, KNOWLEDGE, metrics=("overlap", "overlap_precision")).metrics
    for result in found.values():
        assert (result.status, result.value) == ("nothing_to_verify", None)
        assert "content words" in result.message


def test_unigram_f1_counts_stop_words_but_needs_a_word() -> None:
    assert score("it is", "it was", metrics=("unigram_f1",)).value == 0.5
    nothing = score("The a... AN!", KNOWLEDGE, metrics=("unigram_f1",))
    assert (nothing.status, nothing.value) == ("nothing_to_verify", None)


def test_knowledge_without_content_words_supports_nothing() -> None:
    found = score(RESPONSE, "it is what it is")
    assert [result.value for result in found.metrics.values()] == [0.0, 0.0, 0.0]
    assert len(explained(found).unsupported) == 6


@pytest.mark.parametrize(("i", "j"), [(i, (i * 7 + 3) % len(SENTENCES)) for i in range(len(SENTENCES))])
def test_the_f1_is_that_of_the_generations(i: int, j: int) -> None:
    response, knowledge = SENTENCES[i], SENTENCES[j]
    assert score(response, knowledge, metrics=("overlap",)).value == pytest.approx(
        reference.overlap(response, knowledge)
    )


def test_where_the_f1_is_not_that_of_the_generations() -> None:
    """Lower-cased first, "Dr." falls apart; and their code takes a run of blanks for a word."""
    assert score("Dr. Dre", "Dr. Dre", metrics=("overlap",)).value == 1.0
    assert reference.overlap("Dr. Dre", "Dr. Dre") < 1.0
    assert score("pizza  here", "cheese  there", metrics=("overlap",)).value == 0.0
    assert reference.overlap("pizza  here", "cheese  there") > 0.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The well-known painter's show.", ["well", "known", "painter", "s", "show"]),
        ("A THE an theory", ["theory"]),
        ("it’s a-b", ["it’s", "b"]),  # a curly quotation mark is no ASCII punctuation
        ("  \t¿qué?  ", ["¿qué"]),
        ("!?", []),
    ],
)
def test_normalized_words(text: str, expected: list[str]) -> None:
    assert split_words(text) == expected


TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=60)


@given(TEXTS)
def test_words_are_pieces_of_the_text_in_order(text: str) -> None:
    found = words(text)
    at = 0
    for word in found:
        assert at <= word.start < word.end
        assert word.text == text[word.start : word.end]
        assert not word.text.isspace()
        assert word.lower == word.text.lower()
        assert not text[at : word.start].strip()
        at = word.end
    assert not text[at:].strip()


@given(TEXTS, TEXTS)
def test_scores_of_any_text(response: str, knowledge: str) -> None:
    assume(response.strip() and knowledge.strip())
    scored, back = score(response, knowledge), score(knowledge, response)
    there = scored.metrics
    assert all(result.status in ("scored", "nothing_to_verify") for result in there.values())
    for name in ("overlap", "unigram_f1"):
        value, other = there[name].value, back.metrics[name].value
        if value is not None and other is not None:
            assert 0 <= value <= 1
            assert value == pytest.approx(other), "an F1 does not know which text is which"
    if there["overlap_precision"].value is not None:
        found = explained(scored, "overlap_precision")
        assert there["overlap_precision"].value == found.precision
        assert len(found.unsupported) == sum(not word.in_knowledge for word in found.words)
        assert all(word.text == response[word.start : word.end] for word in found.words)


@given(TEXTS)
def test_a_text_that_supports_itself(text: str) -> None:
    assume(text.strip())
    assert score(text, f"{text} {text}").metrics["overlap_precision"].value in (None, 1.0)
    for result in score(text, text).metrics.values():
        assert result.value in (None, pytest.approx(1.0))


def test_the_punctuation_is_that_of_ascii() -> None:
    assert split_words(string.punctuation) == []


def test_threads_share_the_tokenizer() -> None:
    alone = [words(sentence) for sentence in SENTENCES]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(words, SENTENCES * 8)) == alone * 8


def test_the_tokenizer_does_not_keep_the_words_it_has_seen() -> None:
    from groundwire.engine.text.words import _tokenizer

    words("warm")
    before = len(_tokenizer().vocab.strings)
    for index in range(200):
        words(f"word{index} other{index}")
    assert len(_tokenizer().vocab.strings) <= before + 4

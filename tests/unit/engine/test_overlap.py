"""Word overlap: against values computed by hand, against the authors' code, and on any text."""

from __future__ import annotations

import string
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from groundwire.engine import Engine, MetricResult, Options, Score
from groundwire.engine.metrics import METRICS, overlap
from groundwire.engine.metrics.overlap import split_words
from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.schema.explanations import OverlapExplanation
from groundwire.engine.text.words import words
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import RoleInfo
from groundwire.runtime.texts import linear_tokenizer
from groundwire.runtime.texts.unread import is_blank
from tests.reference import overlap as reference
from tests.support.texts import sentences

NAMES = ("overlap", "overlap_precision", "unigram_f1")
SENTENCES = list(sentences())
RESPONSE = "Bob Ross hosted the Joy of Cooking in 1983!"
KNOWLEDGE = "The Joy of Painting was hosted by Bob Ross; Ross painted in 1994."


def score(response: str, *knowledge: str, metrics: tuple[str, ...] = NAMES) -> Score:
    with Engine(FakeRuntime({})) as engine:
        return engine.score(response, knowledge, metrics=metrics)


def get_explanation(score: Score, name: str = "overlap") -> OverlapExplanation:
    explanation = score.metrics[name].explanation
    assert isinstance(explanation, OverlapExplanation)
    return explanation


def test_values_equal_those_computed_by_hand() -> None:
    """Content words: bob ross hosted joy cooking 1983 / joy painting hosted bob ross ross painted 1994."""
    results = score(RESPONSE, KNOWLEDGE).metrics
    assert results["overlap_precision"].value == pytest.approx(4 / 6)
    assert results["overlap"].value == pytest.approx(2 * 4 / (6 + 8))
    # bob ross hosted joy of cooking in 1983 / joy of painting was hosted by bob ross ross painted in 1994
    assert results["unigram_f1"].value == pytest.approx(2 * 6 / (8 + 12))
    assert all(result.unsupported == () for result in results.values())


def test_the_explanation_names_every_content_word_and_those_missing_from_the_knowledge() -> None:
    explanation = get_explanation(score(RESPONSE, KNOWLEDGE))
    assert [(word.text, word.in_knowledge) for word in explanation.words] == [
        ("Bob", True), ("Ross", True), ("hosted", True), ("Joy", True), ("Cooking", False), ("1983", False),
    ]  # fmt: skip
    assert [(span.text, span.start, span.end) for span in explanation.unsupported] == [
        ("Cooking", 27, 34),
        ("1983", 38, 42),
    ]
    assert {(span.reason, span.metric) for span in explanation.unsupported} == {("not_in_knowledge", "overlap")}
    assert (explanation.precision, explanation.f1) == (pytest.approx(4 / 6), pytest.approx(8 / 14))


def test_texts_with_too_many_words_are_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "MAX_WORDS", 8)
    assert score("Bob, a painter", "Bob painted.", "!").metrics["overlap"].status == "scored"
    results = score("Bob, a painter", "Bob painted.", "((").metrics
    assert [results[name].status for name in NAMES] == ["truncated", "truncated", "scored"]
    assert "up to 8 words and punctuation marks; response and knowledge have 9" in results["overlap"].message


def test_f1_counts_a_repeated_word_as_often_as_the_knowledge_has_it() -> None:
    """F1 compares multisets of words; precision checks for each word whether the knowledge has it at all."""
    results = score("pizza pizza pizza", "pizza cheese").metrics
    assert results["overlap"].value == pytest.approx(2 * 1 / (3 + 2))
    assert results["overlap_precision"].value == 1.0


def test_passages_count_as_one_text() -> None:
    halves = KNOWLEDGE.split(";")
    assert score(RESPONSE, *halves).metrics == score(RESPONSE, " ".join(halves)).metrics
    assert score(RESPONSE, *halves).value != score(RESPONSE, halves[0]).value


@pytest.mark.parametrize("response", ["It is what it is.", "... !?", "the"])
def test_without_content_words_there_is_nothing_to_verify(response: str) -> None:
    results = score(response, KNOWLEDGE, metrics=("overlap", "overlap_precision")).metrics
    for result in results.values():
        assert (result.status, result.value) == ("nothing_to_verify", None)
        assert "content words" in result.message


def test_unigram_f1_counts_stop_words_but_needs_at_least_one_word() -> None:
    assert score("it is", "it was", metrics=("unigram_f1",)).value == 0.5
    nothing = score("The a... AN!", KNOWLEDGE, metrics=("unigram_f1",))
    assert (nothing.status, nothing.value) == ("nothing_to_verify", None)


def test_knowledge_without_content_words_supports_nothing() -> None:
    scored = score(RESPONSE, "it is what it is")
    assert [result.value for result in scored.metrics.values()] == [0.0, 0.0, 0.0]
    assert len(get_explanation(scored).unsupported) == 6


@pytest.mark.parametrize(("i", "j"), [(i, (i * 7 + 3) % len(SENTENCES)) for i in range(len(SENTENCES))])
def test_f1_equals_that_of_the_authors_code(i: int, j: int) -> None:
    response, knowledge = SENTENCES[i], SENTENCES[j]
    assert score(response, knowledge, metrics=("overlap",)).value == pytest.approx(
        reference.overlap(response, knowledge)
    )


def test_f1_differs_from_the_authors_code_on_abbreviations_and_repeated_spaces() -> None:
    """Their code lower-cases first, which splits "Dr." in two, and counts a run of spaces as a word."""
    assert score("Dr. Dre", "Dr. Dre", metrics=("overlap",)).value == 1.0
    assert reference.overlap("Dr. Dre", "Dr. Dre") < 1.0
    assert score("pizza  here", "cheese  there", metrics=("overlap",)).value == 0.0
    assert reference.overlap("pizza  here", "cheese  there") > 0.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The well-known painter's show.", ["well", "known", "painter", "s", "show"]),
        ("A THE an theory", ["theory"]),
        ("it’s a-b", ["it’s", "b"]),  # A curly quotation mark is not ASCII punctuation.
        ("  \t¿qué?  ", ["¿qué"]),
        ("!?", []),
    ],
)
def test_words_are_normalized(text: str, expected: list[str]) -> None:
    assert split_words(text) == expected


TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=60)


@given(TEXTS)
def test_words_are_substrings_of_the_text_in_order(text: str) -> None:
    at = 0
    for word in words(text):
        assert at <= word.start < word.end
        assert word.text == text[word.start : word.end]
        assert not word.text.isspace()
        assert word.lower == word.text.lower()
        assert not text[at : word.start].strip()
        at = word.end
    assert not text[at:].strip()


@given(TEXTS, TEXTS)
def test_scores_of_any_text_are_in_range_and_f1_is_symmetric(response: str, knowledge: str) -> None:
    assume(not is_blank(response) and not is_blank(knowledge))
    scored, reverse = score(response, knowledge), score(knowledge, response)
    results = scored.metrics
    assert all(result.status in ("scored", "nothing_to_verify") for result in results.values())
    for name in ("overlap", "unigram_f1"):
        value, other = results[name].value, reverse.metrics[name].value
        if value is not None and other is not None:
            assert 0 <= value <= 1
            assert value == pytest.approx(other), "F1 does not depend on which text is the response"
    if results["overlap_precision"].value is not None:
        explanation = get_explanation(scored, "overlap_precision")
        assert results["overlap_precision"].value == explanation.precision
        assert len(explanation.unsupported) == sum(not word.in_knowledge for word in explanation.words)
        assert all(word.text == response[word.start : word.end] for word in explanation.words)


@given(TEXTS)
def test_a_text_supports_itself(text: str) -> None:
    assume(not is_blank(text))
    assert score(text, f"{text} {text}").metrics["overlap_precision"].value in (None, 1.0)
    for result in score(text, text).metrics.values():
        assert result.value in (None, pytest.approx(1.0))


def test_ascii_punctuation_is_not_a_word() -> None:
    assert split_words(string.punctuation) == []


def test_threads_share_the_tokenizer() -> None:
    expected = [words(sentence) for sentence in SENTENCES]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(words, SENTENCES * 8)) == expected * 8


def test_the_tokenizer_does_not_keep_the_words_it_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from groundwire.engine.text.words import _tokenizer

    monkeypatch.setattr(linear_tokenizer, "ZONE_CHARACTERS", 500)
    words("warm " * 200)
    strings = _tokenizer()[1]._tokenizer.vocab.strings
    before = len(strings)
    for index in range(200):
        words(f"word{index} other{index}")
        assert len(strings) <= before + 300


@pytest.mark.parametrize("name", NAMES)
def test_long_knowledge_is_read_in_steps_between_which_a_request_may_be_stopped(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = (KNOWLEDGE * 400, KNOWLEDGE, SENTENCES[0] * 300)
    monkeypatch.setattr(overlap, "WORDS_AT_ONCE", 1_000)

    def count_rounds(*knowledge: str) -> tuple[int, MetricResult]:
        steps = METRICS[name].compute(ReadRequest(RESPONSE, knowledge), Options(), lambda role: RoleInfo())
        rounds = 0
        while True:
            try:
                assert steps.send(None if not rounds else []) == []
            except StopIteration as end:
                return rounds, end.value
            rounds += 1

    rounds, result = count_rounds(*passages)
    assert rounds >= 5
    assert count_rounds(KNOWLEDGE)[0] == 0
    ours, theirs = (
        [
            split_words(text) if name == "unigram_f1" else [word.lower for word in words(text) if word.content]
            for text in texts
        ]
        for texts in ((RESPONSE,), passages)
    )
    known = [word for of_passage in theirs for word in of_passage]
    if name == "overlap_precision":
        assert result.value == pytest.approx(sum(word in known for word in ours[0]) / len(ours[0]))
    else:
        assert result.value == pytest.approx(overlap.bag_f1(ours[0], known))

"""What answers cite themselves: marks, the passages that they name, and the sentences that they cite for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine, Score
from groundwire.engine.schema.explanations import CitationsExplanation, CitedSentence
from groundwire.engine.text.citation_marks import divide_statements, find_citation_marks, find_title
from groundwire.engine.text.sentences import sentences
from groundwire.runtime.fake import FakeRuntime
from tests.support.citing import ROLES

LOANS = "# Lending\nThe museum lends works to schools."
BAR = "Bar: The bar closes at midnight. https://museum.example/bar"
HONEY = "Honey keeps for years."


def find(text: str, *passages: str) -> list[tuple[str, tuple[int | None, ...]]]:
    marks, _ = find_citation_marks(text, passages or (LOANS, BAR, HONEY))
    return [(text[mark.start : mark.end], mark.passages) for mark in marks]


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("It lends works [1].", [("[1]", (0,))]),
        ("It lends works [1, 3].", [("[1, 3]", (0, 2))]),
        ("It lends works [1-3].", [("[1-3]", (0, 1, 2))]),
        ("It lends works [1][2].", [("[1]", (0,)), ("[2]", (1,))]),
        ("It lends works 【2†source】.", [("【2†source】", (1,))]),
        ("It lends works [doc 2].", [("[doc 2]", (1,))]),
        ("It lends works (source 3).", [("(source 3)", (2,))]),
        ("It lends works.¹ The bar.²", [("¹", (0,)), ("²", (1,))]),
        ("It lends works (source: Lending).", [("(source: Lending)", (0,))]),
        ("It lends works (see Lending).", [("(see Lending)", (0,))]),
        ("It lends works (source: Annual report).", [("(source: Annual report)", (None,))]),
        ("It closes [late](https://museum.example/bar/).", [("[late](https://museum.example/bar/)", (1,))]),
        ("It closes late https://museum.example/bar.", [("https://museum.example/bar", (1,))]),
        ("It closes late https://other.example.", [("https://other.example", (None,))]),
        ("It lends works [7].", [("[7]", (None,))]),
        ("It lends works [^1].\n\n[^1]: Bar", [("[^1]", (1,))]),
        ("It lends works [1].\n\nSources:\n[1] Bar\n[2] Lending", [("[1]", (1,))]),
        ("It lends works.¹⁰", [("¹⁰", (None,))]),
        ("It lends works [1–2; 3].", [("[1–2; 3]", (0, 1, 2))]),
        # No citations:
        ("Call [555-123-456] or [1-2-3].", []),
        (f"It lends works.{'¹' * 4_301} The rest{'²' * 4_301}", []),
        (f"It lends works.\n\n{'¹' * 4_301} Bar", []),
        ("It is 5 m² and CO₂ is in `list[1]`.", []),
        ("It lends works (see you soon).", []),
        ("- [x] done, [ ] open", []),
    ],
)
def test_marks_name_passages(text: str, cited: list[tuple[str, tuple[int | None, ...]]]) -> None:
    assert find(text) == cited


def test_passages_may_have_numbers_of_their_own() -> None:
    assert find("It keeps [7], it closes [4].", "[4] The bar closes.", "[7] Honey keeps.") == [
        ("[7]", (1,)),
        ("[4]", (0,)),
    ]


def test_a_link_is_no_citation_where_no_passage_has_an_address() -> None:
    assert find("See https://museum.example.", LOANS, HONEY) == []


@pytest.mark.parametrize(
    ("passage", "title"),
    [
        ("# Opening hours\nThe bar closes at one.", "Opening hours"),
        ("Title: Opening hours\nThe bar closes at one.", "Opening hours"),
        ("[3] Opening hours\nThe bar closes at one.", "Opening hours"),
        ("The lease, section 4: No pets.", "The lease, section 4"),
        ("The bar closes at one.", ""),
        ("The bar closes at one.\nIt opens at nine.", ""),
        ("Anna: Hello.\nBen: Good morning.", ""),
    ],
)
def test_a_passage_has_a_title(passage: str, title: str) -> None:
    assert find_title(passage) == title


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It lends works [1]. The bar closes [2].", [("It lends works", 1), ("The bar closes", 1)]),
        ("It lends works. [1] The bar closes. [2]", [("It lends works.", 1), ("The bar closes.", 1)]),
        ("It lends works.[1][2] The bar closes.", [("It lends works.", 2), ("The bar closes.", 0)]),
        ("It lends works. [1] says so.", [("It lends works.", 0), ("says so.", 1)]),
        ("It lends works.[1]\n\nSources:\n[1] Lending", [("It lends works.", 1)]),
        ("It [lends works](https://museum.example/bar).", [("lends works", 1)]),
    ],
)
def test_a_mark_after_a_full_stop_cites_for_the_sentence_before_it(text: str, expected: list[tuple[str, int]]) -> None:
    marks, end = find_citation_marks(text, (LOANS, BAR))
    divided = divide_statements(text, sentences(text), marks, end)
    assert len(divided) == len(expected)
    for statement, (part, count) in zip(divided, expected, strict=True):
        assert part in statement.sentence.text
        assert len(statement.marks) == count
        assert len(statement.sentence.text) == statement.sentence.end - statement.sentence.start


@given(st.text(alphabet="aB .[]12()^:\n¹⁰-–,”http/s", max_size=60))
def test_odd_answers_are_divided_without_loss(text: str) -> None:
    marks, end = find_citation_marks(text, ("[1] a", "b"))
    divided = divide_statements(text, sentences(text), marks, end)
    assert sum(len(statement.marks) for statement in divided) <= len(marks)
    for statement in divided:
        assert statement.sentence.text.strip() == statement.sentence.text


def cite(response: str) -> tuple[Score, CitationsExplanation]:
    with Engine(FakeRuntime(ROLES)) as engine:
        result = engine.score(response, (LOANS, BAR, HONEY), metrics=["citations"])
    explanation = result.metrics["citations"].explanation
    assert isinstance(explanation, CitationsExplanation)
    return result, explanation


def list_outcomes(cited: tuple[CitedSentence, ...]) -> list[tuple[str, int | None, str]]:
    return [(item.text, item.passage, item.outcome) for sentence in cited for item in sentence.items]


def test_each_cited_item_supports_its_sentence_or_another_one_does_or_none() -> None:
    response = (
        "Honey keeps for years [3]. The bar closes at midnight [1]. The bar sells cats [2]. Honey keeps for years [9]."
    )
    result, explanation = cite(response)
    assert list_outcomes(explanation.sentences) == [
        ("[3]", 2, "supported"),
        ("[1]", 0, "other"),
        ("[2]", 1, "unsupported"),
        ("[9]", None, "no_item"),
    ]
    for sentence in explanation.sentences:
        for item in sentence.items:
            assert response[item.start : item.end] == item.text
    assert (explanation.citation_recall, explanation.citation_precision) == (1 / 4, 1 / 4)
    assert Score.from_json(result.to_json()) == result


def test_recall_counts_sentences_and_precision_counts_items() -> None:
    _, explanation = cite("Honey keeps for years [3][2]. The bar closes at midnight.")
    assert list_outcomes(explanation.sentences) == [("[3]", 2, "supported"), ("[2]", 1, "unsupported")]
    assert (explanation.citation_recall, explanation.citation_precision) == (1 / 2, 1 / 2)


def test_items_may_support_a_sentence_only_together() -> None:
    _, explanation = cite("Honey keeps and the bar closes at midnight [2][3].")
    (sentence,) = explanation.sentences
    assert sentence.joint_support is not None
    assert sentence.joint_support >= explanation.min_support
    assert list_outcomes(explanation.sentences) == [("[2]", 1, "supported"), ("[3]", 2, "supported")]
    assert explanation.citation_precision == 1


def test_an_answer_that_cites_nothing_has_no_recall_and_no_precision() -> None:
    _, explanation = cite("Honey keeps for years.")
    assert (explanation.citation_recall, explanation.citation_precision) == (None, None)

"""Quotations: exact, with a changed word, and with their speaker."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from groundwire.engine.schema.explanations import ValuesExplanation
from groundwire.engine.values.quotes import LEAST_WORDS, MAX_WORDS, find_quotations
from groundwire.engine.values.tokens import tokenize
from groundwire.runtime.fake import FakeRuntime

PLAN = 'The mayor called the plan "a chance for the harbour". The residents called it "a gift to the investors".'
ZIP, STORM = "Comfortable, but the zip broke", "It survived a heavy storm"
REVIEWS = [f'Kim: "{ZIP}."', f'Jo: "{STORM}."']


def list_quotations(response: str, *knowledge: str) -> list[tuple[str, str, str]]:
    with Engine(FakeRuntime({})) as engine:
        explanation = engine.score(response, knowledge, metrics=["values"]).metrics["values"].explanation
    if not isinstance(explanation, ValuesExplanation):
        return []
    return [
        (value.text, value.outcome, value.knowledge_says) for value in explanation.values if value.kind == "quotation"
    ]


@pytest.mark.parametrize(
    ("response", "knowledge", "expected"),
    [
        (
            'The mayor sees "a chance for the harbour".',
            [PLAN],
            [("a chance for the harbour", "supported", "a chance for the harbour")],
        ),
        # Signs and capitals do not count.
        ("He said: “It survived a heavy storm!”", REVIEWS, [(f"{STORM}!", "supported", STORM)]),
        # A changed word is marked alone.
        ('The mayor sees "a danger for the harbour".', [PLAN], [("danger", "contradicted", "chance")]),
        # What the knowledge does not have may be mentioned only, and so may a few words.
        ('Choose "Settings and more" in the menu.', [PLAN], []),
        ('It is "for the harbour".', [PLAN], []),
        # The speaker is what a quotation belongs to.
        (
            'In the words of the mayor, it is "a gift to the investors".',
            [PLAN],
            [("a gift to the investors", "contradicted", "a chance for the harbour")],
        ),
        ('Jo wrote: "Comfortable, but the zip broke."', REVIEWS, [(ZIP, "contradicted", STORM)]),
        ('Kim wrote: "Comfortable, but the zip broke."', REVIEWS, [(ZIP, "supported", ZIP)]),
    ],
)  # fmt: skip
def test_quotations_are_compared_word_by_word_and_with_their_speaker(
    response: str, knowledge: list[str], expected: list[tuple[str, str, str]]
) -> None:
    strip = [(text.rstrip(".!"), outcome, says.rstrip(".!")) for text, outcome, says in expected]
    assert [
        (text.rstrip(".!"), outcome, says.rstrip(".!")) for text, outcome, says in list_quotations(response, *knowledge)
    ] == strip


def test_a_mark_of_omission_divides_a_quotation() -> None:
    text = 'She said: "It is a chance … for the harbour and the town".'
    parts = find_quotations(text, tokenize(text))
    assert [text[value.start : value.end] for value in parts] == ["It is a chance", "for the harbour and the town"]


def test_quotations_have_a_few_words_at_least_and_some_at_most() -> None:
    for count, read in ((LEAST_WORDS - 1, 0), (LEAST_WORDS, 1), (MAX_WORDS, 1), (MAX_WORDS + 1, 0)):
        text = f'"{" ".join(["wordy"] * count)}"'
        assert len(find_quotations(text, tokenize(text))) == read


def test_a_quotation_of_a_frequent_word_is_looked_up_in_bounded_time() -> None:
    knowledge = "the end " * 5_000
    assert list_quotations('"the the the end of the"', knowledge) == []

"""Statements that a response quotes and calls false are read as denied."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from groundwire.engine.schema.explanations import ValuesExplanation
from groundwire.engine.text.reading import read_response
from groundwire.runtime.fake import FakeRuntime

DENIED = "It is not true that"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("The bar opens at 9.\nAnswer: False\n", [f"{DENIED} the bar opens at 9.", ""]),
        ("1. The bar is open. True or false?\n**Answer: false**", [f"{DENIED} the bar is open.", "True or false?", ""]),
        ("1. The bar is open. True or false?\n**Answer: true**", ["The bar is open.", "True or false?", ""]),
        ("True or false: Adults pay nothing. Answer: false.", [f"{DENIED} Adults pay nothing.", ""]),
        ("The bar opens at 9. False.", [f"{DENIED} the bar opens at 9.", ""]),
        ("It opens. Answer: false, it is shut.", [f"{DENIED} it opens.", "it is shut."]),
        ("Myth: Dogs may come in. Fact: they may not.", [f"{DENIED} Dogs may come in.", "Fact: they may not."]),
        ("**Myth #2:** Dogs may come in.", [f"{DENIED} Dogs may come in."]),
        ("Myths:\n- Dogs may come in.\n- Cats may not.", [f"{DENIED} Dogs may come in.", f"{DENIED} Cats may not."]),
        ("It's a common myth that dogs may come in.", [f"{DENIED} dogs may come in."]),
        ("It is wrong to say that the bar opens.", [f"{DENIED} the bar opens."]),
        ("Dogs may come in – false.", [f"{DENIED} Dogs may come in"]),
    ],
)
def test_a_statement_that_is_called_false_is_denied(response: str, expected: list[str]) -> None:
    assert ["" if reading.unread else reading.text for reading in read_response(response)] == expected


@pytest.mark.parametrize(
    "response",
    [
        "Is the bar open? False.",
        "False.",
        "That's false. It opens at 9.",
        "It is not true that the bar is open.",
        "The myth of Daphne is by Ovid.",
        "The setting is false by default.",
        "`strict`: false",
        "Is it true or false? It depends.",
    ],
)
def test_other_statements_are_read_as_they_are(response: str) -> None:
    assert all(reading.stance in ("", "code") for reading in read_response(response))


def test_words_are_located_in_the_statement() -> None:
    (reading,) = read_response("Myth: Dogs may come in.")
    start = reading.text.index("Dogs")
    assert reading.locate(start, start + 4) == (6, 10)
    assert (reading.start, reading.end) == (0, 23)


@pytest.mark.parametrize(
    ("response", "contradicted"),
    [("Entry costs 8 euros. Answer: false.", []), ("Entry costs 8 euros. Answer: true.", ["8 euros"])],
)
def test_values_of_a_denied_statement_need_no_support(response: str, contradicted: list[str]) -> None:
    with Engine(FakeRuntime({})) as engine:
        explanation = engine.score(response, ["Entry costs 5 euros."], metrics=["values"]).metrics["values"].explanation
    values = explanation.values if isinstance(explanation, ValuesExplanation) else ()
    assert [value.text for value in values if value.outcome == "contradicted"] == contradicted

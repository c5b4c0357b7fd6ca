"""Values that the knowledge has of something else."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from groundwire.engine.values.roles import MAX_CHARS, MAX_VALUES, belongs, find_exchanged
from groundwire.runtime.fake import FakeRuntime

HOURS = ["The kitchen closes at 21:30, the bar at 01:00."]
DOORS = ["Doors open at 18:30; the show begins at 20:00."]
CLINICS = ["Dr Singh heads the eye clinic.", "Dr Walsh heads the dental clinic."]
PROSE = (
    "Ann, who lives in Oslo, wrote a long book about Rome and its old walls for children, which Bob and Cy read "
    "together in the summer of a rainy year."
)
PLANS = ["Group A: course from 6 October, exam on 17 October.", "Group B: course from 13 October, exam on 24 October."]


@pytest.mark.parametrize(
    ("response", "knowledge", "history", "expected"),
    [
        ("The bar closes at 21:30.", HOURS, [], [("21:30", "01:00")]),
        ("The bar closes at 1 am.", HOURS, [], []),
        ("The doors open at 8 pm.", DOORS, [], [("8 pm", "18:30")]),
        ("They start at 8 pm.", DOORS, [], []),
        ("It is at 18:30.", DOORS, ["When is the show?"], [("18:30", "20:00")]),
        ("It is at 20:00.", DOORS, ["When is the show?"], []),
        ("In group B the exam is on 17 October.", PLANS, [], [("17 October", "24 October")]),
        ("Dr Singh runs the dental clinic.", CLINICS, [], [("Dr Singh", "Dr Walsh")]),
        # In prose two names are not the rows of a list.
        ("Ann wrote the book about Oslo.", [PROSE], [], []),
        # A value that the knowledge does not have is not exchanged, nor is one that has no rival.
        ("The bar closes at 23:00.", HOURS, [], []),
        ("The bar closes at 21:30.", ["The kitchen closes at 21:30."], [], []),
    ],
)  # fmt: skip
def test_exchanged_values_are_found(
    response: str, knowledge: list[str], history: list[str], expected: list[tuple[str, str]]
) -> None:
    exchanges = find_exchanged(response, knowledge, history)
    assert [
        (response[item.start : item.end], knowledge[item.passage][item.known_start : item.known_end])
        for item in exchanges
    ] == expected


def test_an_exchanged_value_is_contradicted() -> None:
    with Engine(FakeRuntime({})) as engine:
        wrong = engine.score("The bar closes at 21:30.", HOURS, metrics=["values"])
        right = engine.score("The kitchen closes at 21:30.", HOURS, metrics=["values"])
    (span,) = wrong.unsupported
    assert (span.text, span.reason, span.knowledge_says) == ("21:30", "mismatch", "01:00")
    assert (right.unsupported, right.value) == ((), 1.0)


def test_a_value_belongs_to_what_its_clause_is_about() -> None:
    response = "The bar closes at 23:00."
    where = (response.index("23:00"), response.index("23:00") + 5)
    assert [belongs(response, where, HOURS, 0, (at, at + 5)) for at in (22, 40)] == [False, True]


def test_in_long_knowledge_nothing_is_distinguished() -> None:
    many = HOURS + [f"Room {number} has {number} chairs." for number in range(2, 2 * MAX_VALUES)]
    assert find_exchanged("The bar closes at 21:30.", many) == []
    assert find_exchanged("The bar closes at 21:30.", [*HOURS, "It is so. " * MAX_CHARS]) == []

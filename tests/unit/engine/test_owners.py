"""Whose value is it: rows, objects, lists, headings and clauses."""

from __future__ import annotations

import pytest

from groundwire.engine.values.knowledge import ValueText
from groundwire.engine.values.owners import Owners
from groundwire.engine.values.tokens import tokenize

FARES = "| Fare | Price |\n|---|---|\n| Basic | €39 |\n| Standard | €59 |"
STOCK = '[{"name": "Kettle", "price": 34.90, "stock": 12}, {"name": "Toaster", "price": 49.50, "stock": 3}]'
POOL = "The pool is open from 7:00 to 21:00, the sauna from 10:00 to 22:00."
FEES = "Members pay 5 euros for the workshop and 12 euros for the concert. Guests pay 9 euros for the workshop."
BOOKS = "Lind wrote The Salt Road (312 pages) and Grey Harbour (276 pages)."
TRAINS = "## Monday\n- 09:40 to Faro\n\n## Tuesday\n- 07:50 to Porto\n- 10:05 to Faro"


def find_own(response: str, knowledge: str, asked: str = "") -> list[bool]:
    """Whether each value of a response belongs to its subject in the knowledge."""
    text, owners = ValueText(response), Owners([ValueText(knowledge)])
    return [bool(owners.find(value, text.tokens, tokenize(asked))[0]) for value in text.amounts[0]]


@pytest.mark.parametrize(
    ("response", "knowledge", "asked", "own"),
    [
        ("Standard costs €59.", FARES, "", [True]),
        ("Standard costs €39.", FARES, "", [False]),
        ("It costs €59.", FARES, "What is the Standard fare?", [True]),
        ("It costs €39.", FARES, "What is the Standard fare?", [False]),
        ("There are 3 toasters in stock.", STOCK, "", [True]),
        ("There are 12 toasters in stock.", STOCK, "", [False]),
        ("The sauna opens at 10:00.", POOL, "", [True]),
        ("The sauna opens at 7:00.", POOL, "", [False]),
        ("The sauna is open until 22:00.", POOL, "", [True]),
        ("Guests pay 9 euros for the workshop.", FEES, "", [True]),
        ("Guests pay 5 euros for the workshop.", FEES, "", [False]),
        ("For members the concert is 12 euros.", FEES, "", [True]),
        ("Grey Harbour has 276 pages.", BOOKS, "", [True]),
        ("Grey Harbour has 312 pages.", BOOKS, "", [False]),
        ("On Tuesday it leaves for Faro at 10:05.", TRAINS, "", [True, True]),
        ("On Tuesday it leaves for Faro at 09:40.", TRAINS, "", [True, False]),
        ("It costs €99.", FARES, "", [False]),
        ("Dogs pay €39.", FARES, "", [True]),
    ],
)
def test_a_value_belongs_to_the_words_about_it(response: str, knowledge: str, asked: str, own: list[bool]) -> None:
    assert find_own(response, knowledge, asked) == own


def test_values_without_words_are_found() -> None:
    assert find_own("7", "7\n8") == [True]
    assert Owners([ValueText("")]).values == []

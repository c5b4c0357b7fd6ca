"""Statements about two names: which are read, and which the knowledge contradicts with the names exchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine, ValuesExplanation
from groundwire.engine.values.normal_form import normalize
from groundwire.engine.values.records import Statement
from groundwire.engine.values.statements import _OPPOSITES, _VERBS
from groundwire.engine.values.support import check_values
from groundwire.runtime.fake import FakeRuntime

CHESS = "In 1997 the computer Deep Blue beat the world champion Garry Kasparov in a match of six games."
CUISINE = "During that time, French cuisine was heavily influenced by Italian cuisine."


def find_exchanged(response: str, *knowledge: str) -> list[tuple[str, str]]:
    """What the response says of two names the wrong way round, and what the knowledge says."""
    return [
        (response[check.value.start : check.value.end], knowledge[at.passage][at.start : at.end])
        for check in check_values(response, knowledge)
        if check.value.kind == "relation" and (at := check.evidence) is not None
    ]


@pytest.mark.parametrize(
    ("response", "knowledge", "wrong"),
    [
        ("In 1997 Kasparov beat the computer Deep Blue.", CHESS, "Kasparov beat the computer Deep Blue"),
        ("kasparov beat deep blue", CHESS, "kasparov beat deep blue"),
        ("Deep Blue was beaten by Kasparov!", CHESS, "Deep Blue was beaten by Kasparov"),
        ("Deep Blue lost a match to Kasparov.", CHESS, "Deep Blue lost a match to Kasparov"),
        (
            "in that time italian cuisine was influenced by french cuisine",
            CUISINE,
            "italian cuisine was influenced by french cuisine",
        ),
        ("GitHub bought Microsoft in 2018.", "GitHub was bought by Microsoft in 2018.", "GitHub bought Microsoft"),
        ("I think Spain is larger than France.", "France is larger than Spain.", "Spain is larger than France"),
        (
            "Spain isn't small. Spain is bigger than France.",
            "France is bigger than Spain.",
            "Spain is bigger than France",
        ),
        ("Jupiter is smaller than Saturn.", "Jupiter is larger than Saturn.", "Jupiter is smaller than Saturn"),
        (
            "Japan is less crowded than Canada.",
            "Japan is more crowded than Canada.",
            "Japan is less crowded than Canada",
        ),
    ],
)
def test_exchanged_names_are_contradicted(response: str, knowledge: str, wrong: str) -> None:
    assert [ours for ours, _ in find_exchanged(response, knowledge)] == [wrong]


@pytest.mark.parametrize(
    ("response", "knowledge"),
    [
        # The same in other words.
        ("Kasparov was beaten by Deep Blue.", CHESS),
        ("Kasparov lost to Deep Blue.", CHESS),
        ("Italian cuisine influenced French cuisine.", CUISINE),
        ("Spain is smaller than France.", "France is larger than Spain."),
        # Less, or something else, than the words.
        ("Did Kasparov beat Deep Blue?", CHESS),
        ("Kasparov almost beat Deep Blue.", CHESS),
        ("Kasparov did not beat Deep Blue.", CHESS),
        ("Kasparov's team beat Deep Blue.", CHESS),
        ("The teacher of Kasparov beat Deep Blue.", CHESS),
        ("Kasparov beat the makers of Deep Blue.", CHESS),
        ("Karpov and Kasparov beat Deep Blue.", CHESS),
        ("Italian cuisine was influenced by French fashion.", CUISINE),
        ("Kasparov met Deep Blue.", "Deep Blue met Kasparov."),
        ("Kasparov admired Deep Blue.", CHESS),
        # The knowledge says both.
        ("Nadal beat Federer.", "Federer beat Nadal in 2007. In 2008 Nadal beat Federer in Paris."),
        # Two sentences.
        ("It was Kasparov. Beat that, Deep Blue!", CHESS),
    ],
)
def test_nothing_is_said_of_what_is_right_or_not_read(response: str, knowledge: str) -> None:
    assert find_exchanged(response, knowledge) == []


def test_the_value_says_what_the_knowledge_says() -> None:
    with Engine(FakeRuntime({})) as engine:
        result = engine.score("Kasparov beat Deep Blue.", CHESS, metrics=["values"]).metrics["values"]
    assert isinstance(result.explanation, ValuesExplanation)
    (stated,) = [value for value in result.explanation.values if value.kind == "relation"]
    assert (stated.outcome, stated.normalized) == ("contradicted", "kasparov beat deep blue")
    assert stated.knowledge_says == "Deep Blue beat the world champion Garry Kasparov"
    assert [(span.text, span.reason) for span in result.unsupported] == [("Kasparov beat Deep Blue", "mismatch")]


VERBS = sorted({form for form in _VERBS if _VERBS[form] != "lose"})
NAMES = st.sampled_from(["Rome", "Carthage", "Ada Lovelace", "Charles Babbage", "New York", "Sparta"])


@given(st.sampled_from(VERBS), NAMES, NAMES)
def test_every_verb_is_contradicted_the_other_way_round_and_by_nothing_else(verb: str, left: str, right: str) -> None:
    text, exchanged = f"In the end {left} {verb} {right}.", f"In the end {right} {verb} {left}."
    assert find_exchanged(text, text) == []
    assert [ours for ours, _ in find_exchanged(text, exchanged)] == (
        [] if left == right else [f"{left} {verb} {right}"]
    )


@given(st.sampled_from(sorted(_OPPOSITES.items())), NAMES, NAMES)
def test_opposite_comparisons_exchange_the_sides(pair: tuple[str, str], left: str, right: str) -> None:
    first, second = (f"In fact {left} is {word} than {right}." for word in pair)
    expected = [] if left == right else [f"{left} is {pair[0]} than {right}"]
    assert [ours for ours, _ in find_exchanged(first, second)] == expected
    assert find_exchanged(first, f"In fact {right} is {pair[1]} than {left}.") == []


def test_a_statement_has_a_normal_form() -> None:
    assert normalize(Statement(("ada",), "more famous", ("bob", "ross"))) == "ada more famous bob ross"

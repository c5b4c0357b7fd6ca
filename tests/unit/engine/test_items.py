"""Lines of a key and its values, and rows of tables."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from groundwire.engine.values.items import MAX_CHARS, MAX_TABLE_CHARS, find_misplaced
from groundwire.runtime.fake import FakeRuntime

HOURS = ["Opening hours\n\nMonday: 9–17\nTuesday: 10–18\nSat: 10–13"]
TABLE = ["| Ticket | Price | Valid |\n|---|---|---|\n| Adult | £15 | 2 days |\n| Child | £8 | 1 day |"]
ZONES = ["| Ticket | Zone A | Zone B |\n|---|---|---|\n| Adult | €3 | €5 |\n| Child | €1.50 | €2.50 |"]
ON_CALL = ["Monday: Vikram Rao\nTuesday: Leonie Amsel\nWednesday: Vikram Rao"]


@pytest.mark.parametrize(
    ("response", "knowledge", "expected"),
    [
        ("- **Monday:** 9–17\n- **Tuesday:** 10–18", HOURS, []),
        ("- **Monday:** 9–17\n- **Tuesday:** 9–17", HOURS, [("9", "10"), ("17", "18")]),
        ("* Monday: 9 am to 6 pm", HOURS, [("6 pm", "17")]),
        # Keys are compared by their words, days also by their abbreviations.
        ("Saturday: 10–17", HOURS, [("17", "13")]),
        ("Sunday: 10–17", HOURS, []),
        ("Mondays and Tuesdays: 10–18", HOURS, []),
        # Rows of tables, and lines of what is a table in the knowledge.
        ("| Adult | £8 |", TABLE, [("£8", "£15")]),
        ("| Adult | £15 |\n| Child | £8 |", TABLE, []),
        ("- Child: £15, valid for 1 day", TABLE, [("£15", "£8")]),
        # A sentence, or a table, that names a row and a column of a table.
        ("The adult ticket for zone B costs €3.", ZONES, [("€3", "€5")]),
        ("The adult ticket for zone B costs €5.", ZONES, []),
        ("A child pays €5 in zone B.", ZONES, [("€5", "€2.50")]),
        ("An adult pays €3 in zone A and €5 in zone B.", ZONES, []),
        ("In zone B an adult does not pay €3.", ZONES, []),
        ("In zone B an adult pays more than €3.", ZONES, []),
        ("| Ticket | Zone B | Zone A |\n|---|---|---|\n| Adult | €5 | €3 |", ZONES, []),
        ("| Ticket | Zone B | Zone A |\n|---|---|---|\n| Adult | €3 | €5 |", ZONES, [("€3", "€5"), ("€5", "€3")]),
        # Names.
        ("Monday: Vikram Rao\nTuesday: Vikram Rao", ON_CALL, [("Vikram Rao", "Leonie Amsel")]),
        ("Tuesday: Amsel", ON_CALL, []),
        # A value of another kind is not compared.
        ("Monday: £5", HOURS, []),
        ("Monday is from 10 to 18.", HOURS, []),
    ],
)
def test_a_value_is_compared_with_what_the_knowledge_has_for_its_key(
    response: str, knowledge: list[str], expected: list[tuple[str, str]]
) -> None:
    assert [
        (response[item.start : item.end], knowledge[item.passage][item.known_start : item.known_end])
        for item in find_misplaced(response, knowledge)
    ] == expected


def test_a_misplaced_value_is_contradicted() -> None:
    with Engine(FakeRuntime({})) as engine:
        spans = engine.score("- Adult: £8\n- Child: £8", TABLE, metrics=["values"]).unsupported
    assert [(span.text, span.reason, span.knowledge_says) for span in spans] == [("£8", "mismatch", "£15")]
    assert spans[0].start == len("- Adult: ")


def test_lines_of_long_knowledge_are_not_compared() -> None:
    assert list(find_misplaced("Sat: 10–17", [HOURS[0], "x" * MAX_CHARS])) == []


def test_cells_of_long_knowledge_are_not_compared() -> None:
    response = "The adult ticket for zone B costs €3."
    assert len(list(find_misplaced(response, [*ZONES, "x" * (MAX_TABLE_CHARS // 2)]))) == 1
    assert list(find_misplaced(response, [*ZONES, "x" * MAX_TABLE_CHARS])) == []

"""Computations that a response writes out: right, wrong, and what is no computation."""

from __future__ import annotations

import pytest

from groundwire.engine.values.equations import MAY_COMPUTE, read_equations
from groundwire.engine.values.support import check_values

KNOWLEDGE = "A pack has 12 batteries and costs 15 euros. Shipping costs 4 euros."


@pytest.mark.parametrize(
    ("text", "holds", "says"),
    [
        ("15 + 12 = 27", True, "15 + 12 = 27"),
        ("15 + 12 = 28", False, "15 + 12 = 27"),
        ("15 euros plus 4 euros shipping makes 21 euros.", False, "15 euros plus 4 euros shipping = 19"),
        ("It is 34 euros (2 × 15 + 4).", True, "2 × 15 + 4 = 34"),
        ("2 × €15 = €30", True, "2 × €15 = 30"),
        ("100 / 3 = 33.33", True, "100 / 3 = 33.3333"),
        ("1,200 + 300 = 1,400", False, "1,200 + 300 = 1500"),
        ("10 - 4 = 6, and so on", True, "10 - 4 = 6"),
        ("2 + 3 × 4 = 14", True, "2 + 3 × 4 = 14"),
        ("20 − 8 / 2 = 16", True, "20 − 8 / 2 = 16"),
    ],
)
def test_a_computation_is_right_or_wrong(text: str, holds: bool, says: str) -> None:
    (equation,) = read_equations(text)
    assert (equation.holds, equation.says) == (holds, says)
    assert MAY_COMPUTE.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "2 hours + 30 minutes = 150 minutes",
        "5 kg + 500 g = 5.5 kg",
        "100 + 20 % = 120",
        "9 am - 5 pm = 8 hours",
        "2025-10-14 = a Tuesday",
        "Call 555-1234.",
        "2 + 2 = 4 + 1",
        "x * 3 = 9",
        "1 / 0 = 0",
        "The score was 3 - 2.",
    ],
)
def test_other_texts_are_left_alone(text: str) -> None:
    assert list(read_equations(text)) == []


@pytest.mark.parametrize(
    ("response", "outcomes"),
    [
        ("15 + 4 = 19 euros.", {"15": "supported", "4": "supported", "19 euros": "derived"}),
        ("15 + 4 = 21 euros.", {"15": "supported", "4": "supported", "21 euros": "contradicted"}),
        ("15 + 12 = 28.", {"15": "supported", "12": "supported", "28": "contradicted"}),
        ("2 × 15 = 30 euros.", {"15": "supported", "30 euros": "derived"}),
    ],
)
def test_the_knowledge_need_not_have_the_result(response: str, outcomes: dict[str, str]) -> None:
    checked = check_values(response, [KNOWLEDGE])
    assert {response[check.value.start : check.value.end]: check.outcome for check in checked} == outcomes


def test_long_texts_take_linear_work() -> None:
    assert len(list(read_equations("1 + " * 20_000))) == 0
    assert len(list(read_equations("15 + 12 = 27. " * 2_000))) == 2_000

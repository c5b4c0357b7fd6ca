"""Values of the knowledge in the form that a response gives its own."""

from __future__ import annotations

import pytest

from groundwire.engine.values import Content, read_values
from groundwire.repair.correction.rendering import render


def read(text: str) -> Content:
    (value,) = read_values(f"It is open until {text}.") if text[-1].isalpha() else read_values(text)
    return value.content


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Times of day, with the clock and the words of the response,
        ("half past five", "18:30", "half past six"),
        ("half past five", "18:00", "six"),
        ("a quarter past eight", "21:45", "a quarter to ten"),
        ("eight o'clock", "21:00", "nine o'clock"),
        ("noon", "14:00", "two"),
        ("five", "12:00", "twelve"),
        ("5 pm", "17:30", "5:30 pm"),
        ("5.15 pm", "18:00", "6 pm"),
        ("17:00", "6:30 pm", "18:30"),
        ("23:00", "01:00", "01:00"),
        # which has no words for any minute.
        ("half past five", "17:51", None),
        # Amounts with the sign, the unit and the decimals of the response,
        ("$34.00", "$40", "$40.00"),
        ("€1,234.50", "€12,000", "€12,000.00"),
        ("four days", "48 hours", "two days"),
        ("1 day", "two days", "2 days"),
        ("two hours", "60 minutes", "one hour"),
        ("twenty minutes", "15 minutes", "fifteen minutes"),
        ("12 minutes", "35", "35 minutes"),
        # with halves and quarters as they are spoken,
        ("an hour and a half", "30 minutes", "half an hour"),
        ("two and a half hours", "90 minutes", "an hour and a half"),
        ("an hour and a half", "3.5 hours", "three and a half hours"),
        ("an hour and a half", "45 minutes", "three quarters of an hour"),
        ("two and a half weeks", "one and a half weeks", "one and a half weeks"),
        # dates in their order,
        ("21 November", "2026-11-20", "20 November"),
        ("Nov 21, 2026", "2026-12-03", "Dec 3, 2026"),
        ("21 November 2026", "20 December", None),
        # and none where the form of the response is not used so.
        ("10 days", "one month", None),
        ("two weeks", "31 days", None),
        ("12 minutes", "35 euros", None),
        ("1957", "12 May 1960", None),
    ],
)
def test_a_value_is_written_in_the_form_of_another(old: str, new: str, expected: str | None) -> None:
    assert render(old, read(old), new, read(new)) == expected

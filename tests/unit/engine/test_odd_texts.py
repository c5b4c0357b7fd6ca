"""Whatever the text, a score is a score: no metric, fold or stream fails, and each range lies in its text."""

from __future__ import annotations

from hypothesis import assume, example, given
from hypothesis import strategies as st

from groundwire.engine import Engine
from groundwire.runtime.texts.unread import is_blank
from tests.support.odd_texts import ODD_TEXTS, check_correction, check_score, check_stream, check_turn
from tests.support.streams import world

ENGINE = Engine(world())
NAME = "🅿️"
"""Of a name of such signs no word was left, and the last of them was asked for."""


@given(ODD_TEXTS, st.lists(ODD_TEXTS, max_size=2).map(tuple), st.lists(ODD_TEXTS, max_size=1))
@example(f"Parking is £9 {NAME} a day.", ("The hotel has free parking.",), [])
@example("1. 1", ("1. 1",), ["1. 1?"])
@example("no, 36", ("③⑥ No problem!",), [])
@example("] ", ("A.",), ["Is it so?"])
@example("<b>Yes</b>, of course!", ("It is &#51;6.",), ["Is it 3️⃣6️⃣?"])
def test_any_text_has_a_score(response: str, knowledge: tuple[str, ...], history: list[str]) -> None:
    assume(not is_blank(response))
    check_score(ENGINE, response, [passage for passage in knowledge if not is_blank(passage)], history)


@given(ODD_TEXTS, ODD_TEXTS, st.integers(1, 7))
@example("<p>A b.</p><p>C", "A b.", 3)
def test_any_text_is_streamed(response: str, knowledge: str, size: int) -> None:
    assume(not is_blank(response))
    check_stream(ENGINE, response, knowledge, size)


@given(ODD_TEXTS, ODD_TEXTS)
def test_any_text_is_corrected_or_left(response: str, knowledge: str) -> None:
    assume(not is_blank(response))
    check_correction(ENGINE, response, knowledge)


@given(ODD_TEXTS, ODD_TEXTS, ODD_TEXTS)
def test_any_turn_has_a_label(response: str, result: str, question: str) -> None:
    check_turn(ENGINE, response, result, question)

"""Which range of tokens is an answer, on windows small enough to write down."""

from __future__ import annotations

import numpy as np
import pytest

from groundwire.runtime.calls import Answer, Answered
from groundwire.runtime.models.extractive_qa import PassageWindow, WindowAnswer, _find_broken, choose_answer
from groundwire.runtime.texts.tokenization import Window

QUESTION, PASSAGE = "which river?", "the Danube flows"
WINDOW = Window(
    ids=[2, 10, 11, 12, 3, 20, 21, 22, 3],
    type_ids=[0, 0, 0, 0, 0, 1, 1, 1, 1],
    sequence_ids=[None, 0, 0, 0, None, 1, 1, 1, None],
    offsets=[(0, 0), (0, 5), (6, 11), (11, 12), (0, 0), (0, 3), (4, 10), (11, 16), (0, 0)],
)
"""[CLS] which river ? [SEP] the Danube flows [SEP]"""


def choose(*ranges: tuple[int, int], passages: tuple[str, ...] = (PASSAGE,)) -> Answered:
    """The answer when the windows of the passages chose ``ranges``, the first with the highest score."""
    answers = [
        (PassageWindow(0, index % len(passages), WINDOW), WindowAnswer("answered", start, end, 5.0 - index))
        for index, (start, end) in enumerate(ranges)
    ]
    return choose_answer(Answer(QUESTION, passages), answers)


def test_a_range_of_the_passage_is_an_answer() -> None:
    answer = choose((6, 6))
    assert (answer.status, answer.text, answer.start, answer.end) == ("answered", "Danube", 4, 10)


def test_a_range_of_the_question_is_an_answer_outside_the_passage() -> None:
    answer = choose((2, 2))
    assert (answer.status, answer.text, answer.passage, answer.start) == ("answered", "river", 0, -1)


@pytest.mark.parametrize(
    "touching",
    [(0, 6), (0, 3), (2, 6), (4, 6), (6, 8), (4, 4), (8, 8)],
    ids=["from CLS", "CLS and question", "across SEP", "from SEP", "to the last SEP", "SEP alone", "last SEP alone"],
)
def test_a_range_that_touches_a_special_token_is_no_answer(touching: tuple[int, int]) -> None:
    answer = choose(touching)
    assert (answer.status, answer.text, answer.passage, answer.start) == ("empty", "", -1, -1)


def test_an_answer_of_another_window_outranks_a_range_with_special_tokens() -> None:
    answer = choose((0, 6), (5, 6), passages=(PASSAGE, PASSAGE))
    assert (answer.status, answer.text, answer.passage) == ("answered", "the Danube", 1)


def test_rows_with_a_number_that_is_not_finite_are_broken_unless_it_is_padding() -> None:
    start, end = np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float32)
    lengths = np.array([2, 3, 2, 3])
    assert list(_find_broken(start, end, lengths)) == []
    start[0, 2] = end[0, 2] = np.inf
    assert list(_find_broken(start, end, lengths)) == []
    start[1, 2], end[2, 0] = np.nan, -np.inf
    assert list(_find_broken(start, end, lengths)) == [1, 2]

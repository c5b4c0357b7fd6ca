"""``groundwire.testing``: the product on a function in place of models."""

from __future__ import annotations

import pytest

from groundwire.engine import InvalidRequest
from groundwire.guard import Guard
from groundwire.testing import make_engine


def rate(response: str, knowledge: tuple[str, ...]) -> float:
    return 0.9 if any(response.strip(".") in passage for passage in knowledge) else 0.2


def test_the_function_chooses_the_verdict() -> None:
    with make_engine(rate) as engine:
        right, wrong = engine.score_many([("Honey is sweet.", "Honey is sweet"), ("Honey is blue.", "Honey is sweet")])
    assert (right.verdict.label, right.verdict.probability) == ("consistent", pytest.approx(0.9))
    assert (wrong.verdict.label, wrong.verdict.probability) == ("inconsistent", pytest.approx(0.2))


def test_the_worst_sentence_decides_and_is_marked() -> None:
    with make_engine(rate) as engine:
        score = engine.score("Honey is sweet. Honey is blue.", "Honey is sweet")
    assert [sentence.verdict.label for sentence in score.sentences] == ["consistent", "inconsistent"]
    assert [span.text for span in score.unsupported] == ["Honey is blue."]


def test_arguments_are_checked_and_streams_are_guarded() -> None:
    with make_engine(rate) as engine:
        with pytest.raises(InvalidRequest):
            engine.score(3, "Honey is sweet")  # type: ignore[arg-type]
        with Guard(engine).open("Honey is sweet") as stream:
            stream.feed("Honey is sweet. Honey is blue. ")
            stream.finish()
        assert stream.released.strip() == "Honey is sweet."

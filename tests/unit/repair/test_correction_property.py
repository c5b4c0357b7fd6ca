"""Whatever models answer, a correction writes no name and no number that neither the knowledge nor the response has."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.engine.text.words import WORD
from groundwire.engine.values import Name, check_values, read_values
from groundwire.repair import Correction, CorrectOptions, Corrector
from groundwire.runtime.calls import (
    Answer,
    Answered,
    Classified,
    Classify,
    FindSpans,
    GeneratedQuestion,
    GenerateQuestions,
    IsPersonal,
    Read,
    TextSpan,
)
from groundwire.runtime.protocol import Outcome
from tests.support.correcting import METRICS, make_engine

WORDS = (
    "Ann", "Bob", "Eve Poe", "Ross", "Oslo", "the Rome Prize", "French", "4", "12", "1.5 million", "1950", "$5",
    "in May 1960", "two", "million", "Million", "half", "hundred", "won", "sang", "was", "wasn't", "not", "never",
    "a", "an", "the", "songs", "song", "in", "of", "by", "and", ", who", "(", ")", ".", "!", "old", "honest", "\n",
)  # fmt: skip
TEXTS = (
    st.lists(st.sampled_from(WORDS), min_size=3, max_size=18).map(" ".join).filter(lambda text: text.strip(" .!()\n"))
)


class Adversary:
    """Models that answer anything: other words than those of their range, ranges that cut words, any label."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def _draw(self, call: object) -> random.Random:
        return random.Random(f"{self._seed} {call}")

    def spans(self, call: FindSpans | IsPersonal) -> Outcome:
        if isinstance(call, IsPersonal):
            return False
        draw = self._draw(call)
        starts = [draw.randrange(len(call.text)) for _ in range(4)]
        ends = [min(len(call.text), start + draw.randint(1, 12)) for start in starts]
        kinds = ("ent:PERSON", "ent:DATE", "noun_chunk")
        return tuple(
            TextSpan(call.text[start:end], start, end, draw.choice(kinds))
            for start, end in zip(starts, ends, strict=True)
            if call.text[start:end].strip()
        )

    def questions(self, call: GenerateQuestions) -> Outcome:
        return (GeneratedQuestion(f"what {call.answer}", -0.1),)

    def answer(self, call: Answer) -> Outcome:
        draw = self._draw(call)
        read = Read(1, 1, 1)
        if call.passages and call.question.endswith(call.passages[0][:0]) and draw.random() < 0.5:
            return Answered("answered", call.question.removeprefix("what "), 0, -1, -1, 1.0, read)
        passage = draw.randrange(len(call.passages))
        start = draw.randrange(len(call.passages[passage]))
        end = min(len(call.passages[passage]), start + draw.randint(1, 15))
        return Answered("answered", "Zoe Zorn of 777", passage, start, end, 1.0, read)

    def classify(self, call: Classify) -> Outcome:
        shares = dict.fromkeys(("entailment", "neutral", "contradiction"), 0.0)
        label = self._draw(call).choice(tuple(shares))
        return Classified(label, shares | {label: 1.0}, 0, Read(1, 1, 1))

    @property
    def roles(self) -> dict[str, Callable[[Any], Outcome]]:
        return {"spans": self.spans, "qg": self.questions, "qa": self.answer, "nli": self.classify}


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3), st.integers(0, 2**32), st.booleans())
def test_no_name_and_no_number_is_made_up(response: str, knowledge: list[str], seed: int, removes: bool) -> None:
    with make_engine(**Adversary(seed).roles) as engine:
        correction = Corrector(engine).correct(
            response,
            knowledge,
            metrics=("q2", *METRICS),
            options=CorrectOptions(max_drafts=12, remove_sentences=removes),
        )
    if correction.status not in ("corrected", "partial"):
        assert (correction.response, correction.edits, correction.after) == (response, (), None)
        return
    assert correction.after is not None
    assert correction.after.verdict.label != "unknown"
    assert correction.accepted == (correction.status == "corrected")
    check_unchanged(correction)
    check_words(correction, knowledge)
    check_all_values(correction, knowledge)


def check_unchanged(correction: Correction) -> None:
    """Outside the edits the text is the same."""
    rebuilt, position = "", 0
    for edit in correction.edits:
        rebuilt += correction.original[position : edit.start] + edit.new
        position = edit.end
    assert rebuilt + correction.original[position:] == correction.response


def check_words(correction: Correction, knowledge: list[str]) -> None:
    """Every word is one of the response or of the knowledge, but for "a", "an" and amounts in another form."""
    known = {word.casefold() for text in (correction.original, *knowledge) for word in WORD.findall(text)}
    amounts = [part for part in read_values(correction.response) if part.is_amount]
    words = (
        match[0].casefold()
        for match in WORD.finditer(correction.response)
        if not any(part.start <= match.start() < part.end for part in amounts)
    )
    assert set(words) <= known | {"a", "an"}


def check_all_values(correction: Correction, knowledge: list[str]) -> None:
    """Every number is supported by the knowledge, and every name is written in it, unless the response had it."""
    texts = (correction.original, *knowledge)
    checks = check_values(correction.response, knowledge)
    supported = {check.value.end for check in checks if check.outcome == "supported"}
    for part in read_values(correction.response):
        text = correction.response[part.start : part.end]
        words = r"\s+".join(map(re.escape, text.split()))
        is_written = text in correction.original or any(
            re.search(rf"(?<!\w){words}(?!\w)", known, re.IGNORECASE) for known in texts
        )
        assert is_written or (part.end in supported and not isinstance(part.content, Name)), text

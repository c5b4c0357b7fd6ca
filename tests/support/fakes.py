"""Fake models small enough to check Q² by hand: spans are capitalised words and numbers, answers are looked up."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

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
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome


def spans(call: FindSpans | IsPersonal) -> Outcome:
    if isinstance(call, IsPersonal):
        return bool(re.search(r"\b(my|your)\b", call.question))
    return tuple(
        TextSpan(match[0], match.start(), match.end(), "noun_chunk")
        for match in re.finditer(r"[A-Z]\w+|\d+", call.text)
    )


def questions(call: GenerateQuestions) -> Outcome:
    """Three questions about a span: the second asks for the span itself, the first for something else."""
    kind = "number" if call.answer.isdigit() else "name"
    return (
        GeneratedQuestion("what else?", -0.1),
        GeneratedQuestion(f"which {kind}?", -0.2),
        GeneratedQuestion(f"what {kind}?", -0.3),
    )


def answer(call: Answer) -> Outcome:
    """The first number or capitalised word of the passages, by the question's last word."""
    pattern = {"number?": r"\d+", "name?": r"[A-Z]\w+"}.get(call.question.split()[-1], r"(?!)")
    total = sum(map(len, call.passages))
    for index, passage in enumerate(call.passages):
        match = re.search(pattern, passage)
        if match:
            return Answered("answered", match[0], index, match.start(), match.end(), 1.0, Read(1, total, total))
    return Answered("none", "", -1, -1, -1, -1.0, Read(1, total, total))


def label(call: Classify) -> Outcome:
    """Numbers contradict, anything else is neutral."""
    name = "contradiction" if re.search(r"\d", call.hypothesis) else "neutral"
    shares = {key: float(key == name) for key in ("entailment", "neutral", "contradiction")}
    return Classified(name, shares, 0, Read(1, 1, 1))


ROLES: dict[str, Callable[[Any], Outcome]] = {"spans": spans, "qg": questions, "qa": answer, "nli": label}


def world(**other: Callable[[Any], Outcome]) -> FakeRuntime:
    """The fake runtime, with some roles replaced."""
    return FakeRuntime(ROLES | other)

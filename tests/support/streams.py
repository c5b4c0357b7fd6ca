"""Texts that are hard to cut, ways to cut them, and fake models that check sentences by their words."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion
from groundwire.runtime.calls import Classified, ClassifiedToken, ClassifiedTokens, Classify, ClassifyTokens, Read
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome, RoleInfo
from tests.support.verdicts import make_profile

ATOMS = (
    "It is so", "Dr. Dre", "e.g. this", "3.5", "3.", "5", "...", "…", "!", "?", "?!", '"', "'", "”", "(", ")",
    "]", "a.m.", "p.m", "U.S.", "D.C.", "C++", ":)", ": )", ":-", "D", "o.O", "\n", "\r\n", "\r", "\u2028",
    "  ", "\t", "🙂", "👩‍👩‍👧", "1. ", "- item", "•", "Why?No", "end.Next", "www.a.com/b.c", "http://x.y/z?q=1.",
    "。", "中文句子", "你好！", "don't", "'s", "n't", "J. R. R. Tolkien", "No.", "St.", "vs.", "\xa0", "x" * 70,
    "(" * 66, "a-b" * 30, "é", "e\u0301", "½", "$", "o_O", "8)", "._.", "(>_<)", "¯\\(ツ)/¯", "\u200d", "0",
    "i.e.", "and Co.", "Jan.", "He said", "🇩🇪", "#️⃣",
    "on Sat.", "45 min.", "min.", "approx.", "incl.", "no.", "£5 p.p.", "the", "VAT", "it is", "£5", "3 km.", ",",
)  # fmt: skip
"""Full stops that end no sentence, exceptions of the tokenizer that join tokens, chunks that are cut, line breaks."""

TEXTS = st.lists(
    st.tuples(st.sampled_from(ATOMS), st.sampled_from(("", " ", " ", ". ", "! ", "."))), min_size=1, max_size=16
).map(lambda parts: "".join(atom + end for atom, end in parts))


def cut(text: str, offsets: list[int]) -> list[str]:
    """The pieces of ``text`` that are cut at ``offsets``, taken modulo its length."""
    bounds = sorted({0, len(text), *(offset % (len(text) + 1) for offset in offsets)})
    return [text[start:end] for start, end in itertools.pairwise(bounds)]


def cut_units(text: str) -> list[str]:
    """The UTF-16 units of ``text``: characters beyond the basic plane are cut into surrogate halves."""
    units = text.encode("utf-16-le")
    return [units[i : i + 2].decode("utf-16-le", "surrogatepass") for i in range(0, len(units), 2)]


CUTS = st.lists(st.integers(0, 10_000), max_size=8)

KNOWLEDGE = "Honey is sweet and golden."
METRICS = ("nli", "verifiability", "token_classifier")
CALIBRATION = Calibration(
    fitted_on=("dev",),
    rows=100,
    fusions=(
        Fusion(
            name="full",
            metrics=("nli", "verifiability"),
            intercept=0.0,
            features=(Feature(name="nli.expected", mean=0.5, deviation=0.25, weight=1.0, needed=True),),
            profiles={"balanced": make_profile(0.5, 0.1, 0.1)},
        ),
    ),
    scales={},
)
WRONG = re.compile(r"\b(?:blue|wrong)\b")
CHAT = re.compile(r"(?:^|\? )\W*(?:hi|thanks)\b", re.IGNORECASE)
"""A greeting, also after the question that it is read with."""


def classify(call: Classify) -> Outcome:
    """A text with a wrong word is contradicted, every other entailed."""
    label = "contradiction" if WRONG.search(call.hypothesis) else "entailment"
    shares = {name: float(name == label) for name in ("entailment", "neutral", "contradiction")}
    return Classified(label, shares, 0, Read(1, 1, 1))


def verify(call: Classify) -> Outcome:
    """A greeting states nothing."""
    share = 0.0 if CHAT.search(call.hypothesis) else 1.0
    return Classified("verifiable", {"verifiable": share}, 0, Read(1, 0, 0), share)


def flag(call: ClassifyTokens) -> Outcome:
    """The wrong words are made up."""
    words = list(re.finditer(r"\w+", call.text)) or [re.compile(".", re.DOTALL).search(call.text)]
    tokens = [
        ClassifiedToken(*word.span(), (0.0, 1.0) if WRONG.fullmatch(word[0]) else (1.0, 0.0)) for word in words if word
    ]
    return ClassifiedTokens(("fine", "made up"), tuple(tokens), Read(1, 1, 1))


ROLES: dict[str, Callable[[Any], Outcome]] = {
    "nli": classify,
    "detector.verifiability": verify,
    "token_classifier": flag,
}


def text_of(call: Any) -> str:
    """The text that one of these models is asked about."""
    return call.text if isinstance(call, ClassifyTokens) else call.hypothesis  # type: ignore[no-any-return]


def world(calibration: Calibration | None = CALIBRATION, **other: Callable[[Any], Outcome]) -> FakeRuntime:
    """The fake runtime of these models, with some roles replaced."""
    return FakeRuntime(ROLES | other, calibration=calibration, role_info={"token_classifier": RoleInfo((), ("fine",))})

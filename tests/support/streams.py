"""Texts that are hard to cut, and ways to cut them."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

ATOMS = (
    "It is so", "Dr. Dre", "e.g. this", "3.5", "3.", "5", "...", "…", "!", "?", "?!", '"', "'", "”", "(", ")",
    "]", "a.m.", "p.m", "U.S.", "D.C.", "C++", ":)", ": )", ":-", "D", "o.O", "\n", "\r\n", "\r", "\u2028",
    "  ", "\t", "🙂", "👩‍👩‍👧", "1. ", "- item", "•", "Why?No", "end.Next", "www.a.com/b.c", "http://x.y/z?q=1.",
    "。", "中文句子", "你好！", "don't", "'s", "n't", "J. R. R. Tolkien", "No.", "St.", "vs.", "\xa0", "x" * 70,
    "(" * 66, "a-b" * 30, "é", "e\u0301", "½", "$", "o_O", "8)", "._.", "(>_<)", "¯\\(ツ)/¯", "\u200d", "0",
    "i.e.", "and Co.", "Jan.", "He said", "🇩🇪", "#️⃣",
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

"""Texts that no reader expects: odd signs, emoji sequences, mixed scripts, Markdown, HTML, JSON and LaTeX fragments."""

from __future__ import annotations

from hypothesis import strategies as st

PLAIN = (
    "Honey is sweet", "The warranty lasts 24 months", "it opens at 9 a.m. on Mondays", "£4.95",
    "Dr. Dre", "no, 36", "Yes", "No problem!", "by Ann Lee in 1999", "10–12 km", "20% off", "(see [2])",
    "five of them", "and", "sorry", "?", "www.a.example/b?c=1&d=2", "a@b.example", "v1.2.3",
    "ISBN 978-3", "12:30", "5'10\"", "it's", "U.S.", "e.g.", "...",
)  # fmt: skip
SIGNS = (
    "3️⃣", "③⑥", "⑨", "⁴⁸", "x²", "CO₂", "½", "⅝", "Ⅳ", "㎡", "３６", "𝟑𝟔", "🅿️", "🅰", "Ⓜ", "㊗", "№",
    "℃", "ﬁ", "™", "¹", "٣٦", "三十六", "👩‍👩‍👧", "🇩🇪", "👍🏽", "❤️", "#️⃣", "🏴\U000e0067\U000e007f",
    "¯\\_(ツ)_/¯", "\u200b", "\u00ad", "\ufeff", "\u202e63\u202c", "e\u0301", "\u0301", "\u3164",
    "\u2028", "\x0b", "\x1c", "\x85", "\ufffd", "\U0010ffff", "·", "·5", "−5",
)  # fmt: skip
SCRIPTS = (
    "гарантия", "保証は24ヶ月", "보증", "الضمان", "गारंटी", "ความ", "ελληνικά", "İstanbul", "ǅ", "ß",
    "ſ", "Ⴀ", "ᏸ", "ﷺ", "ʼn", "ŉ",
)  # fmt: skip
MARKUP = (
    "**bold**", "**", "*", "_a_", "`code`", "`", "```\n", "~~~", "# Title\n", "- item\n", "1. ", "2) ",
    "| a | b |\n", "|", "|---|---|\n", "> quote\n", "[link](https://a.example)", "![", "](", "~~no~~",
    "\n", "\n\n", "\t", "<b>", "</b>", "<br>", "<li>", "<sup>2</sup>", "<td>", "<a href='x'>", "<!--",
    "-->", "<script>", "&#51;", "&amp;lt;", "&nbsp;", "&#xD800;", "&", '{"a": 1, "b": [2, null]}', '{"',
    '":', "[[", "]", "\\frac{1}{2}", "$x^2$", "\\(", "%d", "{}", "\\n", "\\u0033", "=", ";",
)  # fmt: skip
PIECES = st.one_of(*map(st.sampled_from, (PLAIN, PLAIN, SIGNS, SCRIPTS, MARKUP)), st.text(max_size=3))
JOINTS = st.sampled_from(("", " ", " ", ". ", ", ", "\n", "? "))


def _join(parts: list[tuple[str, str]]) -> str:
    return "".join(piece + joint for piece, joint in parts).replace("\0", "")


ODD_TEXTS = st.lists(st.tuples(PIECES, JOINTS), min_size=1, max_size=12).map(_join)

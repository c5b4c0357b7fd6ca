"""Texts that no reader expects, and what holds of a score, a stream, a correction and a turn of any of them.

The texts have odd signs, emoji sequences, mixed scripts, Markdown, HTML, JSON and LaTeX fragments.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
from hypothesis import strategies as st

from groundwire.engine import Engine, Score, ToolCall
from groundwire.engine.schema.explanations import CitationCandidate, PassageRange, StatedValue
from groundwire.engine.schema.results import Citation
from groundwire.guard import Guard, Policy, SentenceEvent
from groundwire.repair import CorrectOptions, Corrector
from groundwire.turns import TurnChecker

PLAIN = (
    "Honey is sweet", "Honey is blue", "That is wrong", "five of them",
    "The warranty lasts 24 months", "it opens at 9 a.m. on Mondays", "£4.95",
    "Dr. Dre", "no, 36", "Yes", "No problem!", "by Ann Lee in 1999", "10–12 km", "20% off", "(see [2])",
    "and", "sorry", "?", "www.a.example/b?c=1&d=2", "a@b.example", "v1.2.3",
    "ISBN 978-3", "12:30", "5'10\"", "it's", "U.S.", "e.g.", "...",
)  # fmt: skip
SIGNS = (
    "3️⃣", "③⑥", "⑨", "⁴⁸", "x²", "CO₂", "½", "⅝", "Ⅳ", "㎡", "３６", "𝟑𝟔", "🅿️", "🅰", "Ⓜ", "㊗", "№",
    "℃", "ﬁ", "™", "¹", "٣٦", "三十六", "👩‍👩‍👧", "🇩🇪", "👍🏽", "❤️", "#️⃣", "🏴\U000e0067\U000e007f",
    "¯\\_(ツ)_/¯", "\u200b", "\u00ad", "\ufeff", "\u202e63\u202c", "<bdo dir=rtl>6", "e\u0301", "\u0301", "\u3164",
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
KINDS = (PLAIN, PLAIN, SIGNS, SCRIPTS, MARKUP)
JOINTS = ("", " ", " ", ". ", ", ", "\n", "? ")
MAX_PIECES = 12
PLANES = (0x80, 0x3000, 0x20000, 0x110000)
SURROGATES = range(0xD800, 0xE000)
FLAGGING = Policy(
    **dict.fromkeys(("inconsistent", "unverifiable", "unknown", "deadline", "failed", "truncated", "overflow"), "flag")
)


def _join(parts: list[tuple[str, str]]) -> str:
    return "".join(piece + joint for piece, joint in parts).replace("\0", "")


PIECES = st.one_of(*map(st.sampled_from, KINDS), st.text(max_size=3))
ODD_TEXTS = st.lists(st.tuples(PIECES, st.sampled_from(JOINTS)), min_size=1, max_size=MAX_PIECES).map(_join)


def draw_text(random: Random) -> str:
    """One of ``ODD_TEXTS``, in a thousandth of the time that Hypothesis takes."""
    return _join([(_draw_piece(random), random.choice(JOINTS)) for _ in range(random.randint(1, MAX_PIECES))])


def _draw_piece(random: Random) -> str:
    kind = random.randrange(len(KINDS) + 1)
    if kind < len(KINDS):
        return random.choice(KINDS[kind])
    codes = (random.randrange(random.choice(PLANES)) for _ in range(random.randint(0, 3)))
    return "".join(chr(code) for code in codes if code not in SURROGATES)


def check_ranges(item: Any, response: str, knowledge: Sequence[str]) -> None:
    """Check that each range of a record lies in its text, and quotes it."""
    if isinstance(item, tuple | dict):
        for part in item.values() if isinstance(item, dict) else item:
            check_ranges(part, response, knowledge)
    elif isinstance(item, PassageRange):
        assert 0 <= item.start <= item.end <= len(knowledge[item.passage])
    elif isinstance(item, msgspec.Struct):
        fields = {name: getattr(item, name) for name in item.__struct_fields__}
        start, end, evidence = map(fields.get, ("start", "end", "evidence"))
        if isinstance(item, Citation | CitationCandidate):
            assert item.text == knowledge[item.evidence.passage][item.evidence.start : item.evidence.end]
        elif isinstance(item, StatedValue) and evidence is not None:
            assert item.knowledge_says == knowledge[evidence.passage][evidence.start : evidence.end]
        if start is not None and end is not None:
            assert 0 <= start <= end <= len(response)
            if not isinstance(item, Citation) and "text" in fields:
                assert fields["text"] == response[start:end]
        check_ranges(fields, response, knowledge)


def check_score(engine: Engine, response: str, knowledge: Sequence[str], history: Sequence[str]) -> None:
    """Check that a text has a score by all metrics, whose ranges are right, and which JSON keeps."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = engine.score(response, list(knowledge), history=history, metrics="all")
    failed = [result for result in score.metrics.values() if result.status == "failed"]
    assert (score.status == "failed", failed) == (False, []), score.message
    check_ranges(score, response, knowledge)
    ends = [0]
    for sentence in score.sentences:
        assert ends[-1] <= sentence.start
        ends.append(sentence.end)
    assert Score.from_json(score.to_json()) == score


def check_stream(engine: Engine, response: str, knowledge: str, size: int) -> None:
    """Check that a text that comes in pieces of some characters is released whole, and no check failed."""
    with Guard(engine).open(knowledge, FLAGGING, history=["Is it so?"]) as stream:
        events: list[Any] = []
        for start in range(0, len(response), size):
            events += stream.feed(response[start : start + size])
        stream.finish()
    assert stream.released == response
    checked = [event for event in (*events, *stream.last_events) if isinstance(event, SentenceEvent)]
    assert "failed" not in {event.outcome for event in checked}
    for event in checked:
        assert response[event.start : event.end] == event.text
        check_ranges(event.unsupported, response, (knowledge,))


def check_correction(engine: Engine, response: str, knowledge: str) -> None:
    """Check that a text is corrected or left, by edits of what it says, and that something of it is left."""
    options = CorrectOptions(remove_sentences=True)
    correction = Corrector(engine).correct(response, knowledge, options=options)
    assert correction.original == response
    assert correction.status != "failed"
    text, position = "", 0
    for edit in correction.edits:
        assert position <= edit.start
        assert response[edit.start : edit.end] == edit.old
        text += response[position : edit.start] + edit.new
        position = edit.end
    assert correction.response == text + response[position:]
    assert correction.response.strip()


def check_turn(engine: Engine, response: str, result: str, question: str) -> None:
    """Check that a turn has a label, whatever it says and whatever its calls have got."""
    done = ToolCall(name="book_table", arguments={"guests": 4, "name": question}, result=result)
    call = ToolCall(name="book_table", arguments={"name": result})
    turn = TurnChecker(engine).check(response, [call], log=[done], history=[question])
    assert turn.status != "failed"
    for finding in turn.findings:
        if finding.start is not None:
            assert response[finding.start : finding.end] == finding.where

"""Texts are read as people see them, and what is found is located in what was written."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundwire.engine import Engine
from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.schema.results import Request
from groundwire.engine.text.rendering import find_unread_numbers, render_text
from groundwire.engine.values.knowledge import find_values
from groundwire.engine.values.tokens import tokenize
from groundwire.guard import Guard, SentenceEvent
from groundwire.repair import Corrector
from tests.support.streams import KNOWLEDGE, world


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It lasts 3️⃣6️⃣ months.", "It lasts 36 months."),
        ("It lasts 🔟 days.", "It lasts 10 days."),
        ("③⑥ ❸❻ ➌➏ ⓷⓺ ⑶⑹ ⒊⒍ 🄄🄇 ㊱", "36 36 36 36 36 36 36 36"),
        ("lasts ⁴⁸ months, ₄₈ months, €⁴⁸", "lasts 48 months, 48 months, €48"),
        ("３６．５％ 𝟑𝟔 🯳🯶 Ⅳ ㎞ ㎡ ﬁne 𝐓𝐡𝐞 ⓕⓡⓔⓔ 🅵🅁🅴🅴", "36.5% 36 36 IV km m² fine The free FREE"),
        ("3\u200b6 3\u00ad6 re\u00adfund", "36 36 refund"),
        ("1️⃣ Open the app\n② **Click**\n⑨ months", "1. Open the app\n2. **Click**\n9 months"),
        ("&#x33;&#x36; &#51;&#54; &frac12;&nbsp;&euro; &amp;lt;", "36 36 ½ € &lt;"),
        ("&#x2462;&#x2465;", "36"),
        ("It is <b>36</b>, <STRONG class='a'>36</STRONG>, 3<i></i>6, 3<!-- x -->6.", "It is 36, 36, 36, 36."),
        ("٣٦ or ३६ months", "36 or 36 months"),
        ("x<sup>2</sup>, CO<sub>2</sub>, years.<sup>1</sup>, <sup>36</sup> months", "x², CO₂, years.¹, 36 months"),
        ("<p>Open:</p><ul><li>Monday</li><li>Friday</li></ul>", "Open:\n- Monday\n- Friday\n"),
        ("<table><tr><td>1</td><td>2</td></tr></table>", " 1 2\n"),
        ('See <a href="https://a.example">here</a>.', 'See <a href="https://a.example">here.'),
    ],
)
def test_text_is_shown_as_people_see_it(text: str, expected: str) -> None:
    assert render_text(text).text == expected


@pytest.mark.parametrize(
    "text",
    [
        "x² CO₂ m³ 5 m² years.¹ 10⁶ ¹⁴C 90° ½ ™ № 5 … café 漢字、，！",
        "¹ Prices per month",
        "🅿️ is £9, Ⓜ is near, 👩\u200d👩 smile, नमस्\u200dते",
        "AT&T, R&D, ?a=1&copy=2, &unknown; a < b > c, <name>, <order id>",
        "Use the <b> tag, `<b>x</b>`, `&lt;` and ~~~ <i>&amp;</i>",
        "<b></b>",
    ],
)
def test_what_is_no_digit_and_no_markup_stays(text: str) -> None:
    rendered = render_text(text)
    assert rendered.is_verbatim
    assert rendered.text is text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It lasts 3⁶ months.", ["3⁶"]),
        ("It is (³), and 24⁹⁹.", ["³", "24⁹⁹"]),
        ("𐄉 months", ["𐄉"]),
        ("x² CO₂ m³ years.¹ ¹⁴C ½ ⅝ cups", []),
        ("¹ Prices per month", []),
        ("Plain 36.", []),
        # digits in an override may be shown backwards
        ("It lasts \u202e63\u202c months, or 24.", ["\u202e63"]),
        ("It lasts &#8238;63&#x202c; months, or 24.", ["\u202e63"]),
        ("It lasts <bdo dir='rtl'>63</bdo> months, or 24.", ["\u202e63"]),
        ("It lasts <bdo dir='&#114;tl' title='dir=ltr'>63</bdo> months, or 24.", ["\u202e63"]),
        (
            "It lasts <span style='unicode-bidi: bidi-override; direction: rtl'>63</span> months.",
            ["\u202e", "\u202e63"],
        ),
        ("It lasts <b style='direction:rtl;unicode-bidi:isolate-override'>63</b>.", ["\u202e", "\u202e63"]),
        ("It lasts <bdo dir=ltr>63</bdo> or <bdo dir='LTR'>63</bdo> months.", []),
        ("\u202dIt lasts 63 months. It\ncosts £12.", ["\u202d", "\u202d63", "\u202d£12"]),
        ("\u202e\u2066It\u202c\u2069 lasts 63\u202c months, or 24.", ["\u202e63"]),
        ("\u2067It lasts 63\u2069 or \u202b36\u202c months.", []),
    ],
)
def test_numbers_for_the_eye_alone_are_found(text: str, words: list[str]) -> None:
    assert [number.text for number in find_unread_numbers(render_text(text).text)] == words


PIECES = st.sampled_from(
    ("<b>", "</b>", "<br>", "<li>", "<sup>2</sup>", "&#51;", "&amp;", "3️⃣", "⑥", "⁴", "３６", "𝟑", "\u200b", "`", "\n",
     " ", "a", "6", "é", "<", "&", "<!--", "-->", "ﬁ", "🅵🅁")
)  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join))
@example("&#51;\u200b6")
@example("<b>③</b>")
def test_each_shown_character_is_located(text: str) -> None:
    rendered = render_text(text)
    end = 0
    for index, character in enumerate(rendered.text):
        start, stop = rendered.locate(index, index + 1)
        assert 0 <= start < stop <= len(text)
        assert stop >= end  # in the order of the original
        end = stop
        if text[start:stop] == character:
            assert rendered.find(start, stop) == (index, index + 1)
    whole = rendered.locate(0, len(rendered.text))
    assert 0 <= whole[0] <= whole[1] <= len(text)
    assert all(0 <= position <= len(rendered.text) for position in rendered.find(0, len(text)))


@given(st.text(st.characters(max_codepoint=126, exclude_characters="<&")))
def test_plain_text_is_the_same_object(text: str) -> None:
    assert render_text(text).text is text


def test_fractions_of_one_sign_are_values() -> None:
    (value,) = find_values(tokenize("It has 1⅝ pages."))
    assert value.content.amount == 1.625  # type: ignore[union-attr]


def test_a_request_keeps_its_texts_as_they_were_written() -> None:
    request = Request("It is <b>sweet</b>.", ("Honey is ⑨.",), ("&lt;?",))
    read = ReadRequest.of(request)
    assert (read.response, read.knowledge, read.history) == ("It is sweet.", ("Honey is 9.",), ("<?",))
    assert read.original is request
    asked = read.ask("<i>No</i>.")
    assert (asked.response, asked.original.response) == ("No.", "<i>No</i>.")
    assert asked.read_knowledge is read.read_knowledge
    assert not asked.is_verbatim
    assert ReadRequest.of(Request("Plain.", ("Plain.",))).is_verbatim


MARKED = "Honey is <b>sweet</b>. Honey has <i>③⑥</i> uses."


def test_a_score_is_about_what_was_written() -> None:
    knowledge = "Honey is &lt;sweet&gt;. Honey has &#50;4 uses."
    with Engine(world()) as engine:
        score = engine.score(MARKED, knowledge, metrics=["values", "overlap"])
        (span,) = score.metrics["values"].unsupported
    assert (span.text, MARKED[span.start : span.end]) == ("③⑥", "③⑥")
    (value,) = score.metrics["values"].explanation.values  # type: ignore[union-attr]
    assert (value.text, value.outcome, value.knowledge_says) == ("③⑥", "contradicted", "&#50;4")
    assert knowledge[value.evidence.start : value.evidence.end] == "&#50;4"
    for word in score.metrics["overlap"].explanation.words:  # type: ignore[union-attr]
        assert MARKED[word.start : word.end] == word.text


def test_ranked_results_are_about_what_was_written() -> None:
    with Engine(world()) as engine:
        plain, marked = engine.rank(["Honey has 24.", "It has <b>36</b>."], "Honey has 24.", metric="values")
    assert (plain.index, marked.index) == (0, 1)
    assert marked.result.unsupported[0].start == 10


def test_a_stream_checks_its_own_sentences() -> None:
    text = "<p>Honey is sweet.</p><p>Honey is golden</p> &#46; Honey is sweet."
    with Engine(world()) as engine, Guard(engine).open(KNOWLEDGE) as stream:
        events = stream.feed(text)
        stream.finish()
    checked = [event for event in (*events, *stream.last_events) if isinstance(event, SentenceEvent)]
    assert [text[event.start : event.end] for event in checked] == [event.text for event in checked]
    assert stream.released == text


def test_a_number_for_the_eye_alone_makes_its_sentence_unknown() -> None:
    with Engine(world()) as engine:
        for response, knowledge, label in (
            ("Honey has 3⁶ uses.", "Honey has 24 uses.", "unknown"),
            ("Honey has 3⁶ uses.", "Honey has 3⁶ uses.", "consistent"),
            ("Honey is sweet. Honey has 3⁶ uses.", "Honey has 24 uses.", "unknown"),
            ("Honey has 24 uses.¹", "Honey has 24 uses.", "consistent"),
        ):
            score = engine.score(response, knowledge)
            assert score.verdict.label == label, response
            if label == "unknown":
                assert "'3⁶'" in score.verdict.message
        assert [part.verdict.label for part in score.sentences] == ["consistent"]


def test_a_correction_edits_what_was_written() -> None:
    with Engine(world()) as engine:
        correction = Corrector(engine).correct(MARKED, "Honey is sweet. Honey has 24 uses.")
    assert correction.original == MARKED
    for edit in correction.edits:
        assert MARKED[edit.start : edit.end] == edit.old

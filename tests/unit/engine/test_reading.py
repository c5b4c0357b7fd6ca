"""What models read of Markdown, and where it is in the response."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine, Score
from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.schema.knowledge import format_record
from groundwire.engine.schema.validation import list_passages
from groundwire.engine.text.normalization import spell_out
from groundwire.engine.text.reading import count_pieces, cut_reading, follow_question, join_readings, read_response
from groundwire.engine.text.retrieval import NEAR
from groundwire.engine.text.sentences import SentenceReader, sentences
from groundwire.runtime.calls import Classified, ClassifiedToken, ClassifiedTokens, Classify, ClassifyTokens, Read
from groundwire.runtime.errors import InvalidRequest, TooLong
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import RoleInfo

TABLES = [
    (
        "Our hours are:\n\n- **Monday** to Friday: 9:00–17:00\n- Sunday: closed. Sorry!\n\nSee you!",
        ["Our hours are: Monday to Friday: 9:00–17:00", "Our hours are: Sunday: closed.", "Sorry!", "See you!"],
    ),
    ("1. Open the box.\n2. Press *Reset*.\n10) Wait.", ["Open the box.", "Press Reset.", "Wait."]),
    ("## Delivery\nParcels take `3` days.", ["Delivery: Parcels take 3 days."]),
    ("**Returns**\n\n* within 14 days\n* unopened", ["Returns: within 14 days", "Returns: unopened"]),
    (
        "| Plan | Price |\n|:--|--:|\n| Basic | €5 |\n| **Pro** | €9. Net. |\n\nAsk us.",
        ["Plan: Basic; Price: €5", "Plan: Pro; Price: €9. Net.", "Ask us."],
    ),
    ("Hi! **Thanks** for it. See [our site](https://example.com/a_b).", ["Hi!", "Thanks for it.", "See our site."]),
    ("It is 5*3*2 with snake_case_name, 2 * 3 * 4.", ["It is 5*3*2 with snake_case_name, 2 * 3 * 4."]),
    ("> It is so.\n> It was so.", ["It is so.", "It was so."]),
    (
        "We sell:\n- fruit:\n  - apples\n  - pears\n- bread",
        ["We sell: fruit: apples", "fruit: pears", "We sell: bread"],
    ),
    ("He was born in\n1936. He wrote.", ["He was born in", "1936.", "He wrote."]),
    ("__init__ is called, *twice*, by ~~me~~ you.", ["init is called, twice, by me you."]),
]


@pytest.mark.parametrize(("response", "expected"), TABLES)
def test_what_is_read(response: str, expected: list[str]) -> None:
    assert [reading.text for reading in read_response(response)] == expected


CODE = "Run this:\n```python\nx = fetch(1)\nprint(x)\n```\nIt prints 1."


def test_code_is_not_read_but_prose_between_fences_is() -> None:
    assert [(item.text, item.unread) for item in read_response(CODE)][-2:] == [
        ("print(x)", True),
        ("It prints 1.", False),
    ]
    hidden = read_response("```\nThe tower has a height of 500 metres.\n```")
    assert [(item.text, item.unread) for item in hidden] == [("The tower has a height of 500 metres.", False)]
    assert "print(" not in ReadRequest(CODE, ()).whole.text


MARKED = st.lists(
    st.sampled_from(
        [
            *("- ", "1. ", "**", "*", "_", "`", "```", "\n", "\n\n", "| ", " |", "|---|", "# ", "[a](b)", "> ", ": "),
            *(". ", "It is", " long", "é", "3.5", "~~", "  "),
        ]
    ),
    min_size=1,
    max_size=40,
).map("".join)


@given(MARKED)
def test_every_character_that_is_read_is_one_of_the_response(response: str) -> None:
    readings = read_response(response)
    assert [(item.start, item.end) for item in readings] == [(part.start, part.end) for part in sentences(response)]
    joined = join_readings(response, readings, len(readings))
    for reading in (*readings, joined, *cut_reading(joined, 8)):
        for index, character in enumerate(reading.text):
            position = reading.locate(index, index + 1)
            assert position is None or response[position[0] : position[1]] == character
    positions = [
        position for item in readings for index in range(len(item.text)) if (position := item.locate(index, index + 1))
    ]
    assert len(positions) == len(set(positions))


@given(MARKED)
def test_a_stream_of_markdown_has_the_sentences_of_the_whole(response: str) -> None:
    reader = SentenceReader()
    complete = [sentence for character in response for sentence in reader.feed(character)]
    assert tuple(complete) == sentences(response)[: len(complete)]
    assert len(complete) < len(sentences(response))


PLAIN = st.text(st.sampled_from("ab .,!?'3é"), min_size=1)
LIST_ITEM = re.compile(r" *3+\. ")


@given(PLAIN.filter(lambda text: any(map(str.isalnum, text)) and not LIST_ITEM.match(text)))
def test_plain_text_is_read_as_it_is(response: str) -> None:
    whole = ReadRequest(response, ()).whole
    assert (whole.text, whole.start, whole.end) == (response, 0, len(response))


def test_windows_of_a_reading_are_its_sentences() -> None:
    response = "The Rhine is long, and it is old. " * 40
    windows = cut_reading(ReadRequest(response, ()).whole, 64)
    assert " ".join(window.text for window in windows) == response.strip()
    assert all(count_pieces(window.text) <= 64 for window in windows)
    assert all(response[window.start : window.end] == window.text for window in windows)


@pytest.mark.parametrize(
    ("response", "turn", "first"),
    [
        ("Yes, until 8.", "Hi. Is it open?", "Is it open? Yes, until 8."),
        ("In 1988.", "When did he write it?", "When did he write it? In 1988."),
        ("He also wrote The BFG.", "Who is Dahl?", "Who is Dahl? He also wrote The BFG."),
        ("He wrote it in the year 1988.", "Who is Dahl?", "He wrote it in the year 1988."),
        ("Dahl wrote it in the year 1988.", "Who is Dahl?", "Dahl wrote it in the year 1988."),
        ("Yes, until 8.", "I see.", "Yes, until 8."),
        ("Yes, until 8.", f"Is {'it ' * 60}open?", "Yes, until 8."),
        ("Yes, until 8.", "", "Yes, until 8."),
    ],
)
def test_the_question_is_read_before_an_answer_that_needs_it(response: str, turn: str, first: str) -> None:
    reading = follow_question(read_response(response), [turn])[0]
    assert reading.text == first
    assert reading.locate(len(first) - 3, len(first)) == (len(response) - 3, len(response))
    assert follow_question(read_response(response), [])[0].text == response


def test_tool_results_are_lines_of_keys_and_values() -> None:
    record = {"tool": "find_order", "result": [{"id": 7, "paid": None}, {"id": 8, "paid": False}], "tags": ["a", 2]}
    text = "tool: find_order\nresult 1: id: 7, paid: none\nresult 2: id: 8, paid: false\ntags: a, 2"
    assert format_record(record) == text
    with Engine(FakeRuntime({})) as engine:
        values = [engine.score("Order 7.", [passage], metrics="overlap").value for passage in (record, text, "Order 8")]
    assert values[0] == values[1] != values[2]


MOST_WORDS = 60
"""What the classifiers below read at once."""


def read_few_words(text: str) -> None:
    if len(text.split()) > MOST_WORDS:
        raise TooLong("too long")


def classify(call: Classify) -> Classified:
    """Contradiction for "never", else entailment."""
    read_few_words(call.hypothesis)
    label = "contradiction" if "never" in call.hypothesis else "entailment"
    shares = {name: 0.8 if name == label else 0.1 for name in ("entailment", "neutral", "contradiction")}
    total = sum(map(len, call.premises))
    return Classified(label, shares, 0, Read(1, total, total))


def classify_tokens(call: ClassifyTokens) -> ClassifiedTokens:
    """Doubts the word "never"."""
    read_few_words(call.text)
    words = [match.span() for match in re.finditer(r"\S+", call.text)]
    tokens = [(start, end, 0.1 if "never" in call.text[start:end] else 0.9) for start, end in words]
    total = sum(map(len, call.premises))
    return ClassifiedTokens(
        ("fine", "made up"), tuple(ClassifiedToken(a, b, (p, 1 - p)) for a, b, p in tokens), Read(1, total, total)
    )


def count_calls(words: int, knowledge: str = "The shop is old.") -> tuple[Score, list[Classify | ClassifyTokens]]:
    calls: list[Classify | ClassifyTokens] = []

    def note(call: Classify) -> Classified:
        calls.append(call)
        return classify(call)

    def note_tokens(call: ClassifyTokens) -> ClassifiedTokens:
        calls.append(call)
        return classify_tokens(call)

    sentence = "The shop number {} is open on weekdays. "
    response = "".join(sentence.format(number) for number in range(words // 8))
    response = response.replace("number 7 is", "number 7 is never")
    info = {"token_classifier": RoleInfo(("fine", "made up"), ("fine",))}
    runtime = FakeRuntime({"nli": note, "token_classifier": note_tokens}, role_info=info)
    with Engine(runtime) as engine:
        return engine.score(response, knowledge, metrics=("nli", "token_classifier")), calls


def test_a_long_response_is_scored_by_windows_at_linear_cost() -> None:
    counts = []
    for words in (500, 1000, 2000):
        score, calls = count_calls(words)
        assert [result.status for result in score.metrics.values()] == ["scored", "scored"]
        counts.append(len(calls))
        nli, tokens = score.metrics["nli"], score.metrics["token_classifier"]
        assert nli.value == 0.0
        assert tokens.value == pytest.approx(0.1)
        assert [span.text for span in tokens.unsupported] == ["never"]
        assert [span.text for span in nli.unsupported] == ["The shop number 7 is never open on weekdays."]
    assert counts[2] < 2.2 * counts[1] < 4.84 * counts[0]


def test_a_sentence_that_no_model_reads_at_once_is_cut() -> None:
    runtime = FakeRuntime({"nli": classify})
    response = ", ".join(f"item {number} is in stock" for number in range(90)) + ", and item 90 never is."
    with Engine(runtime) as engine:
        score = engine.score(response, "All is in stock.", metrics="nli")
    assert (score.status, score.value) == ("scored", 0.0)


def test_of_long_knowledge_models_read_an_excerpt() -> None:
    filler = "Nothing of interest was ever written in this position about anybody. " * 1500
    fact = "Shop number 12 is open on weekdays."
    score, calls = count_calls(200, f"{filler}\n\n{fact}\n\n{filler}")
    assert score.status == "scored"
    assert all(sum(map(len, call.premises)) < NEAR.whole for call in calls)
    assert all(fact.lower() in " ".join(call.premises).lower() for call in calls)
    assert score.coverage is not None
    assert 0 < score.coverage < 0.1
    assert "models read" in score.message


@pytest.mark.parametrize(
    ("passage", "expected"),
    [
        ("It has a struc -\ntural and evalu-\n  ation", "It has a structural and evaluation"),
        ("Monday -\nclosed, x-\nY, 5-\n7", "Monday -\nclosed, x-\nY, 5-\n7"),
        ("informa-\ntion, re-\nturn", "information, return"),
        ("2025-02-24T12:53:01+00:00", "24 February 2025 at 12:53 UTC"),
        ("2025-12-01T05:00Z", "1 December 2025 at 05:00 UTC"),
        ("2025-12-31T23:59:59.123+02:00", "31 December 2025 at 23:59 UTC+02:00"),
        ("2025-02-24T12:53", "24 February 2025 at 12:53"),
        ("2025-13-24T12:53, 2025-02-24 and 12:53", "2025-13-24T12:53, 2025-02-24 and 12:53"),
    ],
)
def test_models_read_words_whole_and_timestamps_as_people_write_them(passage: str, expected: str) -> None:
    assert spell_out(passage) == expected


def test_an_object_that_is_nested_too_deeply_is_refused() -> None:
    record: Any = "sweet"
    for _ in range(sys.getrecursionlimit()):
        record = {"a": record}
    with pytest.raises(InvalidRequest, match=r"knowledge\[1\] is nested too deeply"):
        list_passages(["Honey.", record])

"""Written documents: their format, the pairs that are drawn from them, and the rows that the reader learns from."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from groundwire.recipes.reader.model import STATES_NOTHING, SUPPORTED, UNSUPPORTED
from groundwire.recipes.reader.written_source import make_written_answer
from groundwire.recipes.written import WrittenPairs, WrittenRow, WrittenSpan, read_documents, write_labelled_rows
from groundwire.recipes.written.documents import parse_answer, parse_document
from groundwire.recipes.written.pairs import TEXTS, falsify

SPA = """The spa opens at 9:00.
---
Adults pay EUR 18.
@@
Q: And for two?
A: Two adults pay <<EUR 36||EUR 18>>.
N: Sorry?"""
EXCHANGED = "<<1:Mira||Jan>> founded it, <<1:Jan||Mira>> runs it."


def test_a_document_has_passages_and_answers_with_history() -> None:
    document = parse_document("hotel: spa", SPA)
    assert document.passages == ("The spa opens at 9:00.", "Adults pay EUR 18.")
    answer, nothing = document.answers
    assert (answer.history, answer.supported) == (("And for two?",), "Two adults pay EUR 36.")
    assert (nothing.history, nothing.states_nothing) == ((), True)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("Text.\nA: It is <<a||b>>.", "0 lines '@@'"),
        ("Text.\n---\n@@\nA: It is <<a||b>>.", "passage of the knowledge is empty"),
        ("Text.\n@@\nIt is <<a||b>>.", "before the first turn"),
        ("Text.\n@@\nA: It is <<a>>.", "no unsupported wording"),
        ("Text.\n@@\nA: It is <<a||a>>.", "supported wording twice"),
        ("Text.\n@@\nA: It is <<a||b.", "not closed"),
        ("Text.\n@@\nA: It is a.", "has no slot"),
        ("Text.\n@@\nN: It is <<a||b>>.", "states nothing"),
        ("Text.\n@@\nQ: What?", "no answer"),
    ],
)
def test_a_malformed_document_says_what_is_wrong(body: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_document("title", body)


@pytest.mark.parametrize(
    ("text", "wrong", "response", "unsupported"),
    [
        ("It opens <<at 9||at 10>>.", {0}, "It opens at 10.", [("10", "number")]),
        (
            "It <<opens||does not open>> on <<Monday||Friday>>.",
            {0},
            "It does not open on Monday.",
            [("does not open", "negation")],
        ),
        ("It opens<<||, with free tea>>.", {0}, "It opens, with free tea.", [("with free tea", "addition")]),
        ("It opens <<||late >>today.", {}, "It opens today.", []),
        (EXCHANGED, {0, 1}, "Jan founded it, Mira runs it.", [("Jan", "entity"), ("Mira", "entity")]),
        ("Come <<by bus||by 5 pm>>.", {0}, "Come by 5 pm.", [("5 pm", "date")]),
    ],
)
def test_the_unsupported_characters_are_those_that_differ(
    text: str, wrong: set[int], response: str, unsupported: list[tuple[str, str]]
) -> None:
    answer = parse_answer(text, (), False)
    falsified, spans = falsify(answer, frozenset(wrong), random.Random(0))
    assert falsified == response
    assert [(response[span.start : span.end], span.reason) for span in spans] == unsupported


@pytest.mark.parametrize(
    ("text", "groups", "supported"),
    [
        ("Open <<7:30||7:45>> to <<7:50||10>>.", ["", ""], "Open 7:30 to 7:50."),
        ("Until <<9:30||10>>.", [""], "Until 9:30."),
        ("It took <<1:06:58||1:07:12>>.", [""], "It took 1:06:58."),
        ("<<1:30||70>> % of A, <<1:70||30>> % of B.", ["1", "1"], "30 % of A, 70 % of B."),
        ("<<1:Mira||Jan>> did.", ["1"], "Mira did."),
    ],
)
def test_a_time_is_no_group(text: str, groups: list[str], supported: str) -> None:
    answer = parse_answer(text, (), False)
    assert ([slot.group for slot in answer.slots], answer.supported) == (groups, supported)


def test_a_long_line_of_prose_is_unwrapped_and_lists_are_not() -> None:
    line = "word " * 20
    answer = parse_document("t", f"Text.\n@@\nA: {line}\nmore <<a||b>>.\n- {line}\n- item").answers[0]
    assert answer.supported.count("\n") == 2


def test_sentences_are_labelled_by_their_spans() -> None:
    response = "Happy to help! It opens at 9. It closes at 5. Anything else?"
    start = response.index("5")
    row = WrittenRow(("It opens at 9, closes at 4.",), (), response, (WrittenSpan(start, start + 1, "number"),))
    labels = [part.label for part in make_written_answer(row).ranges]
    assert labels == [-100, SUPPORTED, UNSUPPORTED, STATES_NOTHING]
    nothing = make_written_answer(WrittenRow(row.knowledge, (), "Sorry, I don't know.", (), states_nothing=True))
    assert [part.label for part in nothing.ranges] == [STATES_NOTHING]


def test_every_document_of_the_project_can_be_drawn() -> None:
    documents = [document for path in sorted(TEXTS.glob("*.txt")) for document in read_documents(path)]
    train, dev = WrittenPairs.read("train"), WrittenPairs.read("dev")
    assert len(train) + len(dev) == len(documents)
    for pairs in (train, dev):
        rng = random.Random(1)
        for _ in range(300):
            pair = pairs.draw(150, rng)
            assert not pair.first.spans
            for span in pair.second.spans:
                words = pair.second.response[span.start : span.end]
                assert words
                assert words == words.strip()
            assert pair.second.states_nothing or pair.second.spans
            assert pair.first.response != pair.second.response


def test_rows_are_pairs_with_their_unsupported_characters(tmp_path: Path) -> None:
    count = write_labelled_rows("dev", tmp_path / "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == count
    assert {row["label"] for row in rows[::2]} == {1}
    for supported, unsupported in zip(rows[::2], rows[1::2], strict=True):
        assert (supported["knowledge"], supported["unsupported"]) == (unsupported["knowledge"], [])
        assert unsupported["response"] != supported["response"]
        assert all(unsupported["response"][span["start"] : span["end"]].strip() for span in unsupported["unsupported"])


def test_rows_of_named_answers_are_pairs_and_every_name_is_known(tmp_path: Path) -> None:
    write_labelled_rows("dev", tmp_path / "all.jsonl")
    rows = (tmp_path / "all.jsonl").read_text().splitlines()
    names = [json.loads(row)["id"].rpartition("-")[0] for row in (rows[0], rows[400])]
    assert write_labelled_rows("dev", tmp_path / "some.jsonl", names) == 4
    assert (tmp_path / "some.jsonl").read_text().splitlines() == [*rows[:2], *rows[400:402]]
    with pytest.raises(ValueError, match="no answer 'policy: none-0'"):
        write_labelled_rows("dev", tmp_path / "some.jsonl", [*names, "policy: none-0"])


def test_whole_writers_are_held_out(tmp_path: Path) -> None:
    for name in ("support_81", "detail_81"):
        text = "\n".join(f"=== {name}: {index}\nRoom {index}. {SPA}" for index in range(9))
        (tmp_path / f"{name}.txt").write_text(text)
    kept, held = (WrittenPairs.read(split, tmp_path).documents for split in ("train", "dev"))
    assert {document.title.split(":")[0] for document in kept} == {"support_81"}
    assert sum(document.title.startswith("detail_81") for document in held) == 9

"""Requests from files: every way of writing them is read, and a bad line costs nothing but itself."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.files import json_text, reading, sources
from groundwire.files.columns import parse_columns, read_passages
from groundwire.files.json_text import ArrayReader, MalformedText, decode_json
from groundwire.files.reading import Line, UntilError, read_lines
from groundwire.files.rows import split_rows
from groundwire.runtime.errors import InvalidRequest

GOOD = {"response": "Bees make honey.", "knowledge": "Honey is made by bees."}


def read(path: Path, columns: str | None = None) -> list[Line]:
    with read_lines(path, columns=parse_columns(columns)) as lines:
        return list(lines)


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def good(text: str = json.dumps(GOOD)) -> str:
    return text + "\n"


@pytest.mark.parametrize(
    ("cell", "passages"),
    [
        ("['It opens at 9.', \"It's free.\"]", ["It opens at 9.", "It's free."]),
        ("[\"It's free.\", 'It opens at 9.']", ["It's free.", "It opens at 9."]),
        ("['It opens at 9.' 'It is free.']", "['It opens at 9.' 'It is free.']"),
        ("['sic'] It is free.", "['sic'] It is free."),
        ("['It is free.', 9]", "['It is free.', 9]"),
    ],
)
def test_a_list_as_python_writes_it_is_passages(cell: str, passages: str | list[str]) -> None:
    assert read_passages(cell) == passages


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b"{not json", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"a": ' * 20_000, "nested too deeply"),
        (b'{"response": "\xff"}', "not UTF-8 at byte 15"),
        (b'{"response": "a", "response": "b"}', "the key 'response' is there more than once"),
        (b'{"response": "a", "x": [{"y": 1, "y": 2}]}', "the key 'y' is there more than once"),
        (b'{"response": NaN}', "NaN is no JSON number"),
        (b'{"response": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"id": "\\ud800"}', "the id cannot be written as JSON"),
        (b'{"answer": "a", "claim": "b"}', "both answer and claim may be the response; say which with --columns"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_line_of_json_costs_nothing_but_itself(tmp_path: Path, bad: bytes, problem: str) -> None:
    lines = read(write(tmp_path / "in.jsonl", good().encode() + bad + b"\n\n" + good().encode()))
    assert [(line.number, line.row) for line in lines] == [(1, GOOD), (2, None), (4, GOOD)]
    assert problem in lines[1].problem


def test_a_line_that_is_too_long_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_TEXT", 100)
    monkeypatch.setattr(reading, "MAX_TEXT", 100)
    long = json.dumps(GOOD | {"id": "x" * 950})
    lines = read(write(tmp_path / "in.jsonl", good() + good(long) + good()))
    assert [(line.number, line.row) for line in lines] == [(1, GOOD), (2, None), (3, GOOD)]
    assert lines[1].problem == "the line is longer than 100 bytes"
    table = f"response,knowledge\na,b\n{'x' * 950},b\nc,d\n"
    lines = read(write(tmp_path / "in.csv", table))
    assert [(line.number, line.row and line.row["response"]) for line in lines] == [(2, "a"), (3, None), (4, "c")]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("in.jsonl", good()),
        ("in.jsonl", "\ufeff" + good()),
        ("in.json", json.dumps([GOOD], indent=2)),
        ("in.json", "\ufeff" + json.dumps([GOOD])),
        ("in.csv", "response,knowledge\nBees make honey.,Honey is made by bees.\n"),
        ("in.csv", "\ufeffresponse,knowledge\r\n\r\nBees make honey.,Honey is made by bees.\r\n"),
        ("in.csv", "\ufeffid;response;knowledge\r\n1;Bees make honey.;Honey is made by bees.\r\n"),
        ("in.tsv", 'id\tresponse\tknowledge\n1\t"Bees make honey."\tHoney is made by bees.\n'),
        ("in.csv", "\n\nresponse\tknowledge\nBees make honey.\tHoney is made by bees.\n"),
        ("in.tsv", "response,knowledge\nBees make honey.,Honey is made by bees.\n"),
        ("in.CSV", '"response","knowledge"\n"Bees make honey.","Honey is made by bees."'),
    ],
)
def test_every_format_with_or_without_a_mark_and_compression(
    tmp_path: Path, name: str, text: str, packed: bool
) -> None:
    raw = gzip.compress(text.encode()) if packed else text.encode()
    (line,) = read(write(tmp_path / (name + ".gz" * packed), raw))
    assert line.row is not None
    assert {key: line.row[key] for key in GOOD} == GOOD
    (tmp_path / name).write_bytes(raw)  # the content says whether it is compressed
    assert len(read(tmp_path / name)) == 1


@pytest.mark.parametrize(
    ("name", "raw", "remedy"),
    [
        ("answers.xlsx", b"PK\x03\x04\x14\x00\x06\x00", "an Excel workbook or another ZIP archive; save it as CSV"),
        ("answers.xls", bytes.fromhex("d0cf11e0a1b11ae1"), "an Excel workbook; save it as CSV"),
        ("data-00000-of-00001.arrow", b"\xff\xff\xff\xff\x10\x00\x00\x00", "Arrow; give the folder that save_to_disk"),
        ("answers.arrow", b"ARROW1\x00\x00", "Arrow; save it as Parquet"),
        ("answers.bin", b"PAR1\x15\x04", "Parquet; let its name end in .parquet"),
    ],
)
def test_a_format_that_is_not_text_is_named_with_what_to_do(tmp_path: Path, name: str, raw: bytes, remedy: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{name} is {remedy}"):
        read(write(tmp_path / name, raw + b"rest" * 20))


CHAT = [
    {"role": "system", "content": "Answer from the handbook."},
    {"role": "user", "content": [{"type": "text", "text": "How many strings?"}, {"type": "image_url"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
    {"role": "tool", "tool_call_id": "c1", "content": "A violin has four strings."},
    {"role": "assistant", "content": "Six."},
    {"role": "user", "content": "Thanks."},
]


def test_a_chat_log_is_its_last_response(tmp_path: Path) -> None:
    rows = [
        {"messages": CHAT, "id": "a", "label": 0},
        {"messages": CHAT, "contexts": ["It has four."]},
        {"messages": CHAT[:2]},
        {"messages": "Hello."},
        {"messages": CHAT, "response": "Five.", "knowledge": "Four."},
    ]
    lines = read(write(tmp_path / "chats.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    chat = {"response": "Six.", "history": ["How many strings?"]}
    knowledge = ["Answer from the handbook.", "A violin has four strings."]
    assert lines[0].row == chat | {"knowledge": knowledge, "id": "a", "label": 0}
    assert lines[1].row == chat | {"knowledge": ["It has four."]}
    problem = "messages has no text of the role assistant, which would be the response"
    assert [line.problem for line in lines[2:4]] == [problem] * 2
    assert lines[4].row == rows[4]


def test_the_prompt_is_the_knowledge_where_nothing_else_is(tmp_path: Path) -> None:
    rows = [{"prompt": "Bees make honey.", "answer": "Bees do."}, {"prompt": "Who?", "answer": "a", "context": "b"}]
    first, second = read(write(tmp_path / "in.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert first.row == {"response": "Bees do.", "knowledge": "Bees make honey."}
    assert second.row == {"response": "a", "knowledge": "b", "prompt": "Who?"}


class Stdin:
    """Standard input with these bytes."""

    def __init__(self, raw: bytes) -> None:
        self.buffer = io.BytesIO(raw)


@pytest.mark.parametrize(
    "text",
    [good(), json.dumps([GOOD]), "response,knowledge\nBees make honey.,Honey is made by bees.\n"],
    ids=["lines", "array", "csv"],
)
def test_standard_input_may_be_any_of_them(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    for raw in (text.encode(), gzip.compress(text.encode())):
        monkeypatch.setattr(sys, "stdin", Stdin(raw))
        (line,) = read(Path("-"))
        assert line.row is not None
        assert {key: line.row[key] for key in GOOD} == GOOD
        assert not sys.stdin.buffer.closed


def test_bytes_of_standard_input_that_are_no_text_are_a_bad_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(good().encode() + b'{"response": "\xff"}\n' + good().encode()))
    assert [line.problem for line in read(Path("-"))] == ["", "not UTF-8 at byte 15", ""]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # an open quotation mark swallows no row
        ('response,knowledge\na,"b\nc,d\ne,f\n', [(2, None), (3, "c"), (4, "e")]),
        ('response,knowledge\na,"b"x\nc,d\n', [(2, None), (3, "c")]),
        ('response,knowledge\na,"b\nb"x\nc,d\n', [(2, None), (3, None), (4, "c")]),
        ('response,knowledge\n"a\na",b\nc,d\n', [(2, "a\na"), (4, "c")]),
        ("response,knowledge\na\nb,c,d\ne,f\n", [(2, None), (3, None), (4, "e")]),
        (f"response,knowledge\n{'x' * 200_000},b\n", [(2, "x" * 200_000)]),
        ("response,knowledge\na\0,b\nc,d\n", [(2, "a\0"), (3, "c")]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_row_of_a_table_costs_nothing_but_itself(
    tmp_path: Path, text: str, expected: list[tuple[int, str | None]]
) -> None:
    limit = csv.field_size_limit()
    lines = read(write(tmp_path / "in.csv", text))
    assert [(line.number, line.row and line.row["response"]) for line in lines] == expected
    assert csv.field_size_limit() == limit


def test_a_row_that_is_no_text_is_a_bad_row(tmp_path: Path) -> None:
    lines = read(write(tmp_path / "in.csv", b"response,knowledge\n\xff,b\nc,d\n"))
    assert [line.problem for line in lines] == ["not UTF-8", ""]


def test_cells_hold_utterances_passages_and_triples(tmp_path: Path) -> None:
    rows = [
        ["response", "knowledge", "history", "triples"],
        ["r", '["a", "b"]', "Hi!\nWhy?", '[["a", "b", "c"]]'],
        ["r", "[sic] a passage", "", ""],
        ["r", '["a",', "", ""],
    ]
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    first, second, third = read(write(tmp_path / "in.csv", text.getvalue()))
    assert first.row == {
        "response": "r", "knowledge": ["a", "b"], "history": ["Hi!", "Why?"], "triples": [["a", "b", "c"]],
    }  # fmt: skip
    assert second.row == {"response": "r", "knowledge": "[sic] a passage", "history": [], "triples": []}
    assert "not JSON" in third.problem


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        ({"answer": "r", "contexts": ["k"], "question": "h"}, None),
        ({"response": "r", "retrieved_contexts": ["k"], "user_input": "h"}, None),
        ({"actual_output": "r", "retrieval_context": ["k"], "input": "h"}, None),
        ({"answer": "r", "context": ["k"], "question": "h"}, None),
        ({"answer": "r", "context": ["k"], "contexts": ["x"], "question": "h"}, "knowledge=context"),
        ({"text": "r", "response": "x", "docs": ["k"], "history": ["h"]}, "response=text, knowledge=docs"),
    ],
)
def test_the_names_of_other_programs(tmp_path: Path, row: dict[str, Any], columns: str | None) -> None:
    (line,) = read(write(tmp_path / "in.jsonl", json.dumps(row)), columns)
    assert line.row is not None, line.problem
    assert {key: line.row[key] for key in ("response", "knowledge", "history")} == {
        "response": "r",
        "knowledge": ["k"],
        "history": ["h"],
    }


@pytest.mark.parametrize("value", ["response", "response=", "reply=text", "response=a,response=b"])
def test_columns_that_say_nothing_are_refused(value: str) -> None:
    with pytest.raises(InvalidRequest, match=r"is not FIELD=NAME"):
        parse_columns(value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.csv", b"text,knowledge\na,b\n", "no column response; it has text, knowledge"),
        ("in.csv", b"response,knowledge,response\na,b,c\n", "the column 'response' is there more than once"),
        ("in.csv", b"claim,answer,knowledge\na,b,c\n", "both answer and claim may be the response"),
        ("in.json", b'[{"response": 1},', "begins with '\\[' and is no JSON array"),
        ("in.jsonl.gz", gzip.compress(good().encode() * 3000)[:-20], "is damaged"),
        ("in.jsonl.gz", b"\x1f\x8bnot gzip", "is damaged"),
        ("in.jsonl", "{}".encode("utf-16"), "is UTF-16; save it as UTF-8"),
        ("in.jsonl", None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_error(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        write(tmp_path / name, content)
    with pytest.raises(InvalidRequest, match=message):
        read(tmp_path / name)


def test_an_error_of_the_caller_is_not_one_of_the_source(tmp_path: Path) -> None:
    def fail() -> None:
        with read_lines(write(tmp_path / "in.jsonl", good())) as lines:
            next(lines)
            raise OSError("mine")

    with pytest.raises(OSError, match="mine"):
        fail()


def test_what_comes_before_an_error_is_there_first(tmp_path: Path) -> None:
    damaged = write(tmp_path / "in.jsonl.gz", gzip.compress(good().encode() * 3000)[:-20])
    with read_lines(damaged) as lines:
        items = UntilError(lines)
        assert len([line for line in items if line.row == GOOD]) > 2000
        assert list(items) == []
        with pytest.raises(InvalidRequest, match="is damaged"):
            items.raise_error()


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    from pyarrow import parquet

    path = tmp_path / "in.parquet"
    rows = [{"id": i, "answer": "r", "contexts": ["k", "l"], "question": None} for i in range(600)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    lines = read(path)
    assert [line.number for line in lines] == list(range(1, 601))
    assert lines[-1].row == {"id": 599, "response": "r", "knowledge": ["k", "l"], "history": None}
    path.write_bytes(b"PAR1 and something else")
    with pytest.raises(InvalidRequest, match="cannot be read as Parquet"):
        read(path)


def test_parquet_without_the_extra_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidRequest, match=r"pip install 'groundwire\[parquet\]'"):
        read(write(tmp_path / "in.parquet", b"PAR1"))


CELLS = st.text(st.sampled_from('ab,"\n\r é'), max_size=8)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=4), max_size=6))
def test_what_csv_writes_is_read_again(rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    lines = text.getvalue().splitlines(keepends=True) if "\r" not in str(rows) else io.StringIO(text.getvalue(), "")
    read_again = list(split_rows(lines))
    assert [row.cells for row in read_again] == rows
    assert all(not row.problem for row in read_again)


@given(st.lists(st.text(st.sampled_from('ab,"'), max_size=6).map(lambda line: line + "\n"), max_size=12))
def test_every_line_is_in_a_row_or_named_as_broken(lines: list[str]) -> None:
    """Whatever the quotation marks do, no line is lost without a word and none is read twice."""
    rows = list(split_rows(lines))
    starts = [row.line for row in rows]
    assert starts == sorted(set(starts))
    ends = [*starts, len(lines) + 1][1:]
    for row, end in zip(rows, ends, strict=True):
        if row.problem:
            assert not row.cells
        elif "\n" not in "".join(row.cells):
            assert all(not line.strip() for line in lines[row.line : end - 1])
    before = lines[: starts[0] - 1] if starts else lines
    assert all(not line.strip() for line in before)


def test_an_empty_table_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_bytes(b"")
    with read_lines(tmp_path / "empty.csv") as lines:
        assert list(lines) == []


def test_a_file_of_another_kind_is_one_message(tmp_path: Path) -> None:
    text = "# A title\n\nand a text\n" * 10
    with pytest.raises(InvalidRequest, match=r"None of the first 20 lines can be read \(line 1: not JSON"):
        read(write(tmp_path / "README.md", text))
    lines = read(write(tmp_path / "mostly.jsonl", text + good()))
    assert [line.row is None for line in lines] == [True] * 20 + [False]


def test_a_repeated_key_among_many_is_found_in_linear_time() -> None:
    keys = ",".join(f'"k{index}":1' for index in range(200_000))
    started = time.process_time()
    with pytest.raises(MalformedText, match="'k199999' is there more than once"):
        decode_json(f'{{{keys},"k199999":2}}')
    assert time.process_time() - started < 2


@pytest.mark.parametrize("chunk", [1, 2, 3, 65_536])
@pytest.mark.parametrize(
    "text",
    ["[]", " [ ] ", '\ufeff[{"a": 1}]', '[12345, "é", {"a": [1, {"b": "]"}]}, null]\n', "[" + "7," * 5000 + "7]"],
)
def test_an_array_is_read_as_the_whole_of_it_would_be(text: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "_CHUNK", chunk)
    assert list(ArrayReader(io.BytesIO(text.encode()))) == json.loads(text.removeprefix("\ufeff"))


@pytest.mark.parametrize(
    "text",
    ["[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1] 2", "[tru", '["a', "[NaN]", '[{"a":1,"a":2}]', "[" * 100_000],
)
def test_what_is_no_array_is_malformed(text: str) -> None:
    with pytest.raises(MalformedText, match=r"^entry \d+: "):
        list(ArrayReader(io.BytesIO(text.encode())))


@pytest.mark.no_cover
def test_an_array_of_any_length_is_read_with_the_memory_of_an_entry(tmp_path: Path) -> None:
    """85 KB of gzip become 90 MB of empty lists, which took 2.3 GB as one value."""
    file = tmp_path / "a.json.gz"
    with gzip.open(file, "wb", 6) as packed:
        packed.write(b"[")
        for _ in range(30):
            packed.write(b"[]," * 1_000_000)
        packed.write(b"1]")
    with gzip.open(file) as stream:
        reader = iter(ArrayReader(stream))  # type: ignore[arg-type]
        tracemalloc.start()
        count = sum(1 for _ in itertools.islice(reader, 100_000))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert count == 100_000
    assert peak < 20_000_000
    with pytest.raises(InvalidRequest, match="None of the first"), read_lines(file) as lines:
        next(lines)


def test_an_entry_of_too_many_values_or_too_many_characters_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MalformedText, match="more than 8,388,608 values"):
        decode_json("[" + "1," * (1 << 23) + "1]")
    monkeypatch.setattr(json_text, "MAX_TEXT", 1000)
    with pytest.raises(MalformedText, match="entry 2: it is longer than 1,000 characters"):
        list(ArrayReader(io.BytesIO(b'[1, "' + b"a" * 1_000_000 + b'"]')))

"""What is odd about a file is read or reported; no example is dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundwire.evaluate.datasets import LeftOut, list_formats, read_dataset
from groundwire.runtime.errors import InvalidRequest
from tests.support.dataset_files import BEGIN, CROSS, FACTUAL, Q2, lines, save, table

GOOD = {"response": "Rain is wet.", "knowledge": "Rain is water.", "label": 1}
KG = ("Messages", "User Rating", "Assistant Rating")
KNOWLEDGE_NAMES = "knowledge, contexts, context, retrieved_contexts, retrieval_context, doc"
TURN = ("0", "4", "1", "Tea", "Is tea hot?", "hot .", "cold .", "Tea is hot.", "Yes!")


@pytest.mark.parametrize("before", ["", "\ufeff"], ids=["plain", "byte order mark"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_encodings_and_line_ends(before: str, ending: str, tmp_path: Path) -> None:
    text = before + lines(GOOD, GOOD | {"label": 0}).replace("\n", ending)
    assert [example.label for example in read_dataset(save(tmp_path, "a.jsonl", text))] == [1, 0]
    begin = before + (BEGIN + "t5\twow\tRain.\tHi\tIt rains\tGeneric\n").replace("\n", ending)
    (example,) = read_dataset(save(tmp_path, "b.tsv", begin))
    assert (example.response, example.verifiable) == ("It rains", False)
    cross = before + table(CROSS, (*TURN, "0", "1"), ending=ending)
    assert [example.label for example in read_dataset(save(tmp_path, "c.csv", cross))] == [1, 0]


def problems(path: Path, format: str | None = None) -> list[str]:
    """The lines of the error after its first one."""
    with pytest.raises(InvalidRequest, match="broken example") as caught:
        read_dataset(path, format)
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def test_all_broken_examples_are_named(tmp_path: Path) -> None:
    text = (
        lines(GOOD)
        + "\nnot JSON\n"
        + lines(
            {"response": "Rain."},
            {"knowledge": "Rain."},
            GOOD | {"label": 2},
            GOOD | {"label": "perhaps"},
            GOOD | {"history": "one string"},
            GOOD,
        )
        + '["a list"]\n'
    )
    messages = problems(save(tmp_path, "own.jsonl", text))
    assert [message.partition(":")[0] for message in messages] == [f"line {n}" for n in (3, 4, 5, 6, 7, 8, 10)]
    assert "not JSON" in messages[0]
    assert messages[1:4] == [
        f"line 4: no knowledge; allowed are {KNOWLEDGE_NAMES}",
        "line 5: no response; allowed are response, answer, actual_output, claim, messages, and a pair of consistent "
        "and inconsistent",
        "line 6: label is 2; allowed are 1 (consistent), 0 (inconsistent), null, and their words",
    ]
    assert messages[4].startswith("line 7: label is 'perhaps'; allowed are 'consistent', 'faithful'")
    assert "$.history" in messages[5]


def test_of_many_broken_examples_some_are_spelt_out(tmp_path: Path) -> None:
    path = save(tmp_path, "own.jsonl", lines(*[GOOD | {"label": 3}] * 30))
    messages = problems(path)
    assert len(messages) == 21
    assert messages[-1] == "and 10 more"
    with pytest.raises(InvalidRequest, match=r"own.jsonl \(format jsonl\) has 30 broken examples"):
        read_dataset(path)


def test_broken_examples_are_left_out_where_it_is_said(tmp_path: Path) -> None:
    path = save(tmp_path, "own.jsonl", lines(GOOD, GOOD | {"label": 3}, *[GOOD] * 8))
    calls: list[tuple[str, LeftOut]] = []

    def leave_out(message: str, rows: LeftOut) -> None:
        calls.append((message, rows))

    assert len(read_dataset(path, leave_out=leave_out)) == 9
    (message, rows), *_ = calls
    assert "has 1 broken example, left out" in message
    assert "line 2: label is 3" in message
    assert rows == LeftOut(1, ("line 2",))
    more = save(tmp_path, "more.jsonl", lines(GOOD | {"label": 3}, *[GOOD] * 8))
    with pytest.raises(InvalidRequest, match="1 broken example, so none was read"):
        read_dataset(more, leave_out=leave_out)


def test_score_columns_hold_numbers(tmp_path: Path) -> None:
    path = save(tmp_path, "own.jsonl", lines(GOOD | {"hhem": 0.5}, GOOD | {"hhem": None}, GOOD | {"hhem": "high"}))
    with pytest.raises(InvalidRequest, match="line 3: hhem is 'high'; allowed are numbers, and nothing"):
        read_dataset(path, score_columns=["hhem"])
    with pytest.raises(InvalidRequest, match=r"No row of .* has a number in the column other"):
        read_dataset(path, score_columns=["other"])


def test_ids_are_unique(tmp_path: Path) -> None:
    text = lines(GOOD | {"id": "x"}, GOOD | {"id": 2}, GOOD | {"id": "x"}, GOOD | {"id": "2"})
    assert problems(save(tmp_path, "own.jsonl", text)) == [
        "line 3: id 'x' was given in line 1 already",
        "line 4: id '2' was given in line 2 already",
    ]


def test_a_number_replaces_a_missing_id_and_may_clash_with_a_given_one(tmp_path: Path) -> None:
    assert problems(save(tmp_path, "own.jsonl", lines(GOOD | {"id": "2"}, GOOD))) == [
        "line 2: id '2' was given in line 1 already"
    ]


def test_a_row_of_a_table_is_named_by_the_line_it_starts_on(tmp_path: Path) -> None:
    text = table(
        ("response", "knowledge", "label"),
        ("Rain.", "Two\nlines\nof rain.", "1"),
        ("Rain.", "Rain\nagain.", "5"),
        ("Rain.", "Rain.", "0"),
        ("Rain.", "Rain.", "maybe"),
    )
    messages = problems(save(tmp_path, "own.csv", text))
    assert [message.partition(":")[0] for message in messages] == ["line 5", "line 8"]
    assert "label is '5'; allowed are 'consistent', 'faithful'" in messages[0]
    assert messages[1] == "line 8: label is 'maybe'"  # what is allowed is listed once


def test_a_row_with_cells_too_few_or_too_many(tmp_path: Path) -> None:
    text = BEGIN + "t5\twow\tRain.\tHi\tIt rains\n" + "t5\twow\tRain.\tHi\tIt rains\tGeneric\tmore\n"
    assert problems(save(tmp_path, "begin.tsv", text)) == [
        "line 2: 5 cells, but the first line names 6 columns",
        "line 3: 7 cells, but the first line names 6 columns",
    ]


def test_an_open_quote_is_named_and_hides_no_other_row(tmp_path: Path) -> None:
    text = table(("response", "knowledge"), ("Rain.", "Rain.")) + 'Rain.,"an open quote\nRain.,Rain.\n'
    (messages,) = problems(save(tmp_path, "own.csv", text))
    assert messages.startswith("line 3: not a row of a table")
    assert messages.endswith("unexpected end of data")


LABELS = {
    "begin": (
        "b.tsv",
        BEGIN + "t5\twow\tRain.\tHi\tIt rains\tAttributable\n",
        "the label is 'Attributable'; allowed are 'fully attributable', ",
    ),
    "q2": ("c.csv", table(CROSS, (*TURN, "0", "2")), "memnet_label is '2'; allowed are '0', '1'"),
    "factual": (
        "gt.csv",
        table(FACTUAL, ("1", "m", "d", "A: Hi<br>", "Rain.", "It rains.", "0.5", "No", "maybe")),
        "Verifiable is 'maybe'; allowed are 'y', 'n'",
    ),
    "factual, correctness": (
        "gt.csv",
        table(FACTUAL, ("1", "m", "d", "A: Hi<br>", "Rain.", "It rains.", "7", "No", "y")),
        "Avg Factual Correctness is 7; allowed are numbers from 0 to 1",
    ),
    "dnli": (
        "d.jsonl",
        '[{"sentence1": "a", "sentence2": "b", "label": "entailment"}]',
        "label is 'entailment'; allowed are 'positive', 'neutral', 'negative'",
    ),
    "usr": (
        "u.json",
        '[{"context": "a", "fact": "b", "responses": [{"response": "c", "model": "d", "Uses Knowledge": []}]}]',
        "response 1 has no score of 'Uses Knowledge'",
    ),
    "usr, without the field": (
        "u.json",
        '[{"context": "a", "fact": "b", "responses": [{"response": "c", "model": "d"}]}]',
        "missing required field `Uses Knowledge`",
    ),
    "faithdial": (
        "f.json",
        '[{"utterances": [{"response": "a", "knowledge": "b", "BEGIN": []}, {"response": 1, "knowledge": "b"}]}]',
        "utterance 2: Expected `str`, got `int`",
    ),
    "opendialkg": (
        "o.csv",
        table(KG, ('[{"metadata": {"path": [0.0]}}]', "", "")),
        "a path has no triples",
    ),
    "opendialkg, messages": (
        "o.csv",
        table(KG, ("Hello.", "", "")),
        "Messages is not a JSON list of messages",
    ),
}


@pytest.mark.parametrize("name", LABELS)
def test_wrong_values_say_what_is_allowed(name: str, tmp_path: Path) -> None:
    file, text, expected = LABELS[name]
    (messages,) = problems(save(tmp_path, file, text))
    assert expected in messages


@pytest.mark.parametrize("text", ["", "\ufeff", " \r\n\n"])
def test_an_empty_file(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="is empty"):
        read_dataset(save(tmp_path, "none.jsonl", text))


NO_EXAMPLES = {
    "begin.tsv": BEGIN,
    "cross.csv": table(CROSS),
    "opendialkg.csv": table(KG, ("[]", "", "")),
}


@pytest.mark.parametrize(("name", "text"), NO_EXAMPLES.items(), ids=list(NO_EXAMPLES))
def test_a_file_without_examples(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="holds no examples"):
        read_dataset(save(tmp_path, name, text))


def test_a_missing_file_and_one_in_another_encoding(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read: No such file"):
        read_dataset(tmp_path / "absent.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(lines(GOOD).encode() + b'{"response": "caf\xe9"}\n')
    with pytest.raises(InvalidRequest, match=r"not UTF-8 \(line 2\)"):
        read_dataset(tmp_path / "latin.jsonl")


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("text,label\nRain.,1\n", "names the columns text, label"),
        ("model_name\tknowledge\nt5\tRain.\n", "names the columns model_name, knowledge"),
        ('{"text": "Rain.", "label": 1}\n', "fields text, label"),
        ("{'response': 'Rain.'}\n", "cannot be read"),
    ],
)
def test_an_unknown_format_lists_the_formats(text: str, looks: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=looks) as caught:
        read_dataset(save(tmp_path, "x.txt", text))
    assert all(f"  {name}: " in str(caught.value) for name in list_formats())


def test_without_the_recipes_the_papers_formats_are_named_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groundwire.evaluate.datasets.find_spec", lambda name: None)
    assert list(list_formats()) == ["jsonl", "csv"]
    with pytest.raises(InvalidRequest, match="in no known format") as caught:
        read_dataset(save(tmp_path, "d.json", '[{"sentence1": "a", "sentence2": "b", "label": "positive"}]'))
    assert str(caught.value).endswith("The formats of the papers' sets are in groundwire-recipes.")


def test_a_format_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="Unknown format 'parquet'") as caught:
        read_dataset(save(tmp_path, "a.jsonl", lines(GOOD)), "parquet")
    assert "usr-q2" in str(caught.value)


def test_a_named_format_says_which_columns_are_missing(tmp_path: Path) -> None:
    path = save(tmp_path, "x.csv", table(("response", "label"), ("Rain.", "1")))
    with pytest.raises(InvalidRequest, match="no column 'knowledge'; it has 'response', 'label'"):
        read_dataset(path, "csv")
    cross = save(tmp_path, "cross.csv", table(CROSS[:-1], (*TURN, "0")))
    with pytest.raises(InvalidRequest, match="no column 'memnet_label'"):
        read_dataset(cross)


def test_a_column_that_is_named_twice(tmp_path: Path) -> None:
    path = save(tmp_path, "x.csv", table(("response", "knowledge", "knowledge"), ("Rain.", "a", "b")))
    with pytest.raises(InvalidRequest, match="the column 'knowledge' is there more than once"):
        read_dataset(path)


def test_a_damaged_array_is_reported_with_its_line(tmp_path: Path) -> None:
    path = save(tmp_path, "x.json", '[\n{"response": "a", "knowledge": "b"},\n{"response": ]\n')
    with pytest.raises(InvalidRequest, match="not JSON: Expecting value: line 3 column 14"):
        read_dataset(path, "jsonl")


def test_an_array_of_records_is_read_and_named_by_entry(tmp_path: Path) -> None:
    path = save(tmp_path, "x.json", '[{"response": "a", "knowledge": "b"}, {"response": "a"}]')
    assert problems(path) == [f"entry 2: no knowledge; allowed are {KNOWLEDGE_NAMES}"]


def test_quoted_line_breaks_in_the_header_of_a_q2_file(tmp_path: Path) -> None:
    text = table(
        (*Q2[:4], "message", "a\nnote", "response", "knowledge", "gold"), (*TURN[:5], "n", "hot", "Tea.", "Yes")
    )
    (example,) = read_dataset(save(tmp_path, "a_consistent.csv", text))
    assert (example.response, example.label) == ("hot", 1)

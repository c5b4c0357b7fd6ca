"""Knowledge graphs in files, and files that are broken."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine import InvalidRequest, Triple
from groundwire.repair import GraphProblem, KnowledgeGraph
from groundwire.repair.kg import MAX_PROBLEMS

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
ALIEN = Triple("Alien", "directed by", "Ridley Scott")
YEAR = Triple("Alien", "release year", "1979")
TSV = "Alien\tdirected by\tRidley Scott\nAlien\trelease year\t1979\n"
JSONL = '["Alien", "directed by", "Ridley Scott"]\n{"subject": "Alien", "predicate": "release year", "object": 1979}\n'


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def wrote(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data, 1) if name.endswith(".gz") else data)
        return path

    return wrote


Write = Callable[[str, str | bytes], Path]


def dialogues(*paths: Any) -> str:
    """A file as OpenDialKG's, one dialogue for each of ``paths``."""
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(["Messages", "User Rating", "Assistant Rating"])
    for path in paths:
        turns = [
            {"type": "chat", "sender": "user", "message": 'Do you know\nAlien, a "film"?'},
            {"type": "action", "action_id": "kgwalk/choose_path", "sender": "assistant", "metadata": {"path": path}},
            {"type": "chat", "sender": "assistant", "message": "Yes."},
        ]
        table.writerow([json.dumps(turns, indent=1), "4", "5"])
    return out.getvalue()


PATHS = (
    [1.0, [["Alien", "directed by", "Ridley Scott"]], "Alien directed by Ridley Scott"],
    [0.5, [["Ridley Scott", "~directed by", "Alien"], ["Alien", "release year", "1979"]], "…"],
)


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content", "reader"),
    [
        ("films.tsv", TSV, KnowledgeGraph.from_tsv),
        ("films.TSV", TSV, KnowledgeGraph.from_tsv),
        ("opendialkg_triples.txt", TSV, KnowledgeGraph.from_opendialkg),
        ("films.jsonl", JSONL, KnowledgeGraph.from_jsonl),
        ("opendialkg.csv", dialogues(*PATHS), KnowledgeGraph.from_opendialkg),
    ],
)
def test_every_format(write: Write, name: str, packed: str, content: str, reader: Any) -> None:
    path = write(name + packed, content)
    for graph in (KnowledgeGraph.load(path), reader(str(path), aliases={"Alien": ["Чужой"]})):
        assert list(graph) == [ALIEN, YEAR]
        assert (graph.problems, graph.problem_count) == ((), 0)
    assert [link.entity for link in graph.link("чужой")] == ["Alien"]


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + TSV,
        "Subject\tPredicate\tObject\n" + TSV,
        "head\trelation\ttail\n" + TSV,
        "# films\n\n" + TSV + "\n  \n",
        TSV.replace("\n", "\r\n"),
        TSV.rstrip("\n"),
        " Alien\tdirected by \t Ridley Scott\n" + TSV,
        TSV + "Ridley Scott\t~directed by\tAlien\n",
    ],
    ids=["mark", "header", "other header", "comments", "crlf", "no last break", "spaces", "inverse"],
)
def test_tab_separated_files_as_people_write_them(write: Write, content: str) -> None:
    graph = KnowledgeGraph.load(write("films.tsv", content))
    assert list(graph) == [ALIEN, YEAR]
    assert graph.problems == ()


def test_nothing_is_quoted_in_tab_separated_files(write: Write) -> None:
    graph = KnowledgeGraph.load(write("a.tsv", '#Alive\tgenre\t"horror\n"Heroes"\tyear\t1977\n'))
    assert list(graph) == [Triple("#Alive", "genre", '"horror'), Triple('"Heroes"', "year", "1977")]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"Alien\tdirected by", "2 fields; a triple is subject, predicate and object, with tabs between them"),
        (b"Alien directed by Ridley Scott", "1 field; a triple is"),
        (b"a\tb\tc\td", "4 fields; a triple is"),
        (b"\tb\tc", "the subject is empty"),
        (b"a\t \tc", "the predicate is empty"),
        (b"a\tb\t", "the object is empty"),
        (b"a\tb\t" + b"x" * 1001, "the object has 1,001 characters; allowed are 1,000"),
        (b"a\tb\tc\0d", "the object has a NUL character or a lone surrogate"),
        (b"a\tb\t\xff", "not UTF-8 at byte 5"),
        (b"a" * (3 << 20), "the line is longer than 1,048,576 bytes"),
    ],
    ids=range(10),
)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_broken_line_is_named_and_the_rest_kept(write: Write, line: bytes, what: str, packed: str) -> None:
    path = write(f"a.tsv{packed}", b"p\tq\tr\n" + line + b"\n" + TSV.encode())
    graph = KnowledgeGraph.load(path)
    assert list(graph) == [Triple("p", "q", "r"), ALIEN, YEAR]
    assert [problem.line for problem in graph.problems] == [2]
    assert graph.problems[0].what.startswith(what)
    assert "a" not in graph


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('["Alien", "year"]', "not a JSON array or object of subject, predicate and object: Expected `array`"),
        ('["Alien", "year", 1979.5]', "not a JSON"),
        ('["Alien", ["year"], "x"]', "not a JSON"),
        ('["a", "b", "c"', "not a JSON array or object of subject, predicate and object: Input data was truncated"),
        ('{"subject": "Alien", "object": "x"}', "not a JSON"),
        ("Alien\tyear\t1979", "not a JSON"),
        ('["", "b", "c"]', "the subject is empty"),
    ],
)
def test_a_broken_json_line(write: Write, line: str, what: str) -> None:
    graph = KnowledgeGraph.load(write("a.jsonl", f'\n["p", "q", "r"]\n{line}\n{JSONL}'))
    assert list(graph) == [Triple("p", "q", "r"), ALIEN, YEAR]
    assert [problem.line for problem in graph.problems] == [3]
    assert graph.problems[0].what.startswith(what)


def test_broken_dialogues(write: Write) -> None:
    good = dialogues(*PATHS)
    broken = dialogues([1.0], [1.0, [["a", "b"]]], [1.0, [["a", "", "c"]]]).split("\n", 1)[1]
    content = (good + broken).encode() + b'"[{",1,2\r\n\xff,1,2\r\n\r\n"no list",1,1\r\n'
    graph = KnowledgeGraph.load(write("opendialkg.csv", content))
    assert list(graph) == [ALIEN, YEAR]
    lines = content.split(b"\n")
    assert [problem.what[:40] for problem in graph.problems] == [
        "a path without a list of triples as its ",
        "a path without a list of triples as its ",
        "the predicate is empty",
        "Messages is not a JSON list of messages:",
        "Messages is not a JSON list of messages:",
        "Messages is not a JSON list of messages:",
    ]
    for problem in graph.problems[:3]:
        assert problem.line is not None
        assert lines[problem.line - 1].startswith(b']",4,5')
    assert [problem.line for problem in graph.problems[3:]] == [len(lines) - 4, len(lines) - 3, len(lines) - 1]


def test_many_triples_with_a_broken_line(write: Write) -> None:
    count, at = 100_000, 77_777
    rows = [f"s{number % 997}\tp{number % 7}\to{number % 20011}" for number in range(count)]
    rows[at - 1] = "s1 p1 o1"
    graph = KnowledgeGraph.load(write("big.tsv", "\n".join(rows)))
    assert len(graph) == count - 1
    assert graph.problems == (
        GraphProblem(at, "1 field; a triple is subject, predicate and object, with tabs between them"),
    )
    assert len(graph.entities) == 997 + 20011
    ends = rows[-1].split("\t")
    assert graph.triples_between(ends[2], ends[0])[-1] == Triple(*ends)


def test_problems_are_bounded_and_counted(write: Write) -> None:
    graph = KnowledgeGraph.load(write("a.tsv", "a\tb\tc\n" + "x\n" * 100_000))
    assert len(graph.problems) == MAX_PROBLEMS
    assert graph.problem_count == 100_000
    assert [problem.line for problem in graph.problems] == list(range(2, 2 + MAX_PROBLEMS))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "", "contains no triples. Pass a file with triples"),
        ("a.tsv", "subject\tpredicate\tobject\n", "contains no triples"),
        ("a.tsv", JSONL, r"contains no triples \(line 1: 1 field; a triple is"),
        ("a.jsonl", TSV, r"contains no triples \(line 1: not a JSON"),
        ("a.csv", TSV, "has no column 'Messages' in its first line"),
        ("a.csv", "", "has no column 'Messages'"),
        (
            "a.xml",
            TSV,
            r"has no suffix that says its format; allowed are \.tsv, \.txt, \.jsonl, \.csv, each also with \.gz",
        ),
        ("films", TSV, "has no suffix that says its format"),
        ("films.gz", TSV, "has no suffix that says its format"),
    ],
)
def test_files_without_triples(write: Write, name: str, content: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        KnowledgeGraph.load(write(name, content))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"a\.tsv cannot be read: No such file"):
        KnowledgeGraph.load(tmp_path / "a.tsv")
    (tmp_path / "b.tsv").mkdir()
    with pytest.raises(InvalidRequest, match=r"b\.tsv cannot be read: Is a directory"):
        KnowledgeGraph.load(tmp_path / "b.tsv")


@pytest.mark.parametrize(("name", "content"), [("a.tsv.gz", TSV * 5000), ("a.csv.gz", dialogues(*PATHS) * 99)])
@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_damaged_archives(tmp_path: Path, name: str, content: str, damage: str) -> None:
    data = gzip.compress(content.encode(), 1)
    half = len(data) // 2
    (tmp_path / name).write_bytes(data[:half] if damage == "cut" else data[:half] + b"\xff" * 9 + data[half + 9 :])
    with pytest.raises(InvalidRequest, match=r"is damaged after line \d+: .*again"):
        KnowledgeGraph.load(tmp_path / name)


def test_an_archive_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(gzip.compress(TSV.encode()))
    assert len(KnowledgeGraph.load(path)) == 2


def test_the_example_graph() -> None:
    graph = KnowledgeGraph.load(EXAMPLES / "films.tsv")
    assert graph.problems == ()
    assert 150 <= len(graph) <= 250
    lines = (EXAMPLES / "films.tsv").read_text(encoding="utf-8").splitlines()
    assert len(graph) == len(lines)  # nothing is said twice
    for film in {triple.subject for triple in graph}:
        said = [triple.predicate for triple in graph.neighbourhood([film]).triples if triple.subject == film]
        assert said.count("directed_by") == said.count("release_year") == 1, film
        assert {"starring", "genre"} <= set(said), film
    for name in graph.entities:
        assert [(link.entity, link.how) for link in graph.link(f"what about {name}, then")] == [(name, "exact")]
        assert [link.entity for link in graph.link(f"what about {name.lower()}, then")] == [name]

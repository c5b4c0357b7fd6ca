"""Random and damaged graph files: triples, problem lines or an InvalidRequest, and nothing else."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import InvalidRequest, Triple
from groundwire.repair import KnowledgeGraph
from groundwire.repair.kg.table import MAX_NAME

Row = tuple[str, str, str]
NAME = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="~\ufeff"), min_size=1, max_size=8)
ROWS = st.lists(st.tuples(*[NAME.filter(lambda name: name == name.strip())] * 3), min_size=1, max_size=6)


def write_tsv(rows: Sequence[Row]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def write_jsonl(rows: Sequence[Row]) -> str:
    keys = ("subject", "predicate", "object")
    return "".join(json.dumps(dict(zip(keys, row, strict=True)) if i % 2 else row) + "\n" for i, row in enumerate(rows))


def write_dialogues(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(["Messages", "User Rating"])
    for row in rows:
        table.writerow([json.dumps([{"message": 'Hi,\n"you"'}, {"metadata": {"path": [1.0, [row], "…"]}}]), "4"])
    return out.getvalue()


FORMATS = {"a.tsv": write_tsv, "a.txt": write_tsv, "a.jsonl": write_jsonl, "a.csv": write_dialogues}


def pack(text: str, packed: str) -> bytes:
    return gzip.compress(text.encode(), 1, mtime=0) if packed else text.encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("name", FORMATS)
@given(rows=ROWS)
def test_a_graph_is_read_as_it_was_written(folder: Path, name: str, packed: str, rows: list[Row]) -> None:
    path = folder / (name + packed)
    path.write_bytes(pack(FORMATS[name](rows), packed))
    graph = KnowledgeGraph.load(path)
    assert list(graph) == list(dict.fromkeys(Triple(*row) for row in rows))
    assert graph.problem_count == 0


def check_damaged(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    try:
        graph = KnowledgeGraph.load(path)
    except InvalidRequest:
        return
    assert len(graph) > 0
    for triple in graph:
        for part in (triple.subject, triple.predicate, triple.object):
            assert 0 < len(part) <= MAX_NAME
            assert part.strip()
            assert "\0" not in part.encode().decode()  # a lone surrogate cannot be encoded
    assert all(problem.line > 0 and problem.what for problem in graph.problems)
    assert graph.problem_count >= len(graph.problems)


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("name", FORMATS)
@given(rows=ROWS, data=st.data())
def test_a_damaged_file_has_triples_problems_or_an_error(
    folder: Path, name: str, packed: str, rows: list[Row], data: st.DataObject
) -> None:
    raw = bytearray(pack(FORMATS[name](rows), packed))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    check_damaged(folder / (name + packed), bytes(raw))
    check_damaged(folder / (name + packed), bytes(raw[: data.draw(st.integers(0, len(raw)))]))


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("name", FORMATS)
def test_each_damaged_byte_and_each_end_of_a_small_file(folder: Path, name: str, packed: str) -> None:
    raw = pack(FORMATS[name]([("A", "is", "B"), ("Ä", "of", "C")]), packed)
    for position in range(len(raw)):
        check_damaged(folder / (name + packed), raw[:position])
        for mask in (1, 32, 128):
            flipped = bytes([raw[position] ^ mask])
            check_damaged(folder / (name + packed), raw[:position] + flipped + raw[position + 1 :])


@pytest.mark.parametrize("beginning", ['"', "Messages,"], ids=["quoted", "unquoted"])
def test_a_first_line_of_an_endless_cell_is_refused(folder: Path, beginning: str) -> None:
    (folder / "long.csv").write_text(beginning + "x" * 200_000)
    # The csv module's limit of a cell belongs to the process, so that another reader may have raised it.
    with pytest.raises(InvalidRequest, match=r"has no column 'Messages'|contains no triples"):
        KnowledgeGraph.load(folder / "long.csv")

"""A results file continues a run, cuts off an incomplete line, and does not change other files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from groundwire.engine.jsonl.results_file import ResultsFile
from groundwire.runtime.errors import InvalidRequest


class Line(msgspec.Struct, frozen=True):
    line: int
    made_with: str


def read(path: Path) -> list[Line]:
    return ResultsFile(path, Line).entries


def test_what_is_appended_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    file = ResultsFile(path, Line)
    assert file.entries == []
    assert not path.exists()  # nothing was written yet
    file.append(Line(1, "a\u2028b"))  # a separator that JSON leaves as it is, and that is no end of a line
    assert read(path) == [Line(1, "a\u2028b")]
    file.append(Line(2, "c"))
    file.close()
    assert [entry.line for entry in read(path)] == [1, 2]


@pytest.mark.parametrize("rest", ['{"line":2,"made_', '{"', '{"line":2,"made_with":"s"}'])
def test_half_a_line_is_cut_off(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text('{"line":1,"made_with":"s"}\n' + rest)
    assert read(path) == [Line(1, "s")]
    assert path.read_text() == '{"line":1,"made_with":"s"}\n'


@pytest.mark.parametrize(
    "text", ["my notes", "my notes\n", '{"other": 1}', "[1, 2]", '{"line":1}\n', '{"line":1}\nnotes']
)
def test_a_file_that_holds_something_else_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidRequest, match="not a file of results"):
        read(path)
    assert path.read_text() == text


def test_settings_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text('{"line":1,"made_with":"s"}\n{"line":2,"made_with":"t"}\n')
    with pytest.raises(InvalidRequest, match=r"made with other settings: t\. The settings now are s"):
        ResultsFile(path, Line).check("s")
    path.write_text('{"line":1,"made_with":"s"}\n')
    ResultsFile(path, Line).check("s")


def test_the_directory_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="does not exist; create it"):
        read(tmp_path / "absent" / "out.jsonl")

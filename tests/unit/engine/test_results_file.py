"""A results file continues a run, removes an incomplete end, and does not change other files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.files.results_file import ResultsFile, read_results
from groundwire.runtime.errors import InvalidRequest, OutputError


class Line(msgspec.Struct, frozen=True):
    line: int
    made_with: str


WHOLE = '{"line":1,"made_with":"s"}\n'


def read(path: Path) -> list[Line]:
    """The entries of the file once it was opened to be continued."""
    file = ResultsFile(path, Line)
    file.close()
    return file.entries


def test_what_is_appended_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    file = ResultsFile(path, Line)
    assert file.entries == []
    file.append(Line(1, "a\u2028b"))  # a separator that JSON leaves as it is, and that is no end of a line
    assert read_results(path, Line) == [Line(1, "a\u2028b")]
    file.append(Line(2, "c"))
    file.close()
    assert [entry.line for entry in read(path)] == [1, 2]


def test_a_new_file_without_results_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    assert read(path) == []
    assert not path.exists()
    path.touch()
    assert read(path) == []
    assert path.exists()  # it was there before


@pytest.mark.parametrize("rest", ['{"line":2,"made_', '{"', '{"line":2,"made_with":"s"}', "\0" * 5000, '{"li\0\0\0'])
def test_an_incomplete_end_is_cut_off_after_a_result(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(WHOLE + rest)
    assert read(path) == [Line(1, "s")]
    assert path.read_text() == WHOLE


@pytest.mark.parametrize("rest", ['{"line":2,"made_', "{", "\0" * 500])
def test_what_may_be_another_programs_is_renamed(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "out.jsonl"
    (tmp_path / "out.jsonl.bak").write_text("older")
    path.write_text(rest)
    file = ResultsFile(path, Line)
    assert file.entries == []
    file.append(Line(1, "s"))
    file.close()
    assert path.read_text() == WHOLE
    assert (tmp_path / "out.jsonl.bak").read_text() == "older"
    assert (tmp_path / "out.jsonl.bak2").read_text() == rest


@pytest.mark.parametrize(
    "text",
    ["my notes", "my notes\n", '{"other": 1}', "[1, 2]", '{"line":1}\n', WHOLE + "notes", WHOLE + "[" * 9999 + "\n"],
    ids=lambda text: text[:20],
)
def test_a_file_that_holds_something_else_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidRequest, match="not a file of results"):
        read(path)
    assert path.read_text() == text


def test_bytes_that_are_not_text_are_not_results(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b'{"line":1,"made_with":"\xff"}\n')
    with pytest.raises(InvalidRequest, match="not a file of results"):
        read(path)


def test_the_input_is_not_the_output(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"line')  # ours, by its beginning
    (tmp_path / "link.jsonl").symlink_to(source)
    for path in (source, tmp_path / "link.jsonl"):
        with pytest.raises(InvalidRequest, match="is the input"):
            ResultsFile(path, Line, source)
    assert source.read_text() == '{"line'


def test_settings_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(WHOLE + '{"line":2,"made_with":"t"}\n')
    file = ResultsFile(path, Line)
    with pytest.raises(InvalidRequest, match=r"made with other settings: t\. The settings now are s"):
        file.check("s")
    file.close()
    path.write_text(WHOLE)
    file = ResultsFile(path, Line)
    file.check("s")
    file.close()


def test_the_directory_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="does not exist; create it"):
        read(tmp_path / "absent" / "out.jsonl")


def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    first = ResultsFile(path, Line)
    first.append(Line(1, "s"))
    with pytest.raises(InvalidRequest, match="being written by another run"):
        ResultsFile(path, Line)
    first.close()
    assert read(path) == [Line(1, "s")]


FULL_DISK = """
import resource, sys
from pathlib import Path
import msgspec
from groundwire.files.results_file import ResultsFile
Line = msgspec.defstruct("Line", [("line", int), ("made_with", str)])
resource.setrlimit(resource.RLIMIT_FSIZE, (70, 70))
file = ResultsFile(Path(sys.argv[1]), Line)
try:
    for number in range(1, 9):
        file.append(Line(number, "s"))
except Exception as error:
    print(type(error).__name__, error)
file.close()
"""


def test_a_full_disk_is_one_error_and_the_run_can_be_continued(tmp_path: Path) -> None:
    """A file that may have 70 bytes takes two lines and a part of the third."""
    path = tmp_path / "out.jsonl"
    # What measures coverage would write a file of more than 70 bytes too.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    printed = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], check=True, capture_output=True, text=True, env=environment
    ).stdout
    assert printed.startswith(f"OutputError {path} cannot be written: {os.strerror(errno.EFBIG)}. What is complete")
    assert path.read_bytes() == (WHOLE + WHOLE.replace("1", "2")).encode()
    assert [entry.line for entry in read(path)] == [1, 2]


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"is a directory; name a file in it, such as .*results\.jsonl"):
        ResultsFile(tmp_path, Line)
    with pytest.raises(OutputError, match="cannot be written"):
        ResultsFile(tmp_path / ("x" * 300), Line)


ENTRIES = [Line(number, text) for number, text in enumerate(["s", 'a"\\\n', "\u2028ß", "", "x" * 90], 1)]


@given(st.data())
def test_a_run_killed_at_any_byte_is_continued(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever a killed run left, with or without zeros after it, continuing gives the entries of a whole run."""
    path = tmp_path_factory.mktemp("killed") / "out.jsonl"
    whole = b"".join(msgspec.json.encode(entry) + b"\n" for entry in ENTRIES)
    written = whole[: data.draw(st.integers(0, len(whole)))]
    path.write_bytes(written + b"\0" * data.draw(st.sampled_from([0, 1, 4096])))
    file = ResultsFile(path, Line)
    assert file.entries == ENTRIES[: written.count(b"\n")]
    for entry in ENTRIES[len(file.entries) :]:
        file.append(entry)
    file.close()
    assert path.read_bytes() == whole
    assert read(path) == ENTRIES

"""Labelled rows to calibrate on: their kinds, and that each is there once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groundwire.recipes.compact.development_rows import KINDS, make_development_rows
from tests.support.training_commands import run


@pytest.mark.parametrize("kind", ["made", "edits"])
def test_rows_are_labelled_and_different(kind: str, sets: Path, small: Path) -> None:
    rows = list(make_development_rows(sets, kind, 40))
    assert len(rows) == len({(row["knowledge"], row["response"]) for row in rows}) == 40
    assert {row["label"] for row in rows} == {0, 1}
    assert [row["id"] for row in rows[:2]] == [f"{kind}-0", f"{kind}-1"]
    assert rows == list(make_development_rows(sets, kind, 40))


def test_a_kind_that_is_unknown_or_has_no_files(sets: Path, small: Path) -> None:
    with pytest.raises(ValueError, match=f"give one of {', '.join(KINDS)}"):
        next(make_development_rows(sets, "others", 1))
    with pytest.raises(ValueError, match="add the files in more/"):
        next(make_development_rows(sets, "questions", 1))


def test_the_command_writes_a_file(sets: Path, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    run("development-rows", "--data", sets, "--out", out, "--kind", "edits", "--count", 6)
    assert len([json.loads(line) for line in out.read_text().splitlines()]) == 6

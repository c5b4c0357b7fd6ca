"""The figures of corrections: pairs of rows, and what a correction is beside the true response."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from groundwire.engine import Engine, InvalidRequest
from groundwire.recipes.correcting.__main__ import app
from groundwire.recipes.correcting.pairs import Outcome, rate, read_pairs
from tests.support.correcting import make_engine

KNOWLEDGE = "The violin has four strings. Ann made it in Rome."


def write_rows(path: Path) -> Path:
    rows = [
        ("The violin has four strings.", 1, "number"),
        ("The violin has six strings.", 0, "number"),
        ("Ann made it in Rome.", 1, "name"),
        ("Ann made it in Oslo.", 0, "name"),
        ("Ann made it, say I.", 1, "alone"),
    ]
    path.write_text(
        "".join(
            json.dumps({"id": str(index), "response": text, "knowledge": KNOWLEDGE, "label": label, "source": source})
            + "\n"
            for index, (text, label, source) in enumerate(rows)
        )
    )
    return path


@pytest.mark.parametrize(
    ("true", "given", "corrected", "expected"),
    [
        ("It has four strings.", "It has 6 strings.", "It has 6 strings.", "unchanged"),
        ("It has four strings.", "It has 6 strings.", "it has 4 strings", "restored"),
        ("Ann Lee sang in Oslo.", "Bob sang in Oslo.", "Ann sang in Oslo.", "improved"),
        ("Ann sang.", "Ann sang in Oslo, as ever.", "Ann sang as ever.", "improved"),
        ("Ann sang in May.", "Ann sang in June.", "Ann sang.", "shortened"),
        ("Ann sang in May.", "Ann sang in June.", "Ann sang in July.", "no better"),
        ("Ann sang in May.", "Ann sang in June.", "Ann in June.", "harmed"),
        ("Ann sang in May.", "Ann sang in June.", "Ann went at June.", "harmed"),
        # Of a true response, any change is a harm.
        ("Ann sang in May.", "Ann sang in May.", "Ann sang.", "harmed"),
        ("Ann sang in May.", "Ann sang in May.", "Ann sang in July.", "harmed"),
    ],
)
def test_a_correction_is_rated_by_the_words_of_the_true_response(
    true: str, given: str, corrected: str, expected: Outcome
) -> None:
    assert rate(true, given, corrected) == expected


def test_pairs_are_a_true_row_and_the_edit_after_it(tmp_path: Path) -> None:
    pairs = read_pairs(write_rows(tmp_path / "rows.jsonl"))
    assert [(pair.true.id, pair.edited.id) for pair in pairs] == [("0", "1"), ("2", "3")]
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(InvalidRequest, match="has no pairs"):
        read_pairs(tmp_path / "none.jsonl")
    (tmp_path / "bad.jsonl").write_text("{}")
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_pairs(tmp_path / "bad.jsonl")


def test_the_command_prints_shares_and_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **settings: make_engine()))
    rows = write_rows(tmp_path / "rows.jsonl")
    result = CliRunner().invoke(app, ["measure", "--rows", str(rows), "--show", "--cost"])
    assert result.exit_code == 0, result.output
    lines = " ".join(result.output.split())
    assert "2 edited responses, of which 2 are called inconsistent restored 2 1.000" in lines
    assert "2 true responses restored 0 0.000" in lines
    assert "value replace “six” → “four”" in lines
    assert "times)" in lines
    second = CliRunner().invoke(app, ["measure", "--rows", str(rows), "--skip", "1", "--limit", "1"])
    assert "1 edited responses" in second.output

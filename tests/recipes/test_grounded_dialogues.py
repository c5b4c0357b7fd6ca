"""Grounded dialogues from chats that state the same facts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

pytest.importorskip("groundwire.recipes", reason="needs the train extra", exc_type=ImportError)

from typer.testing import CliRunner

from groundwire.recipes.cli import app
from groundwire.recipes.common.corpus import word_coverage
from groundwire.recipes.synthesis import grounded_dialogues

PINK = "The Iowa locker room for visiting teams is painted pink."
CHATS = [
    ["Hi there!", "Did you know? The visiting teams at Iowa have a locker room painted pink!", "Really?"],
    [PINK, "I read the newspaper every morning with a cup of coffee. " + PINK, "Wow.", "Is the locker room pink?"],
    ["Hello.", "My grandmother bakes apple cakes for every birthday in October.", "Nice."],
]


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grounded_dialogues, "WEIGHT", 5.0)  # three chats make no word rare


def test_a_turn_is_grounded_in_what_another_dialogue_states() -> None:
    rows = list(grounded_dialogues.pair_dialogues(CHATS, random.Random(0)))
    assert [row["response"] for row in rows] == [CHATS[0][1], CHATS[1][1]]
    first, second = rows
    assert first["knowledge"] in (PINK, CHATS[1][1]), "the whole other turn, without its questions"
    assert first["history"] == ["Hi there!"]
    assert second["knowledge"] == "The visiting teams at Iowa have a locker room painted pink!"
    assert second["history"] == [PINK]


def test_the_first_turn_has_no_history_and_is_no_response() -> None:
    assert all(row["history"] for row in grounded_dialogues.pair_dialogues(CHATS, random.Random(0)))


def test_a_fact_that_one_dialogue_repeats_is_not_stated_by_another() -> None:
    assert list(grounded_dialogues.pair_dialogues([[PINK, PINK, PINK], CHATS[2]], random.Random(0))) == []
    assert list(grounded_dialogues.pair_dialogues([], random.Random(0))) == []


def test_thanks_are_no_fact() -> None:
    """Though many dialogues end with the same ones."""
    thanks = "Thank you for chatting with me about football, have a lovely evening!"
    chats = [["Hi there!", thanks], ["Hello.", thanks]]
    assert list(grounded_dialogues.pair_dialogues(chats, random.Random(0))) == []


def test_rows_keep_the_held_out_dialogues_apart(sets: Path) -> None:
    # The miniature set states every fact once, so its rows are about articles, and there are as many as of the others.
    assert grounded_dialogues.make_grounded_dialogues(sets, "train") == []
    with pytest.raises(ValueError, match=r"articles=1; allowed are 0 up to, but not, 1"):
        grounded_dialogues.make_grounded_dialogues(sets, "train", articles=1)


def test_the_command_writes_both_kinds(sets: Path, tmp_path: Path) -> None:
    for file in sets.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "topical_chat.jsonl.gz").unlink()
    import gzip

    with gzip.open(tmp_path / "topical_chat.jsonl.gz", "wt") as file:
        for split, turns in [("valid_freq", chat) for chat in CHATS] + [("test_freq", chat) for chat in CHATS[:2]]:
            file.write(json.dumps({"split": split, "turns": turns}) + "\n")
    out = tmp_path / "rows.jsonl"
    done = CliRunner().invoke(app, ["grounded-dialogues", "--data", str(tmp_path), "--out", str(out)])
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    responses = {row["response"] for row in rows}
    assert len(rows) == 4
    assert {CHATS[0][1], CHATS[1][1]} < responses, "half of them are about articles"
    assert all(row["knowledge"] and row["history"] for row in rows)
    held_out = grounded_dialogues.make_grounded_dialogues(tmp_path, "held_out", articles=0)
    assert {row["response"] for row in held_out} == {CHATS[0][1], CHATS[1][1]}
    grounded = grounded_dialogues.make_grounded_dialogues(tmp_path, "held_out", articles=0, grounded=0.5)
    assert [row for row in held_out if word_coverage(row["response"], row["knowledge"]) >= 0.5] == grounded
    assert 0 < len(grounded) < len(held_out)

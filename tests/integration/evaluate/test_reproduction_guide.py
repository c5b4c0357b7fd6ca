"""The guide to the papers' tables: its commands exist, take its options, and come in an order that works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer
from typer.core import TyperGroup

from groundwire.cli.export import app as export
from groundwire.export.presets import PRESETS
from groundwire.recipes.papers import TABLES
from groundwire.recipes.papers.command import show_table

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "reproduce.md"


def commands() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    return [shlex.split(line.partition(" > ")[0]) for block in blocks for line in block.splitlines()]


def test_the_guide_has_a_command_for_every_table() -> None:
    made = [words[2] for words in commands() if words[:2] == ["groundwire", "tables"]]
    assert sorted(made) == sorted(TABLES)


def test_the_commands_of_the_guide_exist_with_their_options() -> None:
    from groundwire.cli.evaluate import evaluate
    from groundwire.cli.refine import refine_file
    from groundwire.recipes.dialogues.command import convert

    root = typer.Typer()
    root.command("convert")(convert)
    root.command("evaluate")(evaluate)
    root.command("refine")(refine_file)
    root.command("tables")(show_table)
    root.add_typer(export, name="export")
    group = typer.main.get_command(root)
    assert isinstance(group, TyperGroup)
    used = [words[1:] for words in commands() if words[0] == "groundwire"]
    assert {words[0] for words in used} == {"convert", "export", "evaluate", "refine", "tables"}
    for name, *rest in used:
        # Parses, and raises for an unknown option; nothing runs.
        context = group.commands[name].make_context(name, list(rest))
        if name == "export" and rest[0].startswith("paper"):
            assert context.params["what"] in PRESETS


def test_the_runs_of_the_guide_are_made_before_they_are_shown() -> None:
    made: set[str] = set()
    for words in commands():
        if words[:2] == ["groundwire", "evaluate"] or "decoding-table" in words:
            made.add(words[words.index("--out") + 1])
        if words[:2] == ["groundwire", "tables"]:
            runs = [word.rpartition("=")[2] for word in words[3:] if "runs/" in word]
            assert set(runs) <= made, words

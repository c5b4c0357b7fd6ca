"""The examples of the README do what they say, on the embedded bundle."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from groundwire.engine.cli import app
from groundwire.runtime.bundle import embedded

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout holds no trained bundle yet")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.splitlines()[0])
def test_python_examples_run(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


COMMANDS = [
    [
        line.partition("#")[0].strip()
        for line in block.splitlines()
        # The papers' checkpoints come from a hub.
        if line.startswith("groundwire") and "paper-q2" not in line
    ]
    for block in blocks("sh")
]


@pytest.mark.parametrize("commands", [found for found in COMMANDS if found], ids=lambda commands: commands[0])
def test_commands_run(commands: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one block, one after another in one directory."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, f"{command}: {result.output} {result.exception}"


def test_the_readme_names_every_document() -> None:
    for name in re.findall(r"\]\(([\w./-]+\.md)\)", README):
        assert (ROOT / name).is_file(), name

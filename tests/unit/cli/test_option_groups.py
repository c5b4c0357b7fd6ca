"""Option groups, and the size of the whole command line."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.cli.groups import Setting, expand_groups

MAX_PARAMETERS = 8
"""Only lower these three numbers."""
OF_RECIPES = frozenset({"convert", "corpus", "tables"})
"""Commands that the distribution groundwire-recipes adds."""
ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Base:
    """Options of every command."""

    colour: Annotated[str, typer.Option(help="The colour.")] = "green"
    sizes: Annotated[list[int] | None, typer.Option("--size", "-s", help="A size.")] = None


@dataclass(frozen=True)
class Extended(Base):
    """A group with another default and one more option."""

    colour: Annotated[str, typer.Option(help="The colour.")] = "red"
    must: Annotated[bool, typer.Option("--must")] = False


@dataclass(frozen=True)
class Required:
    """A group with an option that has no default."""

    name: Annotated[str, typer.Option(help="The name.")]


@dataclass(frozen=True)
class Rare:
    """Options that few need."""

    layers: Annotated[int | None, Setting("Layers of paint.", min=1, max=9, envvar="PAINT_LAYERS")] = None
    is_dry: Annotated[bool, Setting("Whether it is dry.")] = False
    share: Annotated[float, Setting("Share of water, 0–1.", min=0, max=1)] = 0.5
    palette: Annotated[Path | None, Setting("A file.", is_file=True)] = None
    brushes: Annotated[list[str] | None, Setting("A brush; repeatable.")] = None


seen: list[tuple[Any, ...]] = []


@expand_groups
def paint(path: Path, *, base: Base, required: Required, last: Annotated[int, typer.Option(min=1)] = 3) -> None:
    """Paint a file."""
    seen.append((path, base, required, last))


@expand_groups
def repaint(*, extended: Extended) -> None:
    """Paint again."""
    seen.append((extended,))


@expand_groups
def restore(*, rare: Rare, base: Base, speed: Annotated[int, Setting("Hours.")] = 2) -> None:
    """Restore a painting."""
    seen.append((rare, base, speed))


def invoke(*arguments: str) -> tuple[int, str]:
    program = typer.Typer()
    program.command("paint")(paint)
    program.command("repaint")(repaint)
    program.command("restore")(restore)
    result = CliRunner().invoke(program, arguments, env={"COLUMNS": "200"})
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("paint", "a", "--name", "n"), (Path("a"), Base(), Required("n"), 3)),
        (
            ("paint", "a", "--name", "n", "--colour", "blue", "-s", "1", "--size", "2", "--last", "4"),
            (Path("a"), Base("blue", [1, 2]), Required("n"), 4),
        ),
        (("repaint",), (Extended("red", None, False),)),
        (("repaint", "--must", "--colour", "blue"), (Extended("blue", None, True),)),
    ],
)
def test_a_command_gets_its_groups_as_records(arguments: tuple[str, ...], expected: tuple[Any, ...]) -> None:
    seen.clear()
    assert invoke(*arguments)[0] == 0
    assert seen == [expected]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((), (Rare(), Base(), 2)),
        (("layers=3", "is_dry=true", "share=0.25", "speed=4"), (Rare(3, True, 0.25), Base(), 4)),
        (("is-dry=1", "brushes=a=b", "brushes=c,d"), (Rare(is_dry=True, brushes=["a=b", "c,d"]), Base(), 2)),
        ((f"palette={__file__}",), (Rare(palette=Path(__file__)), Base(), 2)),
    ],
)
def test_rare_options_are_keys_of_set(texts: tuple[str, ...], expected: tuple[Any, ...]) -> None:
    seen.clear()
    code, output = invoke("restore", *(part for text in texts for part in ("--set", text)))
    assert code == 0, output
    assert seen == [expected]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layer=3", "'layer=3' is not KEY=VALUE with one of the keys layers, is_dry, share, palette, brushes, speed."),
        ("layers", "'layers' is not KEY=VALUE"),
        ("layers=many", "for --set layers: 'many' is not an integer."),
        ("layers=0", "for --set layers: 0 is not 1 or more."),
        ("layers=10", "for --set layers: 10 is not 9 or less."),
        ("share=nan", "for --set share: nan is not 0 or more."),
        ("is_dry=maybe", "for --set is_dry: 'maybe' is not true or false."),
        ("palette=absent.txt", "for --set palette: there is no file absent.txt."),
    ],
)
def test_a_wrong_setting_is_wrong_usage(text: str, message: str) -> None:
    code, output = invoke("restore", "--set", text)
    assert code == 2
    assert message in output


def test_a_setting_that_is_given_twice_is_wrong_usage() -> None:
    code, output = invoke("restore", "--set", "layers=1", "--set", "layers=2")
    assert code == 2
    assert "layers is given twice" in output


def test_a_variable_has_the_value_of_a_setting_that_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAINT_LAYERS", "4")
    seen.clear()
    assert invoke("restore")[0] == 0
    assert invoke("restore", "--set", "layers=2")[0] == 0
    assert [rare.layers for rare, *_ in seen] == [4, 2]
    monkeypatch.setenv("PAINT_LAYERS", "none")
    assert "PAINT_LAYERS: 'none' is not an integer." in invoke("restore")[1]


def test_the_help_of_set_lists_its_keys() -> None:
    _, text = invoke("restore", "--help")
    assert "`layers`: Layers of paint." in text
    assert "`speed`: Hours." in text


def test_the_options_of_a_group_have_their_help_their_checks_and_their_order() -> None:
    code, text = invoke("paint", "--help")
    assert code == 0
    assert text.index("--colour") < text.index("--size") < text.index("--name") < text.index("--last")
    assert "Paint a file." in text
    assert invoke("paint", "a")[0] == 2
    assert invoke("paint", "a", "--name", "n", "--last", "0")[0] == 2


def test_two_options_of_one_name_are_refused() -> None:
    def command(*, base: Base, colour: str) -> None:
        """Never runs."""

    with pytest.raises(TypeError, match="has several options colour"):
        expand_groups(command)


def list_commands(command: Any, name: str = "groundwire") -> Iterator[tuple[str, Any]]:
    """Every command of the program with its name, those of groups too, without the recipes'."""
    if command.callback is not None:
        yield name, command
    for child_name, child in getattr(command, "commands", {}).items():
        if child_name not in OF_RECIPES:
            yield from list_commands(child, f"{name} {child_name}")


COMMANDS = dict(list_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_few_parameters(name: str) -> None:
    parameters = inspect.signature(inspect.unwrap(COMMANDS[name].callback)).parameters
    assert len(parameters) <= MAX_PARAMETERS, list(parameters)


@pytest.mark.parametrize("name", [name for name in COMMANDS if " " in name])
def test_the_help_of_a_command_has_an_example(name: str) -> None:
    assert f"    {name}" in inspect.cleandoc(f"\n    {COMMANDS[name].help}") or f"\n{name}" in COMMANDS[name].help


def test_the_guide_lists_every_command_that_reads_a_calibration() -> None:
    guide = (ROOT / "docs" / "guides" / "calibration.md").read_text(encoding="utf-8")
    (line,) = (line for line in guide.splitlines() if "read the file with `--set calibration=mine.json`" in line)
    listed = re.findall(r"`(?:groundwire )?(\w+)`", line.partition(" read the file with")[0])
    reading = [
        name.removeprefix("groundwire ")
        for name, command in COMMANDS.items()
        if any("- `calibration`:" in (getattr(option, "help", "") or "") for option in command.params)
    ]
    assert sorted(listed) == sorted(reading)


WITHOUT = """
import runpy, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("typer", "rich"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""


@pytest.mark.parametrize(
    "start",
    ["from groundwire.cli import main; main()", "runpy.run_module('groundwire', run_name='__main__')"],
    ids=["console script", "python -m groundwire"],
)
def test_without_its_extra_the_command_line_says_what_to_install(start: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT + start], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "The command line needs typer; install it with: pip install 'groundwire[cli]'\n"


def test_every_other_package_imports_without_the_extra() -> None:
    packages = ["engine", "repair", "guard", "generation", "evidence", "monitor", "files"]
    packages += ["evaluate", "export", "adapters", "service"]
    imports = "; ".join(f"import groundwire.{name}" for name in packages)
    done = subprocess.run([sys.executable, "-c", WITHOUT + imports], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

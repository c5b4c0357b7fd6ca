"""Prints how large the project is: nothing fails here, so that a number informs and no limit is raised.

``python tests/checks/sizes.py`` prints, for each package, its modules and its lines that are not blank, and for each
command the options that its help shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from groundwire.cli import app

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ("runtime", "engine", "apps", "interfaces", "export", "evaluate")
"""Packages in the wheel of groundwire."""
OTHERS = ("recipes", "bench", "tests")


def count(folder: Path) -> tuple[int, int]:
    """Return the modules of a folder, and their lines that are not blank."""
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if "build" not in path.parts]
    return len(texts), sum(bool(line.strip()) for text in texts for line in text.splitlines())


def count_options(command: Any, name: str) -> Iterator[tuple[str, int]]:
    """Yield each command of a program with the number of options that its help shows."""
    commands = getattr(command, "commands", {})
    for child, inner in commands.items():
        yield from count_options(inner, f"{name} {child}")
    if not commands:
        shown = [option for option in command.params if option.param_type_name == "option" and not option.hidden]
        yield name, len(shown)


def main() -> None:
    """Print the sizes."""
    sizes = {name: count(ROOT / name) for name in (*INSTALLED, *OTHERS, "engine/values", "engine/verdict")}
    sizes["wheel"] = tuple(map(sum, zip(*(sizes[name] for name in INSTALLED), strict=True)))  # type: ignore[assignment]
    print(f"{'package':<16} {'modules':>8} {'lines':>8}")
    for name, (modules, lines) in sizes.items():
        print(f"{name:<16} {modules:>8} {lines:>8}")
    options = dict(count_options(typer.main.get_command(app), "groundwire"))
    print(f"{sum(options.values())} options on {len(options)} commands:")
    print(", ".join(f"{name.partition(' ')[2]} {count}" for name, count in sorted(options.items())))


if __name__ == "__main__":
    main()

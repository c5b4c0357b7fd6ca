"""Prints how large the project is: nothing fails here, so that a number informs and no limit is raised.

``python tests/checks/sizes.py`` prints, for each package, its modules and its lines that are not blank.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ("runtime", "engine", "apps", "interfaces", "export", "evaluate")
"""Packages in the wheel of groundwire."""
OTHERS = ("recipes", "bench", "tests")


def count(folder: Path) -> tuple[int, int]:
    """Return the modules of a folder, and their lines that are not blank."""
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if "build" not in path.parts]
    return len(texts), sum(bool(line.strip()) for text in texts for line in text.splitlines())


def main() -> None:
    """Print the sizes."""
    sizes = {name: count(ROOT / name) for name in (*INSTALLED, *OTHERS, "engine/values", "engine/verdict")}
    sizes["wheel"] = tuple(map(sum, zip(*(sizes[name] for name in INSTALLED), strict=True)))  # type: ignore[assignment]
    print(f"{'package':<16} {'modules':>8} {'lines':>8}")
    for name, (modules, lines) in sizes.items():
        print(f"{name:<16} {modules:>8} {lines:>8}")


if __name__ == "__main__":
    main()

"""Checks that texts have one classification of characters: ``groundwire.runtime.texts.characters``.

``python tests/checks/characters.py`` finds modules that ask a method of ``str``, such as ``isalnum``, or Unicode's
categories instead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("runtime", "engine", "apps", "interfaces", "evaluate")
CLASSIFICATION = Path("runtime/texts/characters.py")
ASKED = {
    *("isalnum", "isalpha", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper"),
    *("category", "digit", "decimal"),
}
"""Methods of ``str`` and functions of ``unicodedata`` that say what a character is."""


def find_questions(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the places of a module that ask ``str`` or ``unicodedata`` what a character is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ASKED:
            is_unicode = isinstance(node.value, ast.Name) and node.value.id == "unicodedata"
            if is_unicode or node.attr.startswith("is"):
                yield f"{path}:{node.lineno}: “{node.attr}”: ask {CLASSIFICATION}"


def main() -> int:
    """Print every finding; 1 if there is any."""
    paths = sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    findings = [
        finding
        for path in paths
        if path != CLASSIFICATION
        for finding in find_questions(path, ast.parse((ROOT / path).read_text(encoding="utf-8")))
    ]
    print(*findings, f"{len(findings)} findings in {len(paths)} files", sep="\n")
    return int(bool(findings))


if __name__ == "__main__":
    raise SystemExit(main())

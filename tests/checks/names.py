"""Checks the names of the project: a name says what it holds, and has one meaning.

``python tests/checks/names.py`` finds variables named for whatever is at hand (``VAGUE``), public classes that several
modules define, and public functions that several modules of one package define.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("runtime", "engine", "apps", "interfaces", "export", "evaluate", "recipes")
VAGUE = {"at", "found", "given", "kept", "known", "one", "own", "place", "places", "sign", "told"}


def find_vague(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield variables and parameters of functions whose name is in ``VAGUE``."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in {inner for function in functions for inner in ast.walk(function)}:
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""
        name = node.arg if isinstance(node, ast.arg) else name
        if name in VAGUE:
            yield f"{path}:{node.lineno}: the variable “{name}”: name the thing itself"


def find_duplicates(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield public names with several definitions: classes anywhere, functions in one package."""
    lines: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                package = "/".join(path.parts[: 2 if path.parts[0] in ("apps", "interfaces") else 1])
                kind = "class" if isinstance(node, ast.ClassDef) else package
                lines[kind, node.name].append(f"{path}:{node.lineno}")
    for (kind, name), definitions in sorted(lines.items()):
        if len(definitions) > 1:
            yield f"{kind}: “{name}” is defined {len(definitions)} times: {', '.join(definitions)}"


def main() -> int:
    """Print every finding; 1 if there is any."""
    paths = sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    trees = {path: ast.parse((ROOT / path).read_text(encoding="utf-8")) for path in paths}
    findings = [finding for path, tree in trees.items() for finding in sorted(find_vague(path, tree))]
    findings += find_duplicates(trees)
    print(*findings, f"{len(findings)} findings in {len(paths)} files", sep="\n")
    return int(bool(findings))


if __name__ == "__main__":
    raise SystemExit(main())

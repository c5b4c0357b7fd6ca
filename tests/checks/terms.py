"""Checks the words of the project: one name per thing, and plain technical English.

``python tests/checks/terms.py`` checks every tracked file; with ``engine docs`` only the files of these folders.
The glossary (docs/glossary.md) says which words to use. What is literal, a quotation or data, is exempt: add the file
to ``LITERAL``, or end the line with the comment ``terms: literal``.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("runtime", "engine", "apps", "interfaces", "export", "evaluate", "recipes")
READ = {".py", ".pyi", ".md", ".html", ".js", ".hpp", ".cpp", ".toml", ".yml"}

TERMS = {
    r"behind": "after, or given",
    r"told|tells": "says, is passed, knows",
    r"stands|stood": "is",
    r"nobody": "not, with the passive: not measured",
    r"(?:a|the) blanks?": "a space",
    r"dressed": "written",
    r"waves?": "round (of model calls)",
    r"lanes?": "worker pool",
    r"stripes?|striped": "chunk",
    r"trunks?": "backbone",
    r"twins?": "reference implementation",
    r"certificates?": "parity report",
    r"retold": "grounded dialogues",
    r"judg(?:e|es|ed|ing|ements?|ments?)": "classify, score or decide",
    r"hunters?(?<!Path Hunter)": "nph",
    r"false alarms?|alarms?": "false positive rate, with what is positive",
    r"tagged|taggers?": "token classifier",
    r"from the ground": "from scratch",
}
"""Words that the project does not use, as patterns, and what to write instead."""

NAMES = {"one", "found", "own", "told", "place", "places"}
"""Variables named for whatever is at hand."""

LITERAL = {
    "tests/checks/terms.py",
    "docs/glossary.md",
    "CHANGELOG.md",
}
"""Files whose words are data or quotations."""
LITERAL_FOLDERS = (
    "recipes/research/",
    "recipes/worlds/domains/",
)

_TERMS = re.compile(
    rf"(?<![\w-])(?:{'|'.join(f'(?P<t{i}>{pattern})' for i, pattern in enumerate(TERMS))})(?![\w-])", re.IGNORECASE
)


def tracked(folders: list[str]) -> list[Path]:
    """The text files that git tracks, or would, below ``folders``; all of them without."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *folders],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = (Path(name) for name in listed.split("\0") if name)
    return [path for path in paths if path.suffix in READ and (ROOT / path).is_file() and not _exempt(path.as_posix())]


def _exempt(name: str) -> bool:
    return name in LITERAL or name.startswith(LITERAL_FOLDERS)


def words(path: Path) -> Iterator[str]:
    """What a file says in words that the project does not use."""
    for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
        if "terms: literal" in line:
            continue
        # An identifier's parts are words too: ``waves_of`` is read as "waves of".
        for match in _TERMS.finditer(line.replace("_", " ")):
            if match[0].lower().startswith("hunter") and "Path Hunter" in line:
                continue
            assert match.lastgroup is not None
            instead = list(TERMS.values())[int(match.lastgroup[1:])]
            yield f"{path}:{number}: “{match[0]}”: write {instead}"


def variables(path: Path) -> Iterator[str]:
    """Variables and parameters with a name that says nothing."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        name = None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        if name in NAMES:
            yield f"{path}:{node.lineno}: the variable “{name}”: name the thing itself"


def duplicates(paths: list[Path]) -> Iterator[str]:
    """Public classes that several modules define, and public functions that several modules of one package define."""
    defined: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in paths:
        if path.suffix == ".py" and path.parts[0] in PACKAGES:
            for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                    where = "class" if isinstance(node, ast.ClassDef) else _find_package(path)
                    defined[where, node.name].append(f"{path}:{node.lineno}")
    for (where, name), lines in sorted(defined.items()):
        if len(lines) > 1:
            yield f"{where}: “{name}” is defined {len(lines)} times: {', '.join(lines)}"


def _find_package(path: Path) -> str:
    """The package of a module: ``apps/guard``, but ``engine``."""
    return "/".join(path.parts[: 2 if path.parts[0] in ("apps", "interfaces") else 1])


def main(folders: list[str]) -> int:
    """Print every finding; 1 if there is any."""
    paths = tracked(folders)
    findings = [finding for path in paths for finding in words(path)]
    findings += [finding for path in paths if path.suffix == ".py" for finding in variables(path)]
    findings += duplicates(paths)
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings in {len(paths)} files")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Checks the sentences of the project: a subject, a verb, and names that say what a thing holds.

``python tests/checks/syntax.py`` counts what ``RULES`` and ``NAMES`` find in each package and compares the counts with
``BUDGETS``, which may only fall. ``python tests/checks/syntax.py engine`` lists what is found in a package. A line that
ends with the comment ``terms: literal`` is exempt.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from terms import ROOT, tracked

RULES = {
    r"\b(?:one|ones) that\b": "repeat the noun: “a metric that …”",
    r"\b(?:those|that) of\b": "repeat the noun: “the options of …”",
    r"\bthose (?:that|which|who|with|without)\b": "repeat the noun",
    r"\bof (?:which|whose)\b": "two sentences, each with its subject",
    r"\bwhat (?:\w+ ){1,3}makes? of\b": "the verb itself: “X converts Y”",
    r"\bless than nothing\b": "a negative value",
    r"\b(?:is|are|was) no (?!longer|more|less|fewer|better|worse|later|matter|one\b)\w+": "“is not a …”",
    r"(?:^|[.;:] )(?:Who|Whoever|What) \w+ .*?[,;]": "name the subject: “the caller”, “a text that …”",
    r"(?:^|[.!?] |\"{3})Of (?:an?|the|each|every|one|several|few|many|those|it|them|its|all)\b": "name the thing first",
    r"\b(?:ladder|rung|rungs|piece|pieces)\b": "capture sizes, padded batch, block, part",
}
"""Patterns in docstrings, comments and pages, and what to write instead."""

NAMES = {"CALM", "GONE", "PATIENCE", "NOTHING", "SURE", "GUESS", "AGREED", "KEPT"}
"""Constants named for a mood: name what they hold."""

VARIABLES = {"known", "kept", "given", "sign", "at"}
"""Variables and parameters that say nothing about what they hold."""

BUDGETS: dict[str, int] = {
    "bench": 1,
    "bundles": 1,
    "docs": 10,
    "engine": 1,
    "evaluate": 1,
    "groundwire": 1,
    "interfaces": 22,
    "recipes": 73,
}
"""Findings of each package, at most."""


def find_sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings, comments or lines of a page, with their first line."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.suffix == ".md":
        is_code = False
        for number, line in enumerate(text.splitlines(), 1):
            is_code ^= line.lstrip().startswith("```")
            if not is_code:
                yield number, line
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_text = token.type == tokenize.STRING and token.string.startswith(('"""', 'r"""', 'f"""'))
        if (is_text or token.type == tokenize.COMMENT) and "terms: literal" not in token.line:
            yield token.start[0], " ".join(token.string.split())


def find_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield assigned names that say nothing about what they hold, with their lines."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""
        name = node.arg if isinstance(node, ast.arg) else name
        if name in NAMES or name in VARIABLES:
            yield node.lineno, name


def find_all(path: Path) -> Iterator[str]:
    """Yield every finding in a file."""
    for number, sentence in find_sentences(path):
        for pattern, instead in RULES.items():
            for match in re.finditer(pattern, sentence):
                yield f"{path}:{number}: “{match[0][:60]}”: {instead}"
    if path.suffix == ".py":
        for number, name in find_names(path):
            yield f"{path}:{number}: the name “{name}”: say what it holds"


def main(packages: list[str]) -> int:
    """Print the findings of ``packages``, or compare the counts of all with their budgets; 1 if one is exceeded."""
    counts: Counter[str] = Counter()
    for path in tracked(packages):
        if path.suffix in (".py", ".md") and path.parts[0] not in ("tests", "CHANGELOG.md"):
            findings = list(find_all(path))
            counts[path.parts[0]] += len(findings)
            if packages:
                print(*findings, sep="\n", end="\n" if findings else "")
    exceeded = 0
    for package, count in sorted(counts.items()):
        budget = BUDGETS.get(package, 0)
        note = f"; more than its budget of {budget}" if count > budget else ""
        note = note or (f"; lower its budget of {budget}" if count < budget else "")
        exceeded += count > budget
        print(f"{package}: {count} findings{note}")
    return 1 if exceeded and not packages else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

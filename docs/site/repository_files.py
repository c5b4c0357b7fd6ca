"""Reads what pages show from files of the repository: results of benchmarks, code, and Markdown outside ``docs/``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RESULTS = ROOT / "bench" / "results"
REPOSITORY_FILES = re.compile(r"\]\((?:\.\./)+((?!docs/)[^)\s#]+)(#[^)]*)?\)")


def load_results(name: str) -> dict[str, Any]:
    """Return a benchmark's results."""
    document: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return document


def include(path: str) -> str:
    """Return a Markdown file outside ``docs/`` without its title, its links to ``docs/`` rewritten for the site."""
    text = (ROOT / path).read_text(encoding="utf-8").split("\n", 1)[1]
    text = re.sub(r"\]\((?:\.\./)+docs/([^)]+)\)", r"](\1)", text)
    text = re.sub(r"^(#+) ", r"#\1 ", text, flags=re.MULTILINE)
    return REPOSITORY_FILES.sub(r"](#)", text)


def include_code(path: str) -> str:
    """Return a Python file as a code block."""
    return f"```python\n{(ROOT / path).read_text(encoding='utf-8').strip()}\n```"

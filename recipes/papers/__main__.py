"""Fills the published tables into a Markdown file: ``python -m groundwire.recipes.papers docs/reproduce.md``."""

from __future__ import annotations

import sys
from pathlib import Path

from .render import fill_tables

if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(fill_tables(path.read_text(encoding="utf-8")), encoding="utf-8")

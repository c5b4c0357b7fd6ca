"""The fixed English texts on which an exported graph is compared with its checkpoint.

Short knowledge snippets, as dialogue systems have them, each with a question it answers and one it does not, and a
claim it supports and one it does not: 64 examples in ``texts.tsv``, written for this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Example:
    """One passage with what readers, classifiers and generators are asked about it."""

    passage: str
    question: str
    answer: str
    """A phrase of the passage, the one a generator asks about."""
    claim: str


EXAMPLES: tuple[Example, ...] = tuple(
    Example(*line.split("\t"))
    for line in Path(__file__).with_name("texts.tsv").read_text(encoding="utf-8").splitlines()
)

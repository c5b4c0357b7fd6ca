"""The fixed English texts on which an exported graph is compared with its checkpoint.

Short knowledge snippets, as dialogue systems use them, each with a question that it answers, a question that it does
not answer, a claim that it supports and a claim that it does not: 64 examples in ``texts.tsv``, written for this
project.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ExampleTexts:
    """One passage with the question, answer and claim that the models get with it."""

    passage: str
    question: str
    answer: str
    """A phrase of the passage, about which a question generator asks."""
    claim: str


EXAMPLES: tuple[ExampleTexts, ...] = tuple(
    ExampleTexts(*line.split("\t"))
    for line in Path(__file__).with_name("texts.tsv").read_text(encoding="utf-8").splitlines()
)

"""The texts of the benchmarks: the examples, and as many distinct variants of them as asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "dialogues.jsonl"
SYLLABLES = ("ba", "dor", "fen", "gil", "har", "jo", "ken", "lu", "mar", "nel", "ot", "pas", "ra", "sim", "ta", "vin")


class Dialogue(NamedTuple):
    """A response and its knowledge."""

    response: str
    knowledge: tuple[str, ...]


def examples() -> tuple[Dialogue, ...]:
    """The dialogues of ``examples/dialogues.jsonl``."""
    dialogues = []
    for line in EXAMPLES.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        knowledge = record["knowledge"]
        dialogues.append(Dialogue(record["response"], (knowledge,) if isinstance(knowledge, str) else tuple(knowledge)))
    return tuple(dialogues)


def distinct(number: int) -> Iterator[Dialogue]:
    """The examples again and again, each time said to someone else, so that no two responses are equal.

    A question's text depends on the whole response, so almost no model call is answered from an earlier one.
    """
    originals = examples()
    for index in range(number):
        dialogue = originals[index % len(originals)]
        yield dialogue._replace(response=f"{name(index // len(originals))}, {dialogue.response}")


def name(number: int) -> str:
    """The ``number``-th made-up name."""
    parts: list[str] = []
    for _ in range(max(2, len(f"{number:x}"))):
        number, syllable = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[syllable])
    return "".join(parts).capitalize()

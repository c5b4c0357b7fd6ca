"""The texts of the benchmarks: the examples, and as many distinct variants of them as asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from groundwire.evaluate.speed.dialogues import make_name

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "dialogues.jsonl"


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
        yield dialogue._replace(response=f"{make_name(index // len(originals))}, {dialogue.response}")

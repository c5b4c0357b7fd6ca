"""Wizard of Wikipedia (Dinan et al. 2019): the wizard's turns with the sentence that they rest on.

A JSON array of dialogues, ``{"chosen_topic", "dialog": [{"speaker", "text", "checked_sentence"}]}``. The sentence is
the only value of ``checked_sentence``; turns with "no_passages_used", and the apprentice's, rest on none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from groundwire.evaluate.datasets.examples import Example

from .files import read_records, strip_all

NO_KNOWLEDGE = "no_passages_used"


class _Turn(msgspec.Struct, frozen=True):
    speaker: str
    text: str
    checked_sentence: dict[str, str] = {}


class _Dialogue(msgspec.Struct, frozen=True):
    dialog: list[_Turn]
    chosen_topic: str = ""


def read_wizard(path: Path) -> Iterator[Example]:
    """The turns of wizards who used a sentence, in order."""
    for number, dialogue in enumerate(read_records(path, list[_Dialogue], "a file of Wizard of Wikipedia's dialogues")):
        history: list[str] = []
        for index, turn in enumerate(dialogue.dialog):
            used = [sentence for sentence in turn.checked_sentence.values() if sentence != NO_KNOWLEDGE]
            knowledge = strip_all(used)
            if "wizard" in turn.speaker.lower() and knowledge and turn.text.strip():
                yield Example(
                    f"{number}-{index}", turn.text.strip(), knowledge, tuple(history), source=dialogue.chosen_topic
                )
            history.append(turn.text.strip())

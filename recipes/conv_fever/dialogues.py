"""Dialogues with knowledge, the source of the Conv-FEVER corpus: rows of our own, and Wizard of Wikipedia's files.

Rows of our own are JSON Lines: ``{"knowledge", "history", "response"}`` with an optional ``"label"`` (1 or
"consistent", the default, or 0 or "inconsistent") and an optional ``"dialogue"`` that names the conversation.

Wizard of Wikipedia (Dinan et al. 2019) is a JSON array of dialogues: ``{"chosen_topic", "dialog": [{"speaker", "text",
"checked_sentence"}]}``. The wizard's turns have the sentence they rest on, as the only value of ``checked_sentence``;
"no_passages_used" and turns of the apprentice give no record.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ..common.corpus import read_rows
from .corpus import CorpusRecord

LabelledPair: TypeAlias = tuple[str, str, str]
"""Knowledge, response, label."""
NO_KNOWLEDGE = "no_passages_used"


def read_dialogues(path: Path) -> tuple[list[CorpusRecord], list[LabelledPair]]:
    """The consistent records of a file in either form, and its inconsistent pairs (none in Wizard of Wikipedia's).

    Raises ValueError for a file of another form and for a label that is neither consistent nor inconsistent.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        begin = file.read(4096).lstrip()[:1]
    if begin == "[":
        return list(read_wizard_of_wikipedia(path)), []
    return read_labelled_dialogues(path)


def read_wizard_of_wikipedia(path: Path) -> Iterator[CorpusRecord]:
    """One record per turn of a wizard who used a sentence; the context is all turns before it."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        dialogues: list[dict[str, Any]] = json.load(file)
    for number, dialogue in enumerate(dialogues):
        if not isinstance(dialogue, dict) or "dialog" not in dialogue:
            raise ValueError(f"{path}, entry {number}: no dialogue of Wizard of Wikipedia, which has the key 'dialog'.")
        turns: list[str] = []
        for turn in dialogue["dialog"]:
            sentence = " ".join(turn.get("checked_sentence", {}).values()).strip()
            if "wizard" in turn["speaker"].lower() and sentence and sentence != NO_KNOWLEDGE:
                yield CorpusRecord(tuple(turns), sentence, turn["text"], f"{dialogue.get('chosen_topic', '')} {number}")
            turns.append(turn["text"])


def read_labelled_dialogues(path: Path) -> tuple[list[CorpusRecord], list[LabelledPair]]:
    """The consistent rows as records and the inconsistent ones as pairs; ValueError for a label that is neither."""
    records: list[CorpusRecord] = []
    pairs: list[LabelledPair] = []
    for number, row in enumerate(read_rows(path), 1):
        absent = [name for name in ("knowledge", "response") if name not in row]
        if absent:
            raise ValueError(f"{path}, row {number}: no {' and no '.join(absent)}; it has {', '.join(map(str, row))}.")
        knowledge, history = join_texts(row["knowledge"]), row.get("history", ())
        match row.get("label", 1):
            case 1 | "consistent":
                turns = (history,) if isinstance(history, str) else tuple(history)
                records.append(CorpusRecord(turns, knowledge, row["response"], row.get("dialogue", "")))
            case 0 | "inconsistent":
                pairs.append((knowledge, row["response"], "inconsistent"))
            case other:
                raise ValueError(
                    f"{path}, row {number}: label {other!r}; give 1 or 'consistent', or 0 or 'inconsistent'."
                )
    return records, pairs


def join_texts(value: str | Sequence[str]) -> str:
    """One text, or several joined by spaces."""
    return value if isinstance(value, str) else " ".join(value)

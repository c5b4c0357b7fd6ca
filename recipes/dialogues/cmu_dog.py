"""CMU-DoG (Zhou et al. 2018): utterances of people who saw the document, with the section that was open.

``Conversations/SPLIT/*.json`` are ``{"history": [{"docIdx", "text", "uid"}], "whoSawDoc", "wikiDocumentIdx"}``, one
conversation each; ``WikiData/N.json`` is ``{"0": {"introduction", "cast", …}, "1": "…", "2": "…", "3": "…"}``. Section
0 is a table, and each of its entries is a passage: "director: …".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from groundwire.evaluate.datasets.examples import Example
from groundwire.runtime.errors import InvalidRequest

from .files import read_records, strip_all


class _Utterance(msgspec.Struct, frozen=True, rename={"section": "docIdx", "user": "uid"}):
    section: int
    text: str
    user: str


class _Conversation(msgspec.Struct, frozen=True, rename={"readers": "whoSawDoc", "document": "wikiDocumentIdx"}):
    history: list[_Utterance]
    readers: list[str]
    document: int


def read_cmu_dog(path: Path) -> Iterator[Example]:
    """The utterances of readers, conversations by their file names."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    documents: dict[int, dict[str, Any]] = {}
    if not files:
        raise InvalidRequest(f"{path} holds no conversation (*.json); give CMU-DoG's folder Conversations/train, say.")
    for file in files:
        conversation = read_records(file, _Conversation, "a conversation of CMU-DoG")
        number = conversation.document
        if number not in documents:
            where = file.parent.parent.parent / "WikiData" / f"{number}.json"
            documents[number] = read_records(where, dict[str, Any], "a document of CMU-DoG's WikiData")
        history: list[str] = []
        for index, utterance in enumerate(conversation.history):
            knowledge = _list_passages(documents[number].get(str(utterance.section)))
            if utterance.user in conversation.readers and knowledge and utterance.text.strip():
                yield Example(
                    f"{file.stem}-{index}", utterance.text.strip(), knowledge, tuple(history), source=str(number)
                )
            history.append(utterance.text.strip())


def _list_passages(section: Any) -> tuple[str, ...]:
    if isinstance(section, str):
        return strip_all([section])
    if not isinstance(section, dict):
        return ()
    entries = {name: value if isinstance(value, list) else [value] for name, value in section.items()}
    texts = {name: ", ".join(str(item).strip() for item in items) for name, items in entries.items()}
    return strip_all([text if name == "introduction" else f"{name}: {text}" for name, text in texts.items() if text])

"""MultiDoc2Dial (Feng et al. 2021): the agent's turns with the spans of documents that they refer to.

``multidoc2dial_dial_SPLIT.json`` is ``{"dial_data": {domain: [{"dial_id", "turns": [{"role", "utterance", "references":
[{"doc_id", "id_sp"}]}]}]}}``; ``multidoc2dial_doc.json`` is ``{"doc_data": {domain: {doc_id: {"spans": {id_sp:
{"text_sp"}}}}}}``. The spans of one document are one passage, in its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from groundwire.evaluate.datasets.examples import Example
from groundwire.runtime.errors import InvalidRequest

from .files import read_records, strip_all

DOCUMENTS = "multidoc2dial_doc.json"


class _Span(msgspec.Struct, frozen=True):
    text_sp: str


class _Document(msgspec.Struct, frozen=True):
    spans: dict[str, _Span]


class _Documents(msgspec.Struct, frozen=True):
    doc_data: dict[str, dict[str, _Document]]


class _Reference(msgspec.Struct, frozen=True):
    doc_id: str
    id_sp: str


class _Turn(msgspec.Struct, frozen=True):
    role: str
    utterance: str
    references: list[_Reference] = []


class _Dialogue(msgspec.Struct, frozen=True):
    dial_id: str
    turns: list[_Turn]


class _Dialogues(msgspec.Struct, frozen=True):
    dial_data: dict[str, list[_Dialogue]]


def read_multidoc2dial(path: Path) -> Iterator[Example]:
    """The agent's turns that refer to a document, in order; InvalidRequest for a reference that leads nowhere."""
    dialogues = read_records(path, _Dialogues, "a file of MultiDoc2Dial's dialogues").dial_data
    documents = read_records(path.parent / DOCUMENTS, _Documents, "MultiDoc2Dial's documents").doc_data
    for domain, conversations in dialogues.items():
        for conversation in conversations:
            history: list[str] = []
            for index, turn in enumerate(conversation.turns):
                name = f"{conversation.dial_id}-{index}"
                knowledge = _join_spans(documents.get(domain, {}), turn.references, f"{path}, turn {name}")
                if turn.role == "agent" and knowledge and turn.utterance.strip():
                    yield Example(name, turn.utterance.strip(), knowledge, tuple(history), source=domain)
                history.append(turn.utterance.strip())


def _join_spans(documents: dict[str, _Document], references: list[_Reference], where: str) -> tuple[str, ...]:
    named: dict[str, set[str]] = {}
    for reference in references:
        document = documents.get(reference.doc_id)
        if document is None or reference.id_sp not in document.spans:
            raise InvalidRequest(
                f"{where} refers to span {reference.id_sp!r} of {reference.doc_id!r}, which {DOCUMENTS} does not have; "
                "take both files from one release."
            )
        named.setdefault(reference.doc_id, set()).add(reference.id_sp)
    passages = [
        " ".join(span.text_sp.strip() for key, span in documents[doc].spans.items() if key in spans)
        for doc, spans in named.items()
    ]
    return strip_all(passages)

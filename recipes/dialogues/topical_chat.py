"""Topical-Chat (Gopalakrishnan et al. 2019): messages with the texts that their writers name as sources.

``conversations/SPLIT.json`` is ``{id: {"content": [{"agent", "message", "knowledge_source": ["FS1", "AS2", …]}]}}``.
The sources are in ``reading_sets/post-build/SPLIT.json``, per conversation and agent: "FS1" to "FS3" are a lead section
of Wikipedia and facts, "AS1" to "AS4" the parts of an article. "Personal Knowledge" cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from groundwire.evaluate.datasets.examples import Example
from groundwire.runtime.errors import InvalidRequest

from .files import read_records, strip_all

SECTIONS = ("shortened_wiki_lead_section", "summarized_wiki_lead_section")


class _Message(msgspec.Struct, frozen=True):
    message: str
    agent: str
    knowledge_source: list[str] = []


class _Conversation(msgspec.Struct, frozen=True):
    content: list[_Message]


def read_document_chats(path: Path) -> Iterator[Example]:
    """The messages that name a source, in order."""
    conversations = read_records(path, dict[str, _Conversation], "a file of Topical-Chat's conversations")
    sets = path.parent.parent / "reading_sets" / "post-build" / path.name
    if not sets.exists():
        raise InvalidRequest(
            f"{path} needs {sets}, the texts that its messages rest on; build it as Topical-Chat's README says."
        )
    reading = read_records(sets, dict[str, dict[str, Any]], "a file of Topical-Chat's reading sets")
    for name, conversation in conversations.items():
        history: list[str] = []
        for index, message in enumerate(conversation.content):
            sources = [_find_texts(reading.get(name, {}), message.agent, source) for source in message.knowledge_source]
            knowledge = strip_all([text for texts in sources for text in texts])
            if knowledge and message.message.strip():
                yield Example(f"{name}-{index}", message.message.strip(), knowledge, tuple(history), context=name)
            history.append(message.message.strip())


def _find_texts(reading: dict[str, Any], agent: str, source: str) -> list[str]:
    """The texts of a source; none for "Personal Knowledge" and sources that the set lacks."""
    if source.startswith("AS"):
        part = reading.get("article", {}).get(source)
        return [part] if isinstance(part, str) else []
    section = reading.get(agent, {}).get(source)
    if not isinstance(section, dict):
        return []
    facts = section.get("fun_facts", [])
    return [section[key] for key in SECTIONS if isinstance(section.get(key), str)] + [
        fact for fact in facts if isinstance(fact, str)
    ]

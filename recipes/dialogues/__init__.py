"""Dialogue sets whose files are not tables of responses: conversations, and knowledge that they point into.

Each module reads one set as its authors publish it and yields the turns that rest on knowledge, as people wrote them,
without labels. ``groundwire convert`` writes them as lines that every other command reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from groundwire.evaluate.datasets.examples import Example

from .cmu_dog import read_cmu_dog
from .multidoc2dial import read_multidoc2dial
from .topical_chat import read_document_chats
from .wizard import read_wizard


class DialogueSet(NamedTuple):
    """A dialogue set."""

    about: str
    """Which file or folder it is read from."""
    read: Callable[[Path], Iterator[Example]]
    """The turns that rest on knowledge, in order; InvalidRequest for files of another form."""


DIALOGUES: Mapping[str, DialogueSet] = MappingProxyType(
    {
        "wow": DialogueSet("Wizard of Wikipedia: train.json, valid_random_split.json, …", read_wizard),
        "topical-chat": DialogueSet(
            "Topical-Chat: conversations/train.json, …, with reading_sets/post-build beside the folder",
            read_document_chats,
        ),
        "cmu-dog": DialogueSet("CMU-DoG: the folder Conversations/train, …, with WikiData two levels up", read_cmu_dog),
        "multidoc2dial": DialogueSet(
            "MultiDoc2Dial: multidoc2dial_dial_train.json, …, with multidoc2dial_doc.json beside it", read_multidoc2dial
        ),
    }
)
"""By the name that ``groundwire convert`` knows."""

__all__ = ["DIALOGUES", "DialogueSet"]

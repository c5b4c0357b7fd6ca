"""The dialogues about a knowledge graph that critic and retriever are trained and measured on."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from ..common.triple_index import Split
from . import opendialkg
from .batches import DialogueSource
from .templates import TemplateDialogues


class DialogueCorpus(StrEnum):
    """The dialogues that critic and retriever are trained on."""

    TEMPLATES = "templates"
    """Dialogues made from FB15k-237."""
    OPENDIALKG = "opendialkg"
    """Dialogues of people about films. The licence (CC BY-NC 4.0) forbids to ship weights trained on them."""

    @property
    def held_out(self) -> str:
        """Name of its test part in reports."""
        return {"templates": "fb15k237_test", "opendialkg": "opendialkg_test"}[self.value]

    def read(self, data: Path, split: Split = "train") -> DialogueSource:
        """The dialogues of ``split``; InvalidRequest when OpenDialKG's files are not in ``data``."""
        if self is DialogueCorpus.OPENDIALKG:
            return opendialkg.OpenDialKGTurns.read(data, "valid" if split == "dev" else split)
        return TemplateDialogues.read(data, split)


def read_held_out(data: Path, dialogues: DialogueCorpus | None = None) -> dict[str, DialogueSource]:
    """The test part of ``dialogues`` by name; None takes both, OpenDialKG only where ``data`` has it."""
    both = (DialogueCorpus.TEMPLATES, *([DialogueCorpus.OPENDIALKG] if opendialkg.has_opendialkg(data) else []))
    return {kind.held_out: kind.read(data, "test") for kind in (both if dialogues is None else [dialogues])}

"""Exports ``bundles/nph``, the embedded bundle that repairs responses about a knowledge graph.

Critic and retriever share MiniLM's word embeddings, which are stored once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from groundwire.export import RoleOptions, Title, export_bundle
from groundwire.runtime.bundles.bundle import Bundle

from .dialogue_corpus import DialogueCorpus

VERSION = "1"
LICENSE = "Apache-2.0 AND CC-BY-2.5 AND CC-BY-SA-4.0"
"""Of MiniLM and the named triples of FB15k-237; of Freebase, the source of those; and of SQuAD, on which the extractive
QA checkpoint was trained that the critic started from."""
CRITIC_WINDOW = 256
"""Tokens the critic reads at once; longer premises are read in windows. The retriever's is its checkpoint's."""


def export_nph_bundle(
    checkpoints: Path, out: Path, watch: Callable[[str, str], None], *, precision: str = "int8", force: bool = False
) -> Bundle:
    """Export ``critic`` and ``retriever`` from the directories of these names in ``checkpoints``.

    A role without a finished checkpoint is left out, and a bundle in ``out`` keeps its own. ValueError when both are
    missing.
    """
    roles = collect_nph_roles(checkpoints, precision)
    return export_bundle(roles, out, title=Title("nph", VERSION, LICENSE), force=force, watch=watch)


def collect_nph_roles(checkpoints: Path, precision: str = "int8") -> dict[str, RoleOptions]:
    """The roles whose recipes have finished; before that, a directory holds only the state of its run.

    ValueError when there is none, and for a role trained on dialogues whose licence forbids to ship its weights.
    """
    weights: Literal["int8", "fp32"] = "int8" if precision == "int8" else "fp32"
    windows = {"critic": CRITIC_WINDOW, "retriever": None}
    finished = {
        role: RoleOptions(str(checkpoints / role), precision=weights, max_tokens=window)
        for role, window in windows.items()
        if (checkpoints / role / "config.json").is_file()
    }
    if not finished:
        raise ValueError(
            f"{checkpoints} holds no finished critic or retriever; train them with "
            "`python -m groundwire.recipes critic` and `retriever`."
        )
    for role in finished:
        report = checkpoints / role / "report.json"
        if report.is_file() and json.loads(report.read_text()).get("dialogues") == DialogueCorpus.OPENDIALKG.value:
            raise ValueError(
                f"{report.parent} was trained on OpenDialKG, whose licence (CC BY-NC 4.0) forbids to ship weights "
                "trained on it; train one with --dialogues templates."
            )
    return finished

"""The embedded bundle that repairs responses about a knowledge graph: ``bundles/nph``.

Critic and retriever share MiniLM's words, which are stored once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from groundwire.export import RoleOptions, Title, export_bundle
from groundwire.runtime.bundle import Bundle

from .retriever import DialogueCorpus

VERSION = "1"
LICENSE = "Apache-2.0 AND CC-BY-2.5 AND CC-BY-SA-4.0"
"""Of MiniLM and the named triples of FB15k-237, of Freebase, which those come from, and of SQuAD, which the reader has
learnt from that the critic started as."""
CRITIC_WINDOW = 256
"""Tokens the critic reads at once; longer premises are read in windows. The retriever's is its checkpoint's."""


def export_nph_bundle(
    checkpoints: Path, out: Path, watch: Callable[[str, str], None], *, precision: str = "int8", force: bool = False
) -> Bundle:
    """Export ``critic`` and ``retriever`` from the directories of these names in ``checkpoints``.

    A role without a checkpoint is left out, and what a bundle in ``out`` has of it stays. ValueError when both lack.
    """
    roles = collect_nph_roles(checkpoints, precision)
    return export_bundle(roles, out, title=Title("nph", VERSION, LICENSE), force=force, watch=watch)


def collect_nph_roles(checkpoints: Path, precision: str = "int8") -> dict[str, RoleOptions]:
    """The roles whose recipes have ended: before that, a directory holds the state of its run only.

    ValueError, too, for a retriever that has seen dialogues whose licence keeps what was learnt from them to oneself.
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
            f"{checkpoints} holds no finished critic or retriever; `python -m groundwire.train` makes them."
        )
    report = checkpoints / "retriever" / "report.json"
    if report.is_file() and json.loads(report.read_text()).get("dialogues") == DialogueCorpus.OPENDIALKG.value:
        raise ValueError(
            f"{report.parent} was trained on OpenDialKG, whose licence (CC BY-NC 4.0) keeps weights out of a bundle "
            "that is given away; train one with --dialogues templates."
        )
    return finished

"""The embedded bundle from its trained checkpoints: ``bundles/compact``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from groundwire.export import RoleOptions, Title, export_bundle
from groundwire.export.options import read_shortlist
from groundwire.runtime.bundle import Bundle, Template
from groundwire.train.common import backbone

from . import shortlist

WINDOW = 256
"""Tokens the models read at once. They were trained on at most 128, the language model on about 200, and longer
windows are rarely better."""
VERSION = "2"
BERTSCORE_LAYER = 4
"""Of the embedder's six. Measured as ROC-AUC of BERTScore's precision and F1 on the first 300 rows of two development
sets: on begin_wow_dev 0.95 and 0.86 from layer 3 to 4, 0.90 and 0.83 at 6; on fever_symmetric_dev 0.64 and 0.58 at 3,
0.66 and 0.60 at 4, 0.70 and 0.68 at 6. Every layer takes 1.8 MB."""
LICENSE = "Apache-2.0 AND CC-BY-SA-4.0 AND CC-BY-4.0 AND MIT"
CHAT_LICENSE = "CDLA-Sharing-1.0"
"""Of Topical-Chat, which the judge and the language model have read."""


def export_compact_bundle(
    checkpoints: Path, out: Path, watch: Callable[[str, str], None], *, precision: str = "int8", force: bool = False
) -> Bundle:
    """Export what ``checkpoints`` holds as one bundle, with the word embeddings and the judge's trunk stored once.

    With ``force``, what a bundle in ``out`` has beside these roles stays.
    """
    roles = collect_compact_roles(checkpoints, precision)
    has_read_chats = any((checkpoints / name).is_dir() for name in ("judge", "lm"))
    title = Title("compact", VERSION, f"{LICENSE} AND {CHAT_LICENSE}" if has_read_chats else LICENSE)
    return export_bundle(roles, out, title=title, force=force, watch=watch)


def collect_compact_roles(checkpoints: Path, precision: str = "int8") -> dict[str, RoleOptions]:
    """The roles that can be exported from the recipes' outputs in ``checkpoints``, each in a directory of its name.

    The inference head of ``judge`` goes before that of ``nli``. The embedder is the pretrained trunk itself.
    ValueError when there is no checkpoint at all.
    """
    weights: Literal["int8", "fp32"] = "int8" if precision == "int8" else "fp32"

    def options(*parts: str, template: Template | None = None, sentence: bool = False) -> RoleOptions:
        return RoleOptions(
            str(checkpoints.joinpath(*parts)),
            precision=weights,
            template=template,
            max_tokens=WINDOW,
            unit="sentence" if sentence else "response",
        )

    candidates = {
        "spans": RoleOptions(str(checkpoints / "spans"), half=weights == "int8"),
        "qg": _with_shortlist(options("qg", template=Template("{answer}", "{context}"))),
        "qa": options("qa"),
        "nli": options("judge", "nli") if _complete(checkpoints / "judge" / "nli") else options("nli"),
        "detector.consistency": options("judge", "consistency"),
        "detector.verifiability": options("judge", "verifiability", template=Template("{hypothesis}"), sentence=True),
        "lm": options("lm"),
    }
    finished = {role: wanted for role, wanted in candidates.items() if _complete(Path(wanted.source))}
    if not finished:
        names = "qa, nli, qg, spans, judge and lm"
        raise ValueError(f"{checkpoints} holds no finished checkpoint; the recipes write {names} there.")
    embedder = RoleOptions(str(backbone.PATH), precision=weights, max_tokens=WINDOW, layer=BERTSCORE_LAYER)
    return {**finished, "embedder": embedder}


def _with_shortlist(generator: RoleOptions) -> RoleOptions:
    """``generator`` with the shortlist that its recipe left, where the heads are int8."""
    file = Path(generator.source) / shortlist.FILE
    if generator.precision != "int8" or not file.is_file():
        return generator
    return replace(generator, shortlist=read_shortlist(file))


def _complete(checkpoint: Path) -> bool:
    """Whether a recipe has ended there: before that, the directory holds the state of its run only."""
    return (checkpoint / "config.json").is_file() or (checkpoint / "config.cfg").is_file()

"""Exports the embedded bundle ``bundles/compact`` from its trained checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from groundwire.export import (
    ClassifierSettings,
    EmbedderSettings,
    QuestionGeneratorSettings,
    RoleOptions,
    SpansSettings,
    Title,
    export_bundle,
)
from groundwire.export.options import read_shortlist
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import Template

from ..common import backbone
from . import shortlist

WINDOW = 256
"""Tokens that the models read at once. They were trained on at most 256, most of them on
128, and longer windows are rarely better."""
LANGUAGE_MODEL_WINDOW = 1024
"""The same of the language model, which was trained on documents of up to 700 words."""
VERSION = "4"
BERTSCORE_LAYER = 4
"""Layer of BERTScore, among the embedder's six. Measured as ROC-AUC of BERTScore's precision and F1 on the first 300
rows of two development sets: on begin_wow_dev 0.95 and 0.86 from layer 3 to 4, 0.90 and 0.83 at 6; on
fever_symmetric_dev 0.64 and 0.58 at 3, 0.66 and 0.60 at 4, 0.70 and 0.68 at 6. Every layer takes 1.8 MB."""
BERTSCORE_BASELINE = (0.41152, 0.411978, 0.410529)
"""BERTScore of unrelated sentences at that layer: ``bertscore-baseline`` on 20,000 sentences of Wikipedia; another draw
differs by 0.0003."""
LICENSE = "Apache-2.0 AND CC-BY-SA-4.0 AND CC-BY-4.0 AND MIT"
CHAT_LICENSE = "CDLA-Sharing-1.0"
"""The licence of Topical-Chat, on which the multi-task NLI model and the language model are trained."""
CHECKPOINTS = "qa, nli, qg, spans, multitask_nli and lm"
"""Directories of the checkpoints below the given one; each is named for its recipe."""


def export_compact_bundle(
    checkpoints: Path, out: Path, watch: Callable[[str, str], None], *, precision: str = "int8", force: bool = False
) -> Bundle:
    """Export the finished checkpoints as one bundle, which stores the word embeddings and the shared backbone once.

    With ``force``, the other roles of a bundle that is already in ``out`` stay.
    """
    roles = collect_compact_roles(checkpoints, precision)
    has_read_chats = any((checkpoints / name).is_dir() for name in ("multitask_nli", "lm"))
    title = Title("compact", VERSION, f"{LICENSE} AND {CHAT_LICENSE}" if has_read_chats else LICENSE)
    return export_bundle(roles, out, title=title, force=force, watch=watch)


def collect_compact_roles(checkpoints: Path, precision: str = "int8") -> dict[str, RoleOptions]:
    """The roles whose checkpoints are finished; each checkpoint is a directory of ``checkpoints`` named for its recipe.

    The inference head of ``multitask_nli`` is preferred to ``nli``. The embedder is the pretrained backbone itself.
    ValueError without any checkpoint.
    """
    weights: Literal["int8", "fp32"] = "int8" if precision == "int8" else "fp32"

    def options(*parts: str, kind: ClassifierSettings | QuestionGeneratorSettings | None = None) -> RoleOptions:
        return RoleOptions(str(checkpoints.joinpath(*parts)), kind, precision=weights, max_tokens=WINDOW)

    candidates = {
        "spans": RoleOptions(str(checkpoints / "spans"), SpansSettings(half=weights == "int8")),
        "qg": options("qg", kind=_describe_questions(checkpoints / "qg", weights)),
        "qa": options("qa"),
        "nli": options("multitask_nli", "nli")
        if _is_finished(checkpoints / "multitask_nli" / "nli")
        else options("nli"),
        "detector.consistency": options("multitask_nli", "consistency"),
        "detector.verifiability": options(
            "multitask_nli",
            "verifiability",
            kind=ClassifierSettings(template=Template("{hypothesis}"), unit="sentence"),
        ),
        "token_classifier": options("multitask_nli", "token_classifier"),
        "lm": replace(options("lm"), max_tokens=LANGUAGE_MODEL_WINDOW),
    }
    finished = {role: wanted for role, wanted in candidates.items() if _is_finished(Path(wanted.source))}
    if not finished:
        raise ValueError(
            f"{checkpoints} holds no finished checkpoint; run recipes with --out {checkpoints}/NAME, NAME one of "
            f"{CHECKPOINTS}."
        )
    embedder = RoleOptions(
        str(backbone.PATH),
        EmbedderSettings(layer=BERTSCORE_LAYER, baseline=BERTSCORE_BASELINE),
        precision=weights,
        max_tokens=WINDOW,
    )
    return {**finished, "embedder": embedder}


def _describe_questions(checkpoint: Path, weights: str) -> QuestionGeneratorSettings:
    """The options of the question generator, with the shortlist in its checkpoint if the heads are int8."""
    file = checkpoint / shortlist.FILE
    words = read_shortlist(file) if weights == "int8" and file.is_file() else ()
    return QuestionGeneratorSettings(Template("{answer}", "{context}"), shortlist=words)


def _is_finished(checkpoint: Path) -> bool:
    """Whether the recipe has finished; before that, the directory holds only the state of its run."""
    return (checkpoint / "config.json").is_file() or (checkpoint / "config.cfg").is_file()

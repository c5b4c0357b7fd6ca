"""Exports ``bundles/reader``, the embedded bundle of the default verdict, from a run of the reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from groundwire.export import Gate, ReaderSettings, RoleOptions, Title, export_bundle
from groundwire.export.checkpoint import Checkpoint
from groundwire.export.roles.reader import ReaderGraph
from groundwire.export.tokens import fast_json
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ReaderHead

from ..common import backbone
from ..compact.multitask_model import HEADS, TOKEN_HEAD, TOKEN_LABELS
from .model import SENTENCE_HEAD, SENTENCE_LABELS, STATES_NOTHING, Reader, load_reader
from .rows import HISTORY_MARK

ROLE = "reader"
VERSION = "3"
WINDOW = 320
"""Tokens that the reader reads at once, as many as in the longest rows of its training."""
LICENSE = "Apache-2.0 AND CC-BY-SA-4.0 AND CC-BY-4.0 AND MIT AND CDLA-Sharing-1.0"


def export_reader_bundle(
    run: Path, out: Path, watch: Callable[[str, str], None], *, precision: str = "int8", force: bool = False
) -> Bundle:
    """Export the last checkpoint of a run, going on or finished.

    Args:
        run: Directory with ``config.json`` and ``checkpoint.pt``.
        out: Directory of the bundle.
        watch: Called with the role and the stage that begins.
        precision: ``int8`` or ``fp32``.
        force: Whether the role of a bundle in ``out`` is replaced.

    Returns:
        The bundle. It has no calibration: ``groundwire calibrate`` fits one.
    """
    weights: Literal["int8", "fp32"] = "int8" if precision == "int8" else "fp32"
    options = RoleOptions(
        str(run),
        ReaderSettings(make_checkpoint(load_reader(run), run.name), turn_end=HISTORY_MARK),
        precision=weights,
        gate=Gate.of(weights, heads=len(describe_heads())),
    )
    return export_bundle({ROLE: options}, out, title=Title(ROLE, VERSION, LICENSE), force=force, watch=watch)


def make_checkpoint(reader: Reader, name: str, window: int = WINDOW) -> Checkpoint:
    """A loaded reader as the exporter takes it."""
    tokens = backbone.load_tokenizer()
    return Checkpoint(
        model=ReaderGraph(reader, describe_heads()).eval(),
        tokenizer=fast_json(tokens, str(backbone.PATH)),
        name=name,
        revision=None,
        max_tokens=window,
        pad_id=int(tokens.pad_token_id),
    )


def describe_heads() -> dict[str, ReaderHead]:
    """The heads by name, with the labels that support."""
    heads = {name: ReaderHead(labels, labels[:1], "answer") for name, labels in HEADS.items()}
    heads["verifiability"] = ReaderHead(
        HEADS["verifiability"], HEADS["verifiability"][:1], "answer", HEADS["verifiability"][1:]
    )
    heads[TOKEN_HEAD] = ReaderHead(TOKEN_LABELS, TOKEN_LABELS[:1], "token")
    heads[SENTENCE_HEAD] = ReaderHead(
        SENTENCE_LABELS, SENTENCE_LABELS[:1], "sentence", (SENTENCE_LABELS[STATES_NOTHING],)
    )
    return heads

"""Exports ``bundles/reader``, the embedded bundle of the default verdict, from a run of the reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from groundwire.export import Gate, ReaderSettings, RoleOptions, Title, export_bundle
from groundwire.export.checkpoint import Checkpoint
from groundwire.export.roles.reader import ReaderGraph
from groundwire.export.tokens import fast_json
from groundwire.runtime.bundles.bundle import MANIFEST, Bundle
from groundwire.runtime.bundles.manifest import ReaderHead, TargetName

from ..common import backbone
from ..compact.multitask_model import HEADS, TOKEN_HEAD, TOKEN_LABELS
from .model import SENTENCE_HEAD, SENTENCE_LABELS, STATES_NOTHING, Reader, load_reader
from .rows import HISTORY_MARK

Precision: TypeAlias = Literal["int8", "fp32", "fp16"]
ROLE = "reader"
VERSION = "4"
WINDOW = 512
"""Tokens that the reader reads at once, as many as its backbone has positions."""
LICENSE = "Apache-2.0 AND CC-BY-SA-4.0 AND CC-BY-4.0 AND MIT AND CDLA-Sharing-1.0"


def export_reader_bundle(
    run: Path,
    out: Path,
    watch: Callable[[str, str], None],
    *,
    precision: Precision = "int8",
    target: TargetName | None = None,
    force: bool = False,
) -> Bundle:
    """Export the last checkpoint of a run, going on or finished, or the weights of a reader's bundle.

    Args:
        run: Directory with ``config.json`` and ``checkpoint.pt``, or a bundle.
        out: Directory of the bundle.
        watch: Called with the role and the stage that begins.
        precision: Of the graphs: ``int8``, ``fp32``, or for a target ``fp16``.
        target: The kind of device that gets graphs of its own; None exports the role's own.
        force: Whether the role of a bundle in ``out`` is replaced.

    Returns:
        The bundle. It has the calibration of the bundle whose weights it has; after a run ``groundwire calibrate`` fits
        one.
    """
    options = RoleOptions(
        str(run),
        ReaderSettings(make_checkpoint(load_reader(run), run.name), turn_end=HISTORY_MARK),
        precision=precision,
        gate=Gate.of(precision, heads=len(describe_heads())),
        target=target,
    )
    bundle = export_bundle({ROLE: options}, out, title=Title(ROLE, VERSION, LICENSE), force=force, watch=watch)
    calibration = Bundle.open(run).manifest.calibration if (run / MANIFEST).is_file() else None
    return bundle if calibration is None else bundle.calibrate(calibration)


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

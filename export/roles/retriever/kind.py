"""Entity retrievers: three graphs, from checkpoints that ``groundwire.recipes`` wrote."""

from __future__ import annotations

from pathlib import Path

import msgspec
from safetensors import SafetensorError
from transformers import AutoTokenizer

from groundwire.runtime import _native
from groundwire.runtime.bundles.manifest import RetrieverRole, Template
from groundwire.runtime.errors import ExportError

from ... import tokens
from ...checkpoint import Checkpoint
from ...options import RoleOptions
from ..kind import CommonFields, Conversion, ExportKind
from .graphs import build_retriever_graphs
from .model import EntityRetriever
from .run import record as build_record
from .verify import RetrieverReference

NAME = "retriever"


def _load(options: RoleOptions) -> Checkpoint:
    """Load a checkpoint from its directory: no hub has such models."""
    folder = Path(options.source)
    try:
        model = EntityRetriever.load(folder)
        tokenizer = AutoTokenizer.from_pretrained(str(folder), use_fast=True)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise ExportError(
            f"The retriever checkpoint {options.source!r} cannot be loaded: {str(error).strip().splitlines()[0]} "
            "Give a directory that `python -m groundwire.recipes retriever` wrote."
        ) from error
    max_tokens = min(options.max_tokens or model.config.max_tokens, model.bert.max_position_embeddings)
    # The runtime pads a text to a width that may be a little above its length.
    model.keep_positions(_native.bucket_width(max_tokens))
    return Checkpoint(
        model=model,
        tokenizer=tokens.fast_json(tokenizer, options.source),
        name=folder.resolve().name,
        revision=options.revision,
        max_tokens=max_tokens,
        pad_id=int(tokenizer.pad_token_id or 0),
    )


def _convert(role: str, checkpoint: Checkpoint, options: RoleOptions) -> Conversion:
    files = {part: f"{role}.{part}.onnx" for part in ("encoder", "query", "memory")}

    def record(common: CommonFields) -> RetrieverRole:
        described = build_record(checkpoint.model, checkpoint.tokenizer)
        return msgspec.structs.replace(described, **common, **files)

    graphs = dict(zip(files.values(), build_retriever_graphs(checkpoint.model), strict=True))
    return Conversion(graphs, Template("{text}"), record)


def _build_reference(checkpoint: Checkpoint, template: Template) -> RetrieverReference:
    return RetrieverReference(checkpoint)


KIND = ExportKind(NAME, _load, _convert, _build_reference)

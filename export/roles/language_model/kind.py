"""Language models: one graph that scores texts, and a chunked head of its own for a large vocabulary."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from transformers import AutoModelForCausalLM

from groundwire.runtime.bundles.manifest import LanguageModelRole, Template

from ...checkpoint import Checkpoint, load_pretrained
from ...options import RoleOptions
from ...passes.chunked_head import split_head
from ...store import RoleFiles, describe_head
from ...verify.language_model import LanguageModelReference
from ..kind import CommonFields, Conversion, ExportKind
from .graph import build_scoring_graph

NAME = "language_model"


def _load(options: RoleOptions) -> Checkpoint:
    return load_pretrained(NAME, options, AutoModelForCausalLM)


def _convert(role: str, checkpoint: Checkpoint, options: RoleOptions) -> Conversion:
    file, head_file = f"{role}.onnx", f"{role}.head.onnx"
    scoring = build_scoring_graph(checkpoint.model, streamed=options.precision != "fp16" and options.target is None)

    def record(common: CommonFields) -> LanguageModelRole:
        return LanguageModelRole(
            **common, graph=file, layers=scoring.layers, heads=scoring.heads, head_dim=scoring.head_dim
        )

    def take_head_out(files: RoleFiles) -> RoleFiles:
        head = split_head(files.graphs[file])
        if head is None:
            return files
        with_head = msgspec.structs.replace(files.record, head=describe_head(head_file, head))
        return replace(files, record=with_head, graphs={**files.graphs, head_file: head})

    return Conversion({file: scoring.graph}, Template("{text}"), record, take_head_out)


def _build_reference(checkpoint: Checkpoint, template: Template) -> LanguageModelReference:
    return LanguageModelReference(checkpoint)


KIND = ExportKind(NAME, _load, _convert, _build_reference)

"""Extractive QA models: start and end logits of an answer span, one ONNX graph."""

from __future__ import annotations

from transformers import AutoModelForQuestionAnswering

from groundwire.runtime.bundles.manifest import ExtractiveQARole, Template

from ..checkpoint import Checkpoint, load_pretrained
from ..options import RoleOptions
from ..verify.encoder import EncoderReference
from ..verify.examples import fill_batches
from .encoder import build_encoder_graph
from .kind import CommonFields, Conversion, ExportKind

NAME = "extractive_qa"


def _load(options: RoleOptions) -> Checkpoint:
    return load_pretrained(NAME, options, AutoModelForQuestionAnswering)


def _convert(role: str, checkpoint: Checkpoint, options: RoleOptions) -> Conversion:
    file = f"{role}.onnx"

    def record(common: CommonFields) -> ExtractiveQARole:
        return ExtractiveQARole(**common, graph=file)

    graph = build_encoder_graph(checkpoint.model, "question-answering")
    return Conversion({file: graph}, Template("{question}", "{passage}"), record)


def _build_reference(checkpoint: Checkpoint, template: Template) -> EncoderReference:
    return EncoderReference.of_pretrained(checkpoint, fill_batches(checkpoint, template), "spans")


KIND = ExportKind(NAME, _load, _convert, _build_reference)

"""Token classifiers: one label for each token of a text pair, one ONNX graph."""

from __future__ import annotations

from transformers import AutoModelForTokenClassification

from groundwire.runtime.bundles.manifest import Template, TokenClassifierRole

from ..checkpoint import Checkpoint, load_pretrained
from ..labels import find_supported_labels, read_labels
from ..options import RoleOptions, TokenClassifierSettings
from ..verify.encoder import EncoderReference
from ..verify.examples import fill_batches
from .encoder import build_encoder_graph
from .kind import CommonFields, Conversion, ExportKind

NAME = "token_classifier"


def _load(options: RoleOptions) -> Checkpoint:
    return load_pretrained(NAME, options, AutoModelForTokenClassification)


def _convert(role: str, checkpoint: Checkpoint, options: RoleOptions) -> Conversion:
    file, settings = f"{role}.onnx", options.read(TokenClassifierSettings)
    labels = read_labels(role, checkpoint.model.config.id2label, settings.labels)
    (supported,) = find_supported_labels(role, labels, settings.supported)
    template = settings.template

    def record(common: CommonFields) -> TokenClassifierRole:
        return TokenClassifierRole(**common, graph=file, labels=labels, template=template, supported=supported)

    graph = build_encoder_graph(checkpoint.model, "token-classification")
    return Conversion({file: graph}, template, record)


def _build_reference(checkpoint: Checkpoint, template: Template) -> EncoderReference:
    return EncoderReference.of_pretrained(checkpoint, fill_batches(checkpoint, template), "token_labels")


KIND = ExportKind(NAME, _load, _convert, _build_reference)

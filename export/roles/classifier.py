"""Classifiers of text pairs: NLI models and detectors, one ONNX graph."""

from __future__ import annotations

from transformers import AutoModelForSequenceClassification

from groundwire.runtime.bundles.manifest import ClassifierRole, Template

from ..checkpoint import Checkpoint, load_pretrained
from ..labels import find_supported_labels, read_labels
from ..options import ClassifierSettings, RoleOptions
from ..verify.encoder import EncoderReference
from ..verify.examples import fill_batches
from .encoder import build_encoder_graph
from .kind import CommonFields, Conversion, ExportKind

NAME = "classifier"


def _load(options: RoleOptions) -> Checkpoint:
    one_separator = options.read(ClassifierSettings).one_separator
    return load_pretrained(NAME, options, AutoModelForSequenceClassification, one_separator=one_separator)


def _convert(role: str, checkpoint: Checkpoint, options: RoleOptions) -> Conversion:
    file, settings = f"{role}.onnx", options.read(ClassifierSettings)
    labels = read_labels(role, checkpoint.model.config.id2label, settings.labels)
    supported = () if role == "nli" else find_supported_labels(role, labels, settings.supported)
    template = settings.template

    def record(common: CommonFields) -> ClassifierRole:
        return ClassifierRole(
            **common, graph=file, labels=labels, template=template, supported=supported, unit=settings.unit
        )

    graph = build_encoder_graph(checkpoint.model, "text-classification")
    return Conversion({file: graph}, template, record)


def _build_reference(checkpoint: Checkpoint, template: Template) -> EncoderReference:
    return EncoderReference.of_pretrained(checkpoint, fill_batches(checkpoint, template), "label")


KIND = ExportKind(NAME, _load, _convert, _build_reference)

"""Classifiers of text pairs: NLI models and detectors, one ONNX graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from groundwire.runtime.bundles.manifest import ClassifierRole, Template
from groundwire.runtime.errors import ExportError

from ..alignscore import AlignScore, read_tokenizer
from ..checkpoint import Checkpoint, load_pretrained
from ..labels import find_supported_labels, name_one_logit, read_labels
from ..options import ClassifierSettings, RoleOptions
from ..sources import is_alignscore
from ..verify.encoder import EncoderReference
from ..verify.examples import fill_batches
from .encoder import build_encoder_graph, trace_encoder
from .kind import CommonFields, Conversion, ExportKind, set_aggregation

NAME = "classifier"


def _load(options: RoleOptions) -> Checkpoint:
    settings = options.read(ClassifierSettings)
    if is_alignscore(options.source):
        auto_class = AlignScore(settings.labels)
        return load_pretrained(NAME, options, auto_class, read_tokenizer=read_tokenizer)
    checkpoint = load_pretrained(
        NAME, options, AutoModelForSequenceClassification, one_separator=settings.one_separator
    )
    if checkpoint.model.config.num_labels == 1:
        widen_head(checkpoint.model)
    return checkpoint


@torch.no_grad()
def widen_head(model: Any) -> None:
    """Make two logits of one, in place: 0 and the logit, whose softmax is the logit's sigmoid."""
    heads = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.Linear) and child.out_features == 1
    ]
    if len(heads) != 1:
        raise ExportError(f"{type(model).__name__} has one logit, and its head cannot be found among its modules.")
    ((parent, name, head),) = heads
    wide = nn.Linear(head.in_features, 2, bias=head.bias is not None)
    wide.weight = nn.Parameter(torch.cat((torch.zeros_like(head.weight), head.weight)))
    if head.bias is not None:
        wide.bias = nn.Parameter(torch.cat((torch.zeros_like(head.bias), head.bias)))
    setattr(parent, name, wide)


class SequenceToLabel(nn.Module):
    """T5's and BART's classifiers as they can be traced: the label is read at the decoder's last end token."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, self.config = model, model.config
        self.backbone = getattr(model, "transformer", None) or model.model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        """Return the logits [B, C] of texts ``input_ids`` [B, T]."""
        start = torch.full_like(input_ids[:, :1], self.config.decoder_start_token_id)
        shifted = torch.cat((start, input_ids[:, :-1]), dim=1)
        states = self.backbone(
            input_ids=input_ids, attention_mask=attention_mask, decoder_input_ids=shifted, use_cache=False
        )[0]
        ends = input_ids.eq(self.config.eos_token_id).to(torch.int64) * torch.arange(input_ids.shape[1])
        last = ends.amax(1)[:, None, None].expand(-1, 1, states.shape[-1])
        return {"logits": self.model.classification_head(states.gather(1, last)[:, 0])}


def _convert(role: str, checkpoint: Checkpoint, options: RoleOptions) -> Conversion:
    file, settings = f"{role}.onnx", options.read(ClassifierSettings)
    config = checkpoint.model.config
    if config.num_labels == 1:
        labels: tuple[str, ...] = name_one_logit(role, config.id2label[0], settings.labels, settings.supported)
    else:
        labels = read_labels(role, config.id2label, settings.labels)
    supported = () if role == "nli" else find_supported_labels(role, labels, settings.supported)
    template = settings.template

    def record(common: CommonFields) -> ClassifierRole:
        return ClassifierRole(
            **common,
            graph=file,
            labels=labels,
            template=template,
            supported=supported,
            unit=settings.unit,
            aggregation=set_aggregation(settings.aggregation),
        )

    if config.is_encoder_decoder:
        graph = trace_encoder(SequenceToLabel(checkpoint.model), "text-classification")
    else:
        graph = build_encoder_graph(checkpoint.model, "text-classification")
    return Conversion({file: graph}, template, record)


def _build_reference(checkpoint: Checkpoint, template: Template) -> EncoderReference:
    return EncoderReference.of_pretrained(checkpoint, fill_batches(checkpoint, template), "label")


KIND = ExportKind(NAME, _load, _convert, _build_reference)

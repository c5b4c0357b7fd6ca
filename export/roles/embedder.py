"""Embedders, the encoders of BERTScore: cut after the layer that agrees best with human ratings, one ONNX graph.

The authors of BERTScore measured that layer, and the score of unrelated sentences there, for many checkpoints; the
table below has the common ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
from transformers import AutoModel, RobertaTokenizerFast

from groundwire.runtime.bundles.manifest import EmbedderRole, Template
from groundwire.runtime.errors import ExportError

from ..checkpoint import Checkpoint, load_pretrained, load_tokenizer
from ..options import EmbedderSettings, RoleOptions
from ..texts import EXAMPLES
from ..verify.embedder import EmbedderReference
from ..verify.examples import batch_texts
from .encoder import build_encoder_graph
from .kind import CommonFields, Conversion, ExportKind

NAME = "embedder"
CONTEXT = 64
"""Tokens that neighbouring windows share, so that each token has context on both sides in one of them."""
OUTPUT = "hidden"
"""The graph's output: float32 [B, T, D]."""


@dataclass(frozen=True)
class Published:
    """What is published about a checkpoint as an embedder."""

    layer: int
    """The layer that agrees best with human ratings on WMT16."""
    baseline: tuple[float, float, float] | None
    """Precision, recall and F1 of random English sentence pairs at that layer."""


PUBLISHED: dict[str, Published] = {
    "albert-base-v2": Published(9, (0.56169736, 0.56174135, 0.56031275)),
    "albert-xlarge-v2": Published(13, (0.28223696, 0.2822432, 0.27990422)),
    "albert-xxlarge-v2": Published(8, (0.23694733, 0.2369875, 0.23519956)),
    "bert-base-uncased": Published(9, (0.35375935, 0.3537393, 0.35219112)),
    "bert-large-uncased": Published(18, (0.4278576, 0.42786714, 0.42646673)),
    "bert-base-multilingual-cased": Published(9, (0.6320527, 0.6320019, 0.63146895)),
    "distilbert-base-uncased": Published(5, (0.6666034, 0.66660464, 0.66620487)),
    "distilroberta-base": Published(5, (0.84732, 0.84759504, 0.8473319)),
    "roberta-base": Published(10, (0.8146725, 0.8146619, 0.814463)),
    "roberta-large": Published(17, (0.83150584, 0.8314941, 0.83122575)),
    "roberta-large-mnli": Published(19, (0.6901594, 0.69018, 0.6896288)),
    "xlm-roberta-base": Published(9, (0.81658614, 0.8165717, 0.81639785)),
    "xlm-roberta-large": Published(17, (0.85291016, 0.8529066, 0.8525485)),
    "microsoft/mpnet-base": Published(8, None),
    "microsoft/deberta-v3-base": Published(9, None),
    "microsoft/deberta-v3-large": Published(12, None),
}
"""By hub id. Source: the package bert-score 0.3.13 (MIT), ``utils.model2layers`` and ``rescale_baseline/en``."""
_MOVED = ("albert/", "distilbert/", "google-bert/", "FacebookAI/")
"""Organisations to which the hub moved ids that had none."""


def look_up_published(source: str) -> Published | None:
    """Return what is published about the checkpoint ``source``; None for any other, such as a local directory."""
    for organisation in _MOVED:
        source = source.removeprefix(organisation)
    return PUBLISHED.get(source)


def keep_layers(model: Any, layer: int) -> None:
    """Keep the first ``layer`` layers of a transformers encoder, in place.

    ExportError when it has fewer, or when its layers cannot be found.
    """
    config = model.config
    total = config.num_hidden_layers
    if not 1 <= layer <= total:
        raise ExportError(f"layer={layer}; {type(model).__name__} has the layers 1 to {total}.")
    stack: Any = getattr(model, "encoder", None) or getattr(model, "transformer", None)
    if hasattr(stack, "albert_layer_groups") and config.num_hidden_groups == 1:
        pass  # one layer, run as often as the configuration says
    elif hasattr(stack, "layer"):
        stack.layer = stack.layer[:layer]
    else:
        raise ExportError(
            f"{type(model).__name__} cannot be cut after a layer; embedders are encoders like BERT, RoBERTa, XLM-R, "
            "MPNet, DeBERTa-v2 and -v3, DistilBERT, or ALBERT with one group of layers."
        )
    config.num_hidden_layers = layer


def build_embedder_graph(model: Any) -> ir.Model:
    """Return the float32 graph: the inputs of ``build_encoder_graph``, and the output ``hidden``."""
    model_graph = build_encoder_graph(model, "feature-extraction")
    model_graph.graph.outputs[0].name = OUTPUT
    return model_graph


def _load(options: RoleOptions) -> Checkpoint:
    return load_pretrained(NAME, options, AutoModel, reads_pooler=False, read_tokenizer=_read_tokenizer)


def _read_tokenizer(options: RoleOptions) -> Any:
    tokenizer = load_tokenizer(options)
    if isinstance(tokenizer, RobertaTokenizerFast):
        # bert-score puts a space before each text, so that its first word is tokenized like any other.
        return load_tokenizer(options, add_prefix_space=True)
    return tokenizer


def _convert(role: str, checkpoint: Checkpoint, options: RoleOptions) -> Conversion:
    file = f"{role}.onnx"
    published = look_up_published(options.source)
    settings = options.read(EmbedderSettings)
    layer = settings.layer
    if layer is None:
        layer = published.layer if published else checkpoint.model.config.num_hidden_layers
    baseline = settings.baseline or (published.baseline if published and published.layer == layer else None)

    def record(common: CommonFields) -> EmbedderRole:
        return EmbedderRole(**common, graph=file, layer=layer, baseline=baseline, stride=CONTEXT)

    keep_layers(checkpoint.model, layer)
    return Conversion({file: build_embedder_graph(checkpoint.model)}, Template("{text}"), record)


def _build_reference(checkpoint: Checkpoint, template: Template) -> EmbedderReference:
    claims = ((example.claim, None) for example in EXAMPLES)
    passages = dict.fromkeys((example.passage, None) for example in EXAMPLES)
    return EmbedderReference(checkpoint, batch_texts(checkpoint, claims), batch_texts(checkpoint, passages))


KIND = ExportKind(NAME, _load, _convert, _build_reference)

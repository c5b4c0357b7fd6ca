"""Encoders for BERTScore: cut behind the layer that serves best, then one ONNX graph.

Which layer that is, and what unrelated sentences score there, is known for the checkpoints that the authors of
BERTScore measured; the table below has the common ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from groundwire.runtime.errors import ExportError

from . import encoder

OUTPUT = "hidden"
"""The graph's output: float32 [B, T, D]."""


@dataclass(frozen=True)
class Known:
    """What is published about a checkpoint as an embedder."""

    layer: int
    """The layer that agrees best with human judgement on WMT16."""
    baseline: tuple[float, float, float] | None
    """Precision, recall and F1 of random English sentence pairs at that layer."""


KNOWN: dict[str, Known] = {
    "albert-base-v2": Known(9, (0.56169736, 0.56174135, 0.56031275)),
    "albert-xlarge-v2": Known(13, (0.28223696, 0.2822432, 0.27990422)),
    "albert-xxlarge-v2": Known(8, (0.23694733, 0.2369875, 0.23519956)),
    "bert-base-uncased": Known(9, (0.35375935, 0.3537393, 0.35219112)),
    "bert-large-uncased": Known(18, (0.4278576, 0.42786714, 0.42646673)),
    "bert-base-multilingual-cased": Known(9, (0.6320527, 0.6320019, 0.63146895)),
    "distilbert-base-uncased": Known(5, (0.6666034, 0.66660464, 0.66620487)),
    "distilroberta-base": Known(5, (0.84732, 0.84759504, 0.8473319)),
    "roberta-base": Known(10, (0.8146725, 0.8146619, 0.814463)),
    "roberta-large": Known(17, (0.83150584, 0.8314941, 0.83122575)),
    "roberta-large-mnli": Known(19, (0.6901594, 0.69018, 0.6896288)),
    "xlm-roberta-base": Known(9, (0.81658614, 0.8165717, 0.81639785)),
    "xlm-roberta-large": Known(17, (0.85291016, 0.8529066, 0.8525485)),
    "microsoft/mpnet-base": Known(8, None),
    "microsoft/deberta-v3-base": Known(9, None),
    "microsoft/deberta-v3-large": Known(12, None),
}
"""By hub id. Source: the package bert-score 0.3.13 (MIT), ``utils.model2layers`` and ``rescale_baseline/en``."""
_MOVED = ("albert/", "distilbert/", "google-bert/", "FacebookAI/")
"""Organisations that the hub moved the ids without one to."""


def known(source: str) -> Known | None:
    """What is published about the checkpoint ``source``; None for any other, a local directory say."""
    for organisation in _MOVED:
        source = source.removeprefix(organisation)
    return KNOWN.get(source)


def cut(model: Any, layer: int) -> None:
    """Leave the first ``layer`` layers of a transformers encoder, in place.

    ExportError when it has fewer, or is none of the encoders whose layers can be told apart.
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
            f"{type(model).__name__} cannot be cut behind a layer; embedders are encoders like BERT, RoBERTa, XLM-R, "
            "MPNet, DeBERTa-v2 and -v3, DistilBERT, or ALBERT with one group of layers."
        )
    config.num_hidden_layers = layer


def graph(model: Any) -> ir.Model:
    """The float32 graph: the inputs of ``encoder.graph``, the output ``hidden``."""
    made = encoder.graph(model, "feature-extraction")
    made.graph.outputs[0].name = OUTPUT
    return made

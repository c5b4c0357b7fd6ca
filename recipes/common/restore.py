"""Restores a checkpoint from a bundle's int8 graph, so that training can continue from a bundle.

Checkpoints are large and are not kept; bundles are. An int8 weight differs from the float
weight it was made of by at most half a quantization step of its column, which a few training steps make up for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch
from transformers import (
    BertConfig,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
    EncoderDecoderModel,
    GPT2LMHeadModel,
    PreTrainedModel,
)

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import (
    ClassifierRole,
    ExtractiveQARole,
    LanguageModelRole,
    QuestionGeneratorRole,
)

from . import backbone
from .question_model import build_question_decoder, join_question_generator

DECODER_NAMES = (
    (r"^embed\.words", "bert.embeddings.word_embeddings"),
    (r"^embed\.positions", "bert.embeddings.position_embeddings"),
    (r"^embed\.types", "bert.embeddings.token_type_embeddings"),
    (r"^embed\.norm", "bert.embeddings.LayerNorm"),
    (r"^head\.", "cls.predictions."),
    (r"^crosses\.(\d+)\.", r"bert.encoder.layer.\1.crossattention.self."),
    (r"^layers\.", "bert.encoder.layer."),
    (r"\.own\.output\.", ".attention.output.dense."),
    (r"\.own\.", ".attention.self."),
    (r"\.own_norm\.", ".attention.output.LayerNorm."),
    (r"\.cross\.output\.", ".crossattention.output.dense."),
    (r"\.cross\.", ".crossattention.self."),
    (r"\.cross_norm\.", ".crossattention.output.LayerNorm."),
    (r"\.feed_forward\.0\.", ".intermediate.dense."),
    (r"\.feed_forward\.2\.", ".output.dense."),
    (r"\.feed_forward_norm\.", ".output.LayerNorm."),
)
"""The names of a decoder's weights in a bundle's graphs, as patterns, and in a checkpoint; applied in this order."""
LANGUAGE_MODEL_NAMES = (
    (r"^embed\.positions", "transformer.wpe"),
    (r"^norm\.", "transformer.ln_f."),
    (r"^layers\.", "transformer.h."),
    (r"\.attention_norm\.", ".ln_1."),
    (r"\.feed_forward_norm\.", ".ln_2."),
    (r"\.attention\.output\.", ".attn.c_proj."),
    (r"\.feed_forward\.0\.", ".mlp.c_fc."),
    (r"\.feed_forward\.2\.", ".mlp.c_proj."),
)
"""The same for a language model; its queries, keys and values are one matrix in a checkpoint."""


def restore_checkpoint(bundle: Path, role: str) -> PreTrainedModel:
    """The PyTorch model of a role trained from the backbone: a reader, classifier, question generator, language model.

    Word embeddings are the backbone's, which no recipe changes. ValueError for another kind of role, or for a graph
    that lacks a weight of the model.
    """
    opened = Bundle.open(bundle)
    record = opened.manifest.roles.get(role)
    config = BertConfig.from_pretrained(backbone.PATH)
    model: PreTrainedModel
    match record:
        case ExtractiveQARole():
            model = BertForQuestionAnswering(config)
        case ClassifierRole():
            config.id2label = dict(enumerate(record.labels))
            config.label2id = {label: index for index, label in enumerate(record.labels)}
            model = BertForSequenceClassification(config)
        case QuestionGeneratorRole():
            return _restore_question_generator(opened, record)
        case LanguageModelRole(architecture="GPT2LMHeadModel"):
            return _restore_language_model(opened, record)
        case _:
            raise ValueError(
                f"{bundle} has no {role!r} that can be trained further; give its extractive QA role, a classifier, "
                "its question generator or its language model."
            )
    _fill(model, read_weights(ir.load(opened.file(record.graph))), "bert.", role)
    return model.eval()


def _restore_question_generator(bundle: Bundle, record: QuestionGeneratorRole) -> EncoderDecoderModel:
    encoder_weights, decoder_weights = (
        read_weights(ir.load(bundle.file(graph))) for graph in (record.encoder, record.decoder)
    )
    for name in [name for name in encoder_weights if name.startswith("crosses.")]:
        decoder_weights[name] = encoder_weights.pop(name)
    decoder_weights = _rename(decoder_weights, DECODER_NAMES)
    layers = {name.split(".")[3] for name in decoder_weights if name.startswith("bert.encoder.layer.")}
    encoder = BertModel(BertConfig.from_pretrained(backbone.PATH), add_pooling_layer=False)
    decoder = build_question_decoder(len(layers))
    _fill(encoder, {name.removeprefix("encoder."): weight for name, weight in encoder_weights.items()}, "", "qg")
    _fill(decoder, decoder_weights, "bert.", "qg")
    return join_question_generator(encoder, decoder)


def _restore_language_model(bundle: Bundle, record: LanguageModelRole) -> GPT2LMHeadModel:
    weights = _rename(read_weights(ir.load(bundle.file(record.graph))), LANGUAGE_MODEL_NAMES)
    for layer in range(record.layers):
        attention = f"transformer.h.{layer}.attention"
        for kind in ("weight", "bias"):
            parts = [weights.pop(f"{attention}.{name}.{kind}") for name in ("query", "key", "value")]
            # The graph's queries hold the scale of the scores.
            parts[0] = parts[0] * np.float32(record.head_dim**0.5)
            weights[f"transformer.h.{layer}.attn.c_attn.{kind}"] = np.concatenate(parts)
    # GPT-2 stores its matrices with the inputs first.
    weights = {name: array.T if re.search(r"c_\w+\.weight$", name) else array for name, array in weights.items()}
    words = _read_word_embeddings()
    weights |= {"transformer.wte.weight": words, "lm_head.weight": words}
    positions = len(weights["transformer.wpe.weight"])
    model = GPT2LMHeadModel(backbone.configure_language_model(record.layers, positions))
    _load(model, weights, "lm")
    return model.eval()


def _rename(
    weights: dict[str, npt.NDArray[np.float32]], names: Iterable[tuple[str, str]]
) -> dict[str, npt.NDArray[np.float32]]:
    for pattern, written in names:
        weights = {re.sub(pattern, written, name): weight for name, weight in weights.items()}
    return weights


def _read_word_embeddings() -> npt.NDArray[np.float32]:
    words: npt.NDArray[np.float32] = (
        BertModel.from_pretrained(backbone.PATH).get_input_embeddings().weight.detach().numpy().copy()
    )
    return words


def _fill(model: PreTrainedModel, weights: dict[str, npt.NDArray[np.float32]], prefix: str, role: str) -> None:
    """Give ``model`` the ``weights``; the backbone's are after ``prefix``, and its word embeddings come from MiniLM."""
    words = _read_word_embeddings()
    weights = weights | {f"{prefix}embeddings.word_embeddings.weight": words}
    if model.get_output_embeddings() is not None:
        weights |= {
            "cls.predictions.decoder.weight": words,
            "cls.predictions.decoder.bias": weights["cls.predictions.bias"],
        }
    _load(model, weights, role)


def fill_backbone(model: PreTrainedModel, weights: dict[str, npt.NDArray[np.float32]]) -> None:
    """Give a BERT the ``weights`` of a graph, as ``read_weights`` reads them; its word embeddings come from MiniLM."""
    _fill(model, {name.removeprefix("bert."): array for name, array in weights.items()}, "", "bert")


def _load(model: PreTrainedModel, weights: dict[str, npt.NDArray[np.float32]], role: str) -> None:
    state = model.state_dict()
    missing = [name for name in state if name not in weights and not name.endswith("_ids")]
    if missing:
        raise ValueError(f"The graph of {role!r} lacks {', '.join(missing[:3])}; it was exported from another model.")
    model.load_state_dict({name: torch.from_numpy(weights[name]) if name in weights else state[name] for name in state})


def write_restored_checkpoint(bundle: Path, role: str, out: Path) -> None:
    """Write the restored model and the backbone's tokenizer as a checkpoint in ``out``."""
    restore_checkpoint(bundle, role).save_pretrained(out)
    backbone.load_tokenizer().save_pretrained(out)


def read_weights(model: ir.Model) -> dict[str, npt.NDArray[np.float32]]:
    """The float weights of a graph by the names of its checkpoint, in PyTorch's orientation: [outputs, inputs]."""
    values = {str(name): value for name, value in model.graph.initializers.items() if value.const_value is not None}
    weights: dict[str, npt.NDArray[np.float32]] = {}
    for name, value in values.items():
        assert value.const_value is not None
        array = value.const_value.numpy()
        if array.ndim > 2:
            # A head in blocks of rows. It is tied to the word embeddings.
            continue
        if array.ndim == 2 and _is_stored_inputs_first(value):
            array = array.T
        if name.endswith(".int8"):
            name = name.removesuffix(".int8")
            scale = values[f"{name}.scale"].const_value
            assert scale is not None
            array = array.astype(np.float32) * scale.numpy()[:, None]
        if array.dtype == np.float32:
            weights[name] = np.array(array)
    return weights


def _is_stored_inputs_first(value: ir.Value) -> bool:
    """Whether a matrix product reads the matrix as stored, [inputs, outputs], and not transposed or row by row."""
    node, _ = next(iter(value.uses()))
    return node.op_type in ("MatMul", "MatMulIntegerToFloat") or (
        node.op_type == "Gemm" and node.attributes.get_int("transB", 0) == 0
    )

"""Splits a generating checkpoint into its two halves, by its family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from groundwire.runtime.errors import ExportError

from ..language_model import build_decoder
from . import bart, bert, t5
from .causal import PromptPass, build_causal_step
from .step import SourceEncoder, Step


@dataclass(frozen=True)
class Halves:
    """The two modules of a generating model, ready to be traced."""

    source: nn.Module
    """From ids and mask [B, T] to keys and values [B, H, T, D] of every layer."""
    step: Step
    token_types: bool
    """Whether the encoder reads ``token_type_ids``."""


def split_model(model: Any) -> Halves:
    """Return the halves of a transformers model in evaluation mode; ExportError for an unsupported family.

    Those of a causal model are the pass over its prompt and the step after it.
    """
    config = model.config
    match config.model_type:
        case "t5" | "mt5":
            step = t5.build_t5_step(model)
        case "bart":
            step = bart.build_bart_step(model)
        case "encoder-decoder" if (config.encoder.model_type, config.decoder.model_type) == ("bert", "bert"):
            for half in (config.encoder, config.decoder):
                if getattr(half, "position_embedding_type", "absolute") != "absolute":
                    raise ExportError(
                        f"The BERT half of this checkpoint has {half.position_embedding_type!r} positions; only "
                        "'absolute' ones can be exported."
                    )
            step = bert.build_bert_step(model)
        case other:
            decoder = None if config.is_encoder_decoder else build_decoder(model)
            if decoder is not None and decoder.slopes is None:
                causal = build_causal_step(decoder, model)
                return Halves(PromptPass(causal).eval(), causal.eval(), token_types=False)
            raise ExportError(
                f"No decoding step is written for the model type {other!r} ({type(model).__name__}). "
                "Supported: t5, mt5, bart, encoder-decoder made of two BERT models, gpt2, and llama, mistral, qwen2 "
                "and qwen3 with fixed frequencies of positions and without sliding windows."
            )
    bridge = getattr(model, "enc_to_dec_proj", None)
    token_types = getattr(getattr(config, "encoder", config), "type_vocab_size", 0) > 1
    return Halves(SourceEncoder(model.get_encoder(), step, bridge).eval(), step.eval(), token_types)

"""Which family a generating checkpoint belongs to, and what its two halves are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from groundwire.runtime.errors import ExportError

from . import bart, bert, gpt2, t5
from .step import Source, Step


@dataclass(frozen=True)
class Halves:
    """The two modules of a generator, ready to be traced."""

    source: nn.Module
    """From ids and mask [B, T] to keys and values [B, H, T, D] of every layer."""
    step: Step
    token_types: bool
    """Whether the encoder reads ``token_type_ids``."""


def split(model: Any) -> Halves:
    """The halves of a transformers model in evaluation mode; ExportError for a family not known here.

    Those of a causal model are the pass over its prompt and the step behind it.
    """
    config = model.config
    match config.model_type:
        case "t5" | "mt5":
            step = t5.step(model)
        case "bart":
            step = bart.step(model)
        case "encoder-decoder" if (config.encoder.model_type, config.decoder.model_type) == ("bert", "bert"):
            for half in (config.encoder, config.decoder):
                if getattr(half, "position_embedding_type", "absolute") != "absolute":
                    raise ExportError(
                        f"The BERT half of this checkpoint has {half.position_embedding_type!r} positions; only "
                        "'absolute' ones can be exported."
                    )
            step = bert.step(model)
        case "gpt2" if not config.add_cross_attention:
            step = gpt2.step(model)
            return Halves(gpt2.Prompt(step).eval(), step.eval(), token_types=False)
        case other:
            raise ExportError(
                f"No decoding step is written for the model type {other!r} ({type(model).__name__}). "
                "Supported: t5, mt5, bart, gpt2, and encoder-decoder made of two BERT models."
            )
    bridge = getattr(model, "enc_to_dec_proj", None)
    token_types = getattr(getattr(config, "encoder", config), "type_vocab_size", 0) > 1
    return Halves(Source(model.get_encoder(), step, bridge).eval(), step.eval(), token_types)

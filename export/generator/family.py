"""Which family an encoder-decoder checkpoint belongs to, and what its two halves are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groundwire.runtime.errors import ExportError

from . import bart, bert, t5
from .step import Source, Step


@dataclass(frozen=True)
class Halves:
    """The two modules of a generator, ready to be traced."""

    source: Source
    step: Step
    token_types: bool
    """Whether the encoder reads ``token_type_ids``."""


def split(model: Any) -> Halves:
    """The halves of a transformers encoder-decoder in evaluation mode; ExportError for a family not known here."""
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
        case other:
            raise ExportError(
                f"No decoding step is written for the model type {other!r} ({type(model).__name__}). "
                "Supported: t5, mt5, bart, and encoder-decoder made of two BERT models."
            )
    bridge = getattr(model, "enc_to_dec_proj", None)
    token_types = getattr(getattr(config, "encoder", config), "type_vocab_size", 0) > 1
    return Halves(Source(model.get_encoder(), step, bridge).eval(), step.eval(), token_types)

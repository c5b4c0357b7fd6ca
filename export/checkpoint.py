"""Loading a checkpoint: model, tokenizer and the numbers a manifest needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    RobertaTokenizerFast,
)

from groundwire.runtime import _native
from groundwire.runtime.errors import ExportError

from . import tokens
from .options import Kind, RoleOptions
from .roles.retriever.model import EntityRetriever
from .trace import quiet

_LOADERS = {
    "extractive_qa": AutoModelForQuestionAnswering,
    "classifier": AutoModelForSequenceClassification,
    "token_classifier": AutoModelForTokenClassification,
    "question_generator": AutoModelForSeq2SeqLM,
    "embedder": AutoModel,
    "language_model": AutoModelForCausalLM,
}
# Position ids of these families start behind the padding id, so that many rows of the table are never reached.
_OFFSET_POSITIONS = frozenset(
    {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "roberta-prelayernorm", "mpnet"}
)
_RELATIVE_POSITIONS = frozenset({"t5", "mt5"})
"""The sizes that configurations of these name are no end of their positions."""
_UNSET = 100_000
"""Tokenizers without a limit report a huge model_max_length."""


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint in evaluation mode, float32."""

    model: Any
    tokenizer: str
    """Content of ``tokenizer.json``."""
    name: str
    """What the manifest calls the source: the hub id, or the name of the local directory."""
    revision: str | None
    max_tokens: int
    pad_id: int

    @property
    def float_modules(self) -> tuple[str, ...]:
        """Modules whose family keeps them in float32 in half precision."""
        return tuple(self.model._keep_in_fp32_modules or ())

    @property
    def architecture(self) -> str:
        """The transformers class."""
        return type(self.model).__name__


def load(kind: Kind, options: RoleOptions) -> Checkpoint:
    """Load with transformers; ExportError when the checkpoint is not there or is of another kind."""
    local = Path(options.source)
    if kind == "retriever":
        return _retriever(local, options)
    try:
        with quiet():
            loader = _writer_loader(options) if kind == "response_generator" else _LOADERS[kind]
            model, report = loader.from_pretrained(
                options.source,
                revision=options.revision,
                torch_dtype=torch.float32,
                attn_implementation="eager",  # traces to fewer nodes than the fused attention does
                output_loading_info=True,
            )
            tokenizer = AutoTokenizer.from_pretrained(options.source, revision=options.revision, use_fast=True)
            if kind == "embedder" and isinstance(tokenizer, RobertaTokenizerFast):
                # bert-score reads a text as if a blank stood before it, so that its first word is like any other.
                tokenizer = AutoTokenizer.from_pretrained(
                    options.source, revision=options.revision, use_fast=True, add_prefix_space=True
                )
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ExportError(
            f"The {kind} checkpoint {options.source!r} cannot be loaded: {str(error).strip().splitlines()[0]} "
            "Give a hub id or a directory that save_pretrained wrote (model and tokenizer), of a matching architecture."
        ) from error
    # An encoder may be built with a pooler that no decoder reads and no token vector comes from.
    pooled = kind in ("question_generator", "response_generator", "embedder")
    missing = [key for key in sorted(report["missing_keys"]) if not (pooled and "pooler." in key)]
    if missing:
        raise ExportError(
            f"The checkpoint {options.source!r} lacks weights that a {kind} needs ({', '.join(missing[:4])}): "
            "it was trained for something else. Give one that was fine-tuned for this role."
        )
    config = model.config
    pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else getattr(config, "pad_token_id", None)
    return Checkpoint(
        model=model.eval(),
        tokenizer=tokens.fast_json(tokenizer, options.source, one_separator=options.one_separator),
        name=local.resolve().name if local.is_dir() else options.source,
        revision=options.revision or getattr(config, "_commit_hash", None),
        max_tokens=options.max_tokens or _window(config, tokenizer),
        pad_id=int(pad_id or 0),
    )


def _retriever(folder: Path, options: RoleOptions) -> Checkpoint:
    """A model of our own, which stands on no hub."""
    try:
        model = EntityRetriever.load(folder)
        tokenizer = AutoTokenizer.from_pretrained(str(folder), use_fast=True)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise ExportError(
            f"The retriever checkpoint {options.source!r} cannot be loaded: {str(error).strip().splitlines()[0]} "
            "Give a directory that `python -m groundwire.train retriever` wrote."
        ) from error
    max_tokens = min(options.max_tokens or model.config.max_tokens, model.bert.max_position_embeddings)
    # The runtime pads a text to a width that may be a little above its length.
    model.cut(_native.bucket_width(max_tokens))
    return Checkpoint(
        model=model,
        tokenizer=tokens.fast_json(tokenizer, options.source),
        name=folder.resolve().name,
        revision=options.revision,
        max_tokens=max_tokens,
        pad_id=int(tokenizer.pad_token_id or 0),
    )


def _writer_loader(options: RoleOptions) -> Any:
    """What loads a model that writes responses: an encoder-decoder, or a causal language model."""
    config = AutoConfig.from_pretrained(options.source, revision=options.revision)
    return AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM


def _window(config: Any, tokenizer: Any) -> int:
    """The longest input in tokens; relative positions have no end of their own, so those take the tokenizer's."""
    limits = (_positions(getattr(config, "encoder", config)), tokenizer.model_max_length)
    return int(min((limit for limit in limits if limit and limit < _UNSET), default=512))


def decoder_positions(config: Any) -> int | None:
    """How many tokens a decoder has positions for; None where positions are relative."""
    decoder = getattr(config, "decoder", config)
    return None if decoder.model_type in _RELATIVE_POSITIONS else _positions(decoder)


def _positions(config: Any) -> int | None:
    # BLOOM's positions have no end, but its configuration says what it was trained on.
    names = ("max_position_embeddings", "n_positions", "seq_length")
    found: int | None = next((size for name in names if (size := getattr(config, name, None))), None)
    if found and config.model_type in _OFFSET_POSITIONS:
        found -= config.pad_token_id + 1
    return found

"""Loads a checkpoint: model, tokenizer, and the numbers that the manifest records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from groundwire.runtime.errors import ExportError

from . import tokens
from .options import Checkpoint as Checkpoint
from .options import RoleOptions
from .sources import is_gguf, is_local
from .trace import quiet

# Position ids of these families start after the padding id, so the first rows of the table are never read.
_OFFSET_POSITIONS = frozenset(
    {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "roberta-prelayernorm", "mpnet"}
)
_RELATIVE_POSITIONS = frozenset({"t5", "mt5"})
"""The sizes in configurations of these families do not limit their positions."""
_UNSET = 100_000
"""Tokenizers without a limit report a huge model_max_length."""


class AutoGenerativeModel:
    """Loads an encoder-decoder or a causal language model, whichever the checkpoint is."""

    @staticmethod
    def from_pretrained(*, torch_dtype: Any, attn_implementation: str, output_loading_info: bool, **files: Any) -> Any:
        """As ``from_pretrained`` of the class that the checkpoint has."""
        config = AutoConfig.from_pretrained(**files)
        auto_class = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        return auto_class.from_pretrained(
            torch_dtype=torch_dtype,
            attn_implementation=attn_implementation,
            output_loading_info=output_loading_info,
            **files,
        )


def load_pretrained(
    kind: str,
    options: RoleOptions,
    auto_class: Any,
    *,
    reads_pooler: bool = True,
    read_tokenizer: Callable[[RoleOptions], Any] | None = None,
    one_separator: bool = False,
) -> Checkpoint:
    """Load a checkpoint of ``kind`` with transformers, through the ``from_pretrained`` of ``auto_class``.

    ``reads_pooler=False`` accepts a checkpoint without the weights of its encoder's pooler. ``one_separator`` puts one
    between the texts of a pair. ExportError when the checkpoint is missing or of another kind.
    """
    local = is_local(options.source)
    try:
        with quiet():
            model, report = auto_class.from_pretrained(
                **_name_files(options),
                torch_dtype=torch.float32,
                attn_implementation="eager",  # traces to fewer nodes than the fused attention does
                output_loading_info=True,
            )
            tokenizer = (read_tokenizer or load_tokenizer)(options)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ExportError(
            f"The {kind} checkpoint {options.source!r} cannot be loaded: {str(error).strip().splitlines()[0]} "
            "Give a hub id or a directory that save_pretrained wrote (model and tokenizer), of a matching architecture."
        ) from error
    missing = [key for key in sorted(report["missing_keys"]) if reads_pooler or "pooler." not in key]
    if missing:
        raise ExportError(
            f"The checkpoint {options.source!r} lacks weights that the kind {kind} needs ({', '.join(missing[:4])}): "
            "it was trained for something else. Give one that was fine-tuned for this role."
        )
    config = model.config
    pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else getattr(config, "pad_token_id", None)
    return Checkpoint(
        model=model.eval(),
        tokenizer=tokens.fast_json(tokenizer, options.source, one_separator=one_separator),
        name=Path(options.source).resolve().name if local else options.source,
        revision=options.revision or getattr(config, "_commit_hash", None),
        max_tokens=options.max_tokens or _window(config, tokenizer),
        pad_id=int(pad_id or 0),
    )


def load_tokenizer(options: RoleOptions, **settings: Any) -> Any:
    """Load the checkpoint's tokenizer, a fast one where there is one."""
    return AutoTokenizer.from_pretrained(**_name_files(options), use_fast=True, **settings)


def _name_files(options: RoleOptions) -> dict[str, Any]:
    """Return the arguments of ``from_pretrained`` that say where the files are."""
    if is_gguf(options.source):
        path = Path(options.source)
        return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    return {"pretrained_model_name_or_path": options.source, "revision": options.revision}


def _window(config: Any, tokenizer: Any) -> int:
    """Return the longest input in tokens; relative positions are unlimited, so those take the tokenizer's limit."""
    limits = (_positions(getattr(config, "encoder", config)), tokenizer.model_max_length)
    return int(min((limit for limit in limits if limit and limit < _UNSET), default=512))


def count_decoder_positions(config: Any) -> int | None:
    """Return how many tokens a decoder has positions for; None where positions are relative."""
    decoder = getattr(config, "decoder", config)
    return None if decoder.model_type in _RELATIVE_POSITIONS else _positions(decoder)


def _positions(config: Any) -> int | None:
    # BLOOM's positions are unlimited, but its configuration says what length it was trained on.
    names = ("max_position_embeddings", "n_positions", "seq_length")
    positions: int | None = next((size for name in names if (size := getattr(config, name, None))), None)
    if positions and config.model_type in _OFFSET_POSITIONS:
        positions -= config.pad_token_id + 1
    return positions

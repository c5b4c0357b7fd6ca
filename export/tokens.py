"""Converts a checkpoint's tokenizer to ``tokenizer.json``, and texts to model inputs for the parity check."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.processors import TemplateProcessing
from transformers.convert_slow_tokenizer import convert_slow_tokenizer

from groundwire.runtime.errors import ExportError

Ids: TypeAlias = npt.NDArray[np.int64]
Batch: TypeAlias = dict[str, Ids]


def fast_json(tokenizer: Any, source: str, *, one_separator: bool = False) -> str:
    """Return the content of ``tokenizer.json`` without truncation and padding; ExportError when a fast tokenizer
    is missing.

    With ``one_separator`` a pair is start, first text, separator, second text, separator.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        try:
            backend = convert_slow_tokenizer(tokenizer)
        except (ValueError, KeyError, ImportError, AttributeError) as error:
            raise ExportError(
                f"{source} has only a slow tokenizer ({type(tokenizer).__name__}) that transformers cannot convert "
                f"({error}); the runtime needs a tokenizer.json. Save the checkpoint again with a fast tokenizer."
            ) from error
    content = json.loads(backend.to_str())
    content["truncation"] = content["padding"] = None
    if one_separator:
        content["post_processor"] = _one_separator(tokenizer)
    return json.dumps(content, ensure_ascii=False)


def _one_separator(tokenizer: Any) -> Any:
    """Return the post-processor of pairs with one separator, in the form of ``tokenizer.json``."""
    start, end = tokenizer.cls_token, tokenizer.sep_token
    plain = Tokenizer(WordLevel({}))
    plain.post_processor = TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} $B {end}",
        special_tokens=[(start, tokenizer.cls_token_id), (end, tokenizer.sep_token_id)],
    )
    return json.loads(plain.to_str())["post_processor"]


def forbid_added_tokens(content: str) -> str:
    """Return ``tokenizer.json`` with every added token special, so that no text of a user spells one."""
    tokenizer = json.loads(content)
    for token in tokenizer["added_tokens"]:
        token["special"] = True
    return json.dumps(tokenizer, ensure_ascii=False)


class Batcher:
    """Tokenizes and pads texts with the tokenizers library, as the runtime does."""

    def __init__(self, content: str, pad_id: int, max_tokens: int) -> None:
        self._tokenizer: Tokenizer = Tokenizer.from_str(content)
        self._tokenizer.enable_truncation(max_tokens)
        self._pad_id = pad_id

    def __call__(self, texts: list[tuple[str, str | None]]) -> Batch:
        """Return ``input_ids``, ``attention_mask`` and ``token_type_ids``, int64 [B, T]."""
        encodings = [self._tokenizer.encode(*pair) for pair in texts]
        shape = (len(encodings), max(len(encoding.ids) for encoding in encodings))
        ids = np.full(shape, self._pad_id, np.int64)
        mask, kinds = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = encoding.ids
            kinds[row, : len(encoding.ids)] = encoding.type_ids
            mask[row, : len(encoding.ids)] = 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}

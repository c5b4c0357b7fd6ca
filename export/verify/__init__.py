"""The parity certificate: an exported graph against its PyTorch checkpoint on the fixed texts.

The checkpoint answers once, into a ``Reference``; every candidate graph is then compared with that. Batches are padded,
so masks are compared too. The modules beside this one say what is compared.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from groundwire.export.checkpoint import Checkpoint
from groundwire.export.options import Kind
from groundwire.export.texts import EXAMPLES, Example
from groundwire.export.tokens import Batch, Batcher
from groundwire.export.trace import quiet
from groundwire.runtime.bundle import Template

from .embedder import EmbedderReference
from .encoder import EncoderReference
from .generation import STEPS, GeneratorReference
from .language_model import LanguageModelReference
from .outcome import Reference
from .retriever import RetrieverReference

__all__ = ["Reference", "fill", "reference"]

ROWS = 8
"""Texts per batch."""


def reference(kind: Kind, checkpoint: Checkpoint, template: Template) -> Reference:
    """Run the checkpoint on the fixed texts; embedders and language models take them without ``template``,
    retrievers have texts of their own.

    A writer's template has its two contexts in place of a pair; every other text is read without the knowledge.
    """
    # A causal model's sources and what is written behind them share its positions.
    room = STEPS if kind == "response_generator" else 0
    batcher = Batcher(checkpoint.tokenizer, checkpoint.pad_id, checkpoint.max_tokens - room)

    def batched(texts: Iterable[tuple[str, str | None]]) -> list[Batch]:
        ordered = sorted(texts, key=lambda pair: len(pair[0]))
        return [batcher(ordered[start : start + ROWS]) for start in range(0, len(ordered), ROWS)]

    with torch.inference_mode(), quiet():
        if kind == "language_model":
            return LanguageModelReference(checkpoint)
        if kind == "retriever":
            return RetrieverReference(checkpoint)
        if kind == "embedder":
            claims = ((example.claim, None) for example in EXAMPLES)
            passages = dict.fromkeys((example.passage, None) for example in EXAMPLES)
            return EmbedderReference(checkpoint, batched(claims), batched(passages))
        if kind == "response_generator":
            read = [Template(text) for text in (template.first, template.second) if text is not None]
            in_turn = (fill(read[number % 2], example) for number, example in enumerate(EXAMPLES))
            return GeneratorReference(checkpoint, batched(in_turn))
        batches = batched(fill(template, example) for example in EXAMPLES)
        if kind == "question_generator":
            return GeneratorReference(checkpoint, batches)
        return EncoderReference(checkpoint, batches, kind)


def fill(template: Template, example: Example) -> tuple[str, str | None]:
    """The model input of an example under ``template``, whichever fields the role uses."""
    fields = {
        "answer": example.answer,
        "context": example.passage,
        "question": example.question,
        "history": example.question,
        "knowledge": example.passage,
        "passage": example.passage,
        "premise": example.passage,
        "hypothesis": example.claim,
    }
    second = None if template.second is None else template.second.format(**fields)
    return template.first.format(**fields), second

"""The parity certificate: an exported graph against its PyTorch checkpoint on the fixed texts.

The checkpoint answers once, into a ``Reference``; every candidate graph is then compared with that. Batches are padded,
so masks are compared too. ``encoder.py`` and ``generator.py`` say what is compared.
"""

from __future__ import annotations

import torch

from groundwire.runtime.bundle import Template

from ..checkpoint import Checkpoint
from ..options import Kind
from ..texts import EXAMPLES, Example
from ..tokens import Batcher
from ..trace import quiet
from .encoder import EncoderReference
from .generator import GeneratorReference
from .outcome import Reference

__all__ = ["Reference", "fill", "reference"]

ROWS = 8
"""Texts per batch."""


def reference(kind: Kind, checkpoint: Checkpoint, template: Template) -> Reference:
    """Run the checkpoint on the fixed texts."""
    batcher = Batcher(checkpoint.tokenizer, checkpoint.pad_id, checkpoint.max_tokens)
    texts = sorted((fill(template, example) for example in EXAMPLES), key=lambda pair: len(pair[0]))
    batches = [batcher(texts[start : start + ROWS]) for start in range(0, len(texts), ROWS)]
    with torch.inference_mode(), quiet():
        if kind == "generator":
            return GeneratorReference(checkpoint, batches)
        return EncoderReference(checkpoint, batches, reader=kind == "reader")


def fill(template: Template, example: Example) -> tuple[str, str | None]:
    """The model input of an example under ``template``, whichever fields the role uses."""
    fields = {
        "answer": example.answer,
        "context": example.passage,
        "question": example.question,
        "passage": example.passage,
        "premise": example.passage,
        "hypothesis": example.claim,
    }
    second = None if template.second is None else template.second.format(**fields)
    return template.first.format(**fields), second

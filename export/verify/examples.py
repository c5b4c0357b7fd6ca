"""The fixed texts as batches of model inputs."""

from __future__ import annotations

from collections.abc import Iterable

from groundwire.runtime.bundles.manifest import Template

from ..checkpoint import Checkpoint
from ..texts import EXAMPLES, ExampleTexts
from ..tokens import Batch, Batcher

ROWS = 8
"""Texts per batch."""


def fill_batches(checkpoint: Checkpoint, template: Template) -> list[Batch]:
    """Return all examples under ``template``, in batches of similar length."""
    return batch_texts(checkpoint, (fill_template(template, example) for example in EXAMPLES))


def batch_texts(
    checkpoint: Checkpoint, texts: Iterable[tuple[str, str | None]], max_tokens: int | None = None
) -> list[Batch]:
    """Return ``texts``, pairs or single ones, in batches of similar length, cut to ``max_tokens``.

    None takes the checkpoint's window.
    """
    batcher = Batcher(checkpoint.tokenizer, checkpoint.pad_id, max_tokens or checkpoint.max_tokens)
    ordered = sorted(texts, key=lambda pair: len(pair[0]))
    return [batcher(ordered[start : start + ROWS]) for start in range(0, len(ordered), ROWS)]


def fill_template(template: Template, example: ExampleTexts) -> tuple[str, str | None]:
    """Return the model input of an example under ``template``, whichever fields the role uses."""
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

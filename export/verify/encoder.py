"""Readers, classifiers and taggers against their checkpoints.

Readers: start and end logits at the real tokens; the decision is "no answer" (both best at position 0) or an answer,
the span is the pair of best positions. Classifiers: logits; the decision is the best label. Taggers: logits at the real
tokens; the decision is the best label of each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch

from groundwire.export.checkpoint import Checkpoint
from groundwire.export.options import Kind
from groundwire.export.session import Arrays, Session
from groundwire.export.tokens import Batch
from groundwire.runtime.bundle import Parity

from .outcome import Outcome

PROBED = 2
"""Batches that a probe runs on."""


class EncoderReference:
    """A reader's, classifier's or tagger's logits."""

    def __init__(self, checkpoint: Checkpoint, batches: list[Batch], kind: Kind) -> None:
        self._batches = batches
        self._kind = kind
        answers: list[list[npt.NDArray[np.float32]]] = []
        for batch in batches:
            output = checkpoint.model(**tensors(checkpoint, batch))
            found = (output.start_logits, output.end_logits) if kind == "extractive_qa" else (output.logits,)
            answers.append([value.numpy() for value in found])
        self._outcome = self._fold(answers, batches)

    def compare(self, graphs: Sequence[ir.Model]) -> Parity:
        """As ``Reference.compare``."""
        (graph,) = graphs
        session = Session(graph)
        answers = [list(session(batch).values()) for batch in self._batches]
        return self._outcome.parity(self._fold(answers, self._batches))

    def probe(self, sessions: Sequence[Session], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        """As ``Reference.probe``."""
        batches = self._batches[:: len(self._batches) // PROBED]
        answers = [list(sessions[0]({**batch, **extra[0]}).values()) for batch in batches]
        return self._fold(answers, batches).logits

    def _fold(self, answers: list[list[npt.NDArray[np.float32]]], batches: list[Batch]) -> Outcome:
        if self._kind != "extractive_qa":
            real = [batch["attention_mask"] == 1 for batch in batches]
            logits = np.concatenate(
                [
                    values[mask] if self._kind == "token_classifier" else values
                    for (values,), mask in zip(answers, real, strict=True)
                ]
            )
            return Outcome(logits.ravel(), logits.argmax(axis=1))
        numbers, spans = [], []
        for batch, (start, end) in zip(batches, answers, strict=True):
            here = batch["attention_mask"] == 1
            numbers += [start[here], end[here]]
            floor = np.float32(-np.inf)
            spans.append(np.stack([np.where(here, values, floor).argmax(axis=1) for values in (start, end)], axis=1))
        found = np.concatenate(spans)
        return Outcome(np.concatenate(numbers), (found == 0).all(axis=1).astype(np.int64), found)


def tensors(checkpoint: Checkpoint, batch: Batch) -> dict[str, torch.Tensor]:
    """The arrays of ``batch`` that the checkpoint's encoder takes."""
    config = getattr(checkpoint.model.config, "encoder", checkpoint.model.config)
    kinds = ("token_type_ids",) if getattr(config, "type_vocab_size", 0) > 1 else ()
    return {name: torch.from_numpy(batch[name]) for name in ("input_ids", "attention_mask", *kinds)}

"""Extractive QA models, classifiers and token classifiers against their checkpoints.

Extractive QA: start and end logits at the real tokens; the decision is "no answer" (both best at position 0) or an
answer, the span is the pair of best positions. Classifiers: logits; the decision is the best label. Token classifiers:
logits at the real tokens; the decision is the best label of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch

from groundwire.runtime.manifest import Parity

from ..checkpoint import Checkpoint
from ..session import Arrays, Session
from ..tokens import Batch
from .outcome import Outcome, SessionOpener

Compared: TypeAlias = Literal["spans", "label", "token_labels"]
PROBED = 2
"""Batches that a probe runs."""


class EncoderReference:
    """The logits of an extractive QA model, classifier or token classifier; ``compared`` selects the decisions."""

    def __init__(self, checkpoint: Checkpoint, batches: list[Batch], compared: Compared) -> None:
        self._batches = batches
        self._compared = compared
        answers: list[list[npt.NDArray[np.float32]]] = []
        for batch in batches:
            output = checkpoint.model(**tensors(checkpoint, batch))
            logits = (output.start_logits, output.end_logits) if compared == "spans" else (output.logits,)
            answers.append([value.numpy() for value in logits])
        self._outcome = self._collect(answers, batches)

    def compare(self, graphs: Sequence[ir.Model], open_session: SessionOpener = Session) -> Parity:
        """As ``Reference.compare``."""
        (graph,) = graphs
        session = open_session(graph)
        answers = [list(session(batch).values()) for batch in self._batches]
        return self._outcome.parity(self._collect(answers, self._batches))

    def probe(self, sessions: Sequence[Session], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        """As ``Reference.probe``."""
        batches = self._batches[:: len(self._batches) // PROBED]
        answers = [list(sessions[0]({**batch, **extra[0]}).values()) for batch in batches]
        return self._collect(answers, batches).logits

    def _collect(self, answers: list[list[npt.NDArray[np.float32]]], batches: list[Batch]) -> Outcome:
        if self._compared != "spans":
            real = [batch["attention_mask"] == 1 for batch in batches]
            logits = np.concatenate(
                [
                    values[mask] if self._compared == "token_labels" else values
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
        best = np.concatenate(spans)
        return Outcome(np.concatenate(numbers), (best == 0).all(axis=1).astype(np.int64), best)


def tensors(checkpoint: Checkpoint, batch: Batch) -> dict[str, torch.Tensor]:
    """Return the tensors of ``batch`` that the checkpoint's encoder takes."""
    config = getattr(checkpoint.model.config, "encoder", checkpoint.model.config)
    kinds = ("token_type_ids",) if getattr(config, "type_vocab_size", 0) > 1 else ()
    return {name: torch.from_numpy(batch[name]) for name in ("input_ids", "attention_mask", *kinds)}

"""Embedders against their checkpoints.

The numbers that BERTScore uses are compared: for every token of a claim the best cosine in each passage, and for every
token of a passage the best in each claim. The decision is the passage nearest to a claim, by the F1 of these cosines;
for nearly all claims that is the passage they were written about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from groundwire.runtime.bundles.manifest import Parity
from groundwire.runtime.models.embedder import unit
from groundwire.runtime.parity.parity import ModelOutputs

from ..checkpoint import Checkpoint
from ..session import Arrays, CpuSession
from ..texts import EXAMPLES
from ..tokens import Batch
from .encoder import tensors
from .outcome import SessionOpener

Vectors = npt.NDArray[np.float32]


class EmbedderReference:
    """An embedder's vectors of claims and passages."""

    def __init__(self, checkpoint: Checkpoint, claims: list[Batch], passages: list[Batch]) -> None:
        self._claims = claims
        self._passages = passages
        self._outcome = compare_tokens(
            *(
                [
                    _unit_vectors(checkpoint.model(**tensors(checkpoint, batch)).last_hidden_state.numpy(), batch)
                    for batch in side
                ]
                for side in (claims, passages)
            )
        )

    def compare(self, graphs: Sequence[ir.Model], open_session: SessionOpener = CpuSession) -> Parity:
        """As ``Reference.compare``."""
        (graph,) = graphs
        session = open_session(graph)
        return self._outcome.parity(self._run(session, self._claims, self._passages, {}), len(EXAMPLES))

    def probe(self, sessions: Sequence[CpuSession], extra: Sequence[Arrays]) -> Vectors:
        """As ``Reference.probe``: one batch of claims and one of passages."""
        return self._run(sessions[0], self._claims[:1], self._passages[:1], extra[0]).logits

    @staticmethod
    def _run(session: CpuSession, claims: list[Batch], passages: list[Batch], extra: Arrays) -> ModelOutputs:
        (output,) = session.outputs
        return compare_tokens(
            *(
                [_unit_vectors(session({**batch, **extra})[output], batch) for batch in side]
                for side in (claims, passages)
            )
        )


def compare_tokens(claims: Iterable[list[Vectors]], passages: Iterable[list[Vectors]]) -> ModelOutputs:
    """Return best cosines and nearest passages; a text is its unit vectors [T, D]."""
    claim_texts, passage_texts = ([text for batch in side for text in batch] for side in (claims, passages))
    table = np.concatenate(claim_texts) @ np.concatenate(passage_texts).T
    rows, columns = (np.cumsum([0, *map(len, side[:-1])]) for side in (claim_texts, passage_texts))
    of_claims = np.maximum.reduceat(table, columns, axis=1)
    of_passages = np.maximum.reduceat(table, rows, axis=0)
    precision = np.add.reduceat(of_claims, rows, axis=0) / np.array([[len(text)] for text in claim_texts])
    recall = np.add.reduceat(of_passages, columns, axis=1) / np.array([len(text) for text in passage_texts])
    total = precision + recall
    # The harmonic mean without its factor 2, and 0 where texts have nothing in common.
    f1 = np.divide(precision * recall, total, out=np.zeros_like(total), where=total > 0)
    return ModelOutputs(np.concatenate([of_claims.ravel(), of_passages.ravel()]), f1.argmax(axis=1))


def _unit_vectors(hidden: Vectors, batch: Batch) -> list[Vectors]:
    return [unit(states[mask == 1]) for states, mask in zip(hidden, batch["attention_mask"], strict=True)]

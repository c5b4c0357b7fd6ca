"""Entity retrievers against their checkpoints.

The scores of all candidates of all mentions are compared; the decision is the chosen candidate. The runtime's own code
runs both sides, so an error in the code between the graphs shows in the runtime's tests and not here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from groundwire.runtime.bundles.manifest import Parity
from groundwire.runtime.calls import Candidate, Retrieve
from groundwire.runtime.errors import ExportError, GroundwireError
from groundwire.runtime.models.retriever import Retriever
from groundwire.runtime.parity.parity import ModelOutputs

from ...checkpoint import Checkpoint
from ...retrieval_calls import calls
from ...session import Arrays, CpuSession
from ...texts import EXAMPLES
from ...verify.outcome import SessionOpener
from .run import record, retriever_of

PROBED = 8
"""Calls that sensitivity is measured on."""


class RetrieverReference:
    """A retriever's scores on the fixed calls."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._model, self._tokenizer = checkpoint.model, checkpoint.tokenizer
        self._role = record(checkpoint.model, checkpoint.tokenizer, checkpoint.max_tokens)
        self._outcome = _collect(retriever_of(self._model, self._role, self._tokenizer), calls())

    def compare(self, graphs: Sequence[ir.Model], open_session: SessionOpener = CpuSession) -> Parity:
        """As ``Reference.compare``: encoder, query and memory."""
        return self._outcome.parity(self._run([open_session(graph) for graph in graphs], calls(), ()), len(EXAMPLES))

    def probe(self, sessions: Sequence[CpuSession], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        """As ``Reference.probe``."""
        return self._run(sessions, calls()[:PROBED], extra).logits

    def _run(self, sessions: Sequence[CpuSession], requests: list[Retrieve], extra: Sequence[Arrays]) -> ModelOutputs:
        return _collect(retriever_of(self._model, self._role, self._tokenizer, sessions, extra), requests)


def _collect(retriever: Retriever, requests: list[Retrieve]) -> ModelOutputs:
    scores: list[float] = []
    decisions: list[int] = []
    for call, result in zip(requests, retriever.run(requests, 1), strict=True):
        if isinstance(result, GroundwireError):
            raise ExportError(f"The retriever fails on a fixed text: {result}") from result
        for candidates, retrieved in zip(call.candidates, result, strict=True):
            by_candidate = {Candidate(entity.anchor, entity.entity): entity.score for entity in retrieved}
            scores += [by_candidate[candidate] for candidate in candidates]
            decisions.append(candidates.index(Candidate(retrieved[0].anchor, retrieved[0].entity)))
    return ModelOutputs(np.array(scores, dtype=np.float32), np.array(decisions, dtype=np.int64))

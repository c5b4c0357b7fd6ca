"""Entity retrievers against their checkpoints.

Compared are the scores of all candidates of all mentions; the decision is the candidate chosen. The runtime's own code
runs both sides, so an error in what stands between the graphs shows in its tests and not here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from groundwire.export.checkpoint import Checkpoint
from groundwire.export.roles.retriever.calls import calls
from groundwire.export.roles.retriever.run import record, retriever_of
from groundwire.export.session import Arrays, Session
from groundwire.runtime.bundle import Parity
from groundwire.runtime.calls import Retrieve
from groundwire.runtime.errors import ExportError, GroundwireError
from groundwire.runtime.models.retriever import Retriever

from .outcome import Outcome

PROBED = 8
"""Calls that sensitivity is measured on."""


class RetrieverReference:
    """A retriever's scores on the fixed calls."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._model, self._tokenizer = checkpoint.model, checkpoint.tokenizer
        self._role = record(checkpoint.model, checkpoint.tokenizer, checkpoint.max_tokens)
        self._outcome = _outcome(retriever_of(self._model, self._role, self._tokenizer), calls())

    def compare(self, graphs: Sequence[ir.Model]) -> Parity:
        """As ``Reference.compare``: encoder, query and memory."""
        return self._outcome.parity(self._run([Session(graph) for graph in graphs], calls(), ()))

    def probe(self, sessions: Sequence[Session], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        """As ``Reference.probe``."""
        return self._run(sessions, calls()[:PROBED], extra).logits

    def _run(self, sessions: Sequence[Session], asked: list[Retrieve], extra: Sequence[Arrays]) -> Outcome:
        return _outcome(retriever_of(self._model, self._role, self._tokenizer, sessions, extra), asked)


def _outcome(retriever: Retriever, asked: list[Retrieve]) -> Outcome:
    scores: list[float] = []
    decisions: list[int] = []
    for call, found in zip(asked, retriever.run(asked, 1), strict=True):
        if isinstance(found, GroundwireError):
            raise ExportError(f"The retriever fails on a fixed text: {found}") from found
        for own, retrieved in zip(call.candidates, found, strict=True):
            by_candidate = {(one.anchor, one.entity): one.score for one in retrieved}
            scores += [by_candidate[one.anchor, one.entity] for one in own]
            decisions.append(own.index(type(own[0])(retrieved[0].anchor, retrieved[0].entity)))
    return Outcome(np.array(scores, dtype=np.float32), np.array(decisions, dtype=np.int64))

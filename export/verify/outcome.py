"""The outputs of a model on the fixed texts, and how those of two models are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from groundwire.runtime.manifest import Parity

from ..session import Arrays, Session
from ..texts import EXAMPLES
from ..tokens import Ids

SessionOpener: TypeAlias = Callable[[ir.Model], Session]
"""Opens the session of a graph that is compared."""


@dataclass(frozen=True)
class Outcome:
    """Logits, compared by their error, and decisions, compared by equality."""

    logits: npt.NDArray[np.float32]
    """All compared logits, [N]."""
    decisions: Ids
    """[M]"""
    spans: Ids | None = None
    """Best start and end of every text, [M, 2]; extractive QA only."""

    def parity(self, other: Outcome) -> Parity:
        """Return the parity report of ``other``, an exported graph, against this, its checkpoint."""
        spans = None
        if self.spans is not None and other.spans is not None:
            spans = float((self.spans == other.spans).all(axis=1).mean())
        return Parity(
            texts=len(EXAMPLES),
            max_logit_error=float(np.abs(self.logits - other.logits).max()),
            logit_std=float(self.logits.std()),
            decision_agreement=float((self.decisions == other.decisions).mean()),
            span_agreement=spans,
        )


class Reference(Protocol):
    """A checkpoint's outputs on the fixed texts."""

    def compare(self, graphs: Sequence[ir.Model], open_session: SessionOpener = Session) -> Parity:
        """Return the parity report of ``graphs``, which are in the order of ``Conversion.graphs``.

        ``open_session`` is called for each of them, in that order.
        """
        ...

    def probe(self, sessions: Sequence[Session], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        """Return the logits of loaded graphs on a few of the texts; each graph gets its ``extra`` inputs too."""
        ...

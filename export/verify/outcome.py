"""What a model says on the fixed texts, and how two of them are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from groundwire.export.session import Arrays, Session
from groundwire.export.texts import EXAMPLES
from groundwire.export.tokens import Ids
from groundwire.runtime.bundle import Parity


@dataclass(frozen=True)
class Outcome:
    """Numbers to compare by error, and choices to compare by equality."""

    logits: npt.NDArray[np.float32]
    """All compared logits, [N]."""
    decisions: Ids
    """[M]"""
    spans: Ids | None = None
    """Best start and end of every text, [M, 2]; readers only."""

    def parity(self, other: Outcome) -> Parity:
        """The certificate of ``other``, an exported graph, against this, its checkpoint."""
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
    """A checkpoint's answers on the fixed texts."""

    def compare(self, graphs: Sequence[ir.Model]) -> Parity:
        """The certificate of ``graphs``: one for a reader or classifier, encoder and decoder for a generator."""
        ...

    def probe(self, sessions: Sequence[Session], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        """The logits of loaded graphs on a few of the texts, each graph fed its ``extra`` inputs too."""
        ...

"""How close the outputs of an exported graph are to the outputs of its checkpoint, and how close they must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..bundles.manifest import ClassifierRole, ExtractiveQARole, Parity, Precision, ReaderRole, ReferenceRole

Compared: TypeAlias = Literal["spans", "label", "token_labels", "heads"]
"""What an encoder decides: an answer's span, the label of a text, the label of each token, or by each of several heads
the label of a text or of each token."""


@dataclass(frozen=True)
class ModelOutputs:
    """The outputs of a model on fixed texts: logits, compared by their error, and decisions, compared by equality."""

    logits: NDArray[np.float32]
    """All compared logits, [N]."""
    decisions: NDArray[np.int64]
    """[M]"""
    spans: NDArray[np.int64] | None = None
    """Best start and end of every text, [M, 2]; extractive QA only."""
    heads: tuple[ModelOutputs, ...] = ()
    """The outputs of each head, where several decide."""

    def parity(self, other: ModelOutputs, texts: int) -> Parity:
        """The parity report of ``other``, an exported graph, against this, its checkpoint, on so many texts.

        Several heads are reported by their least agreement and their largest error in standard deviations.
        """
        if self.heads:
            reports = [head.parity(of_other, texts) for head, of_other in zip(self.heads, other.heads, strict=True)]
            worst = max(reports, key=lambda report: report.max_logit_error / report.logit_std)
            least = min(report.decision_agreement for report in reports)
            return msgspec.structs.replace(worst, decision_agreement=least)
        spans = None
        if self.spans is not None and other.spans is not None:
            spans = float((self.spans == other.spans).all(axis=1).mean())
        return Parity(
            texts=texts,
            max_logit_error=float(np.abs(self.logits - other.logits).max()),
            logit_std=float(self.logits.std()),
            decision_agreement=float((self.decisions == other.decisions).mean()),
            span_agreement=spans,
        )


def compared_outputs(role: ReferenceRole) -> Compared:
    """What is compared of a role's outputs."""
    if isinstance(role, ReaderRole):
        return "heads"
    if isinstance(role, ExtractiveQARole):
        return "spans"
    return "label" if isinstance(role, ClassifierRole) else "token_labels"


def collect_outputs(compared: Compared, texts: Sequence[Sequence[NDArray[Any]]]) -> ModelOutputs:
    """The outputs of an encoder: for each text its outputs, at its real tokens alone where it has one per token.

    Extractive QA: the decision is "no answer" (both best at position 0) or an answer, the span is the pair of best
    positions. Classifiers: the best label. Token classifiers: the best label of each token. Readers: the one or the
    other, by head.
    """
    logits = np.concatenate([output.ravel() for text in texts for output in text]).astype(np.float32)
    if compared == "spans":
        best = np.array([[output.argmax() for output in text] for text in texts], dtype=np.int64)
        return ModelOutputs(logits, (best == 0).all(axis=1).astype(np.int64), best)
    if compared == "heads":
        heads = tuple(
            collect_outputs("label", [[output] for output in of_head]) for of_head in zip(*texts, strict=True)
        )
        return ModelOutputs(logits, np.concatenate([head.decisions for head in heads]), heads=heads)
    decisions = [np.atleast_1d(output.argmax(axis=-1)) for text in texts for output in text]
    return ModelOutputs(logits, np.concatenate(decisions).astype(np.int64))


@dataclass(frozen=True)
class Gate:
    """How close an exported graph must be to its checkpoint to be saved.

    A verdict depends on decisions (label, no answer, next token, the passage that makes a text more probable) and on
    spans, so their agreement is gated first; 0.97 of 64 texts allows one borderline text. The logit bound catches
    graphs that agree by chance.
    """

    decision_agreement: float = 0.97
    span_agreement: float = 0.95
    max_error: float = 0.75
    """Largest error of a logit, in standard deviations of the checkpoint's logits."""

    @classmethod
    def exact(cls) -> Gate:
        """The gate of fp32 graphs, which differ from the checkpoint by rounding only."""
        return cls(decision_agreement=0.98, span_agreement=0.98, max_error=0.01)

    @classmethod
    def of(cls, precision: Precision, heads: int = 1) -> Gate:
        """Return the gate of graphs of a precision.

        Args:
            precision: The precision of the exported graphs.
            heads: Heads that are compared. The least agreement of several counts, and 0.95 of 64 texts allows three
                borderline ones: where each of five heads has one on average, one of them has three.
        """
        if precision == "fp32":
            return cls.exact()
        return cls() if heads == 1 else cls(decision_agreement=0.95)

    def failures(self, parity: Parity) -> list[str]:
        """Return the bounds that a parity report fails.

        Args:
            parity: The comparison of the graphs with their checkpoint.

        Returns:
            A sentence for each bound; empty if the report passes.
        """
        failures = []
        if parity.decision_agreement < self.decision_agreement:
            failures.append(f"decision agreement {parity.decision_agreement:.3f} < {self.decision_agreement}")
        if parity.span_agreement is not None and parity.span_agreement < self.span_agreement:
            failures.append(f"span agreement {parity.span_agreement:.3f} < {self.span_agreement}")
        bound = self.max_error * parity.logit_std
        if not parity.max_logit_error <= bound:  # NaN must fail
            failures.append(f"logit error {parity.max_logit_error:.4g} > {bound:.4g} ({self.max_error} std)")
        return failures

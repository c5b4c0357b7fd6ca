"""What a caller decides about an exported role."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from groundwire.runtime.bundle import Parity, Template
from groundwire.runtime.errors import ExportError

Kind: TypeAlias = Literal[
    "extractive_qa",
    "classifier",
    "question_generator",
    "response_generator",
    "token_classifier",
    "embedder",
    "language_model",
    "retriever",
    "spans",
]
Wanted: TypeAlias = Literal["fp32", "fp16", "int8"]
QUESTION_TEMPLATE = Template("answer: {answer}  context: {context}")
"""The input text of the Q² authors' question generator: two spaces before ``context``."""
PROMPT = ("Document: {knowledge}\n\n", "{history}.\n", "Agent:")
"""What a model that writes responses reads: PMI-Faith's prompts, piece by piece. The blank behind "Agent:" is the
response's, because byte-level tokenizers make it a part of the first word."""


@dataclass(frozen=True)
class Gate:
    """How close an exported graph must be to its checkpoint to be saved.

    A verdict rests on decisions (label, no answer, next token, the passage that makes a text more probable) and on
    spans, so those are gated first; a share of 0.97 of 64 texts allows one that stood on the edge. The logit bound
    catches graphs that agree by luck.
    """

    decision_agreement: float = 0.97
    span_agreement: float = 0.95
    max_error: float = 0.75
    """Largest error of a logit, in standard deviations of the checkpoint's logits."""

    @classmethod
    def exact(cls) -> Gate:
        """The gate of fp32 graphs: rounding differs, nothing else."""
        return cls(decision_agreement=0.98, span_agreement=0.98, max_error=0.01)

    def failures(self, parity: Parity) -> list[str]:
        """What ``parity`` fails, in words; empty when it passes."""
        found = []
        if parity.decision_agreement < self.decision_agreement:
            found.append(f"decision agreement {parity.decision_agreement:.3f} < {self.decision_agreement}")
        if parity.span_agreement is not None and parity.span_agreement < self.span_agreement:
            found.append(f"span agreement {parity.span_agreement:.3f} < {self.span_agreement}")
        bound = self.max_error * parity.logit_std
        if not parity.max_logit_error <= bound:  # NaN fails
            found.append(f"logit error {parity.max_logit_error:.4g} > {bound:.4g} ({self.max_error} std)")
        return found


@dataclass(frozen=True)
class RoleOptions:
    """One role to export: the checkpoint and what the checkpoint does not say itself."""

    source: str
    """A hub id or a local directory in the transformers format; for ``spans`` a spaCy package or directory."""
    revision: str | None = None
    """Commit, tag or branch of a hub checkpoint; None takes the newest."""
    precision: Wanted = "int8"
    """int8 for CPUs, fp16 for GPUs. int8 that fails its gate becomes mixed, then fp32."""
    labels: tuple[str, ...] | None = None
    """Labels in the order of the logits; None reads the checkpoint's ``id2label``."""
    supported: tuple[str, ...] | None = None
    """Detectors and taggers: the labels that mean "consistent"; None recognises the usual names."""
    unit: Literal["response", "sentence"] = "response"
    """Detectors: what is judged at once."""
    one_separator: bool = False
    """Pairs are read with one separator between the texts where the tokenizer would put two: models that were trained
    on texts joined by their end token (MiniCheck's RoBERTa)."""
    template: Template | None = None
    """How the fields become model inputs; None takes the role's default."""
    prompt: tuple[str, ...] | None = None
    """Generators of responses: the pieces of what the model reads, with ``{knowledge}`` and ``{history}`` once each in
    pieces of their own. Without the knowledge it reads those that do not name it. None takes ``PROMPT``."""
    strip_prefix: str = ""
    """Removed from the front of generated texts."""
    max_tokens: int | None = None
    """Window, special tokens included; None takes the checkpoint's."""
    layer: int | None = None
    """Embedders: how many of the encoder's layers to keep. None takes the layer that bert-score recommends for the
    checkpoint, or all of them where it has none to recommend (``export/roles/embedder.py``)."""
    baseline: tuple[float, float, float] | None = None
    """Embedders: precision, recall and F1 of unrelated sentences, for rescaling BERTScore. None takes bert-score's for
    the checkpoint at the recommended layer, or leaves scores as they are."""
    shortlist: tuple[str, ...] = ()
    """Question generators: the only tokens that a question may have beside those of its source; needs int8. Faster, and
    other questions here and there (``export/passes/shortlist.py``). Empty: the whole vocabulary."""
    half: bool = False
    """Spans: store the pipeline's weights in half precision. They are computed with in float32 all the same."""
    gate: Gate = field(default_factory=Gate)
    allow_unverified: bool = False
    """Save even when the gate fails, marked ``waived``: for benchmarks on random weights."""


def kind_of(role: str) -> Kind:
    """What a role's name says about its model; ExportError for a name no metric asks for."""
    match role:
        case "qa":
            return "extractive_qa"
        case "qg":
            return "question_generator"
        case "generator":
            return "response_generator"
        case "token_classifier" | "critic":
            return "token_classifier"
        case "embedder":
            return "embedder"
        case "lm":
            return "language_model"
        case "retriever":
            return "retriever"
        case "spans":
            return "spans"
        case "nli":
            return "classifier"
        case _ if role.startswith("detector.") and len(role) > len("detector."):
            return "classifier"
    raise ExportError(
        f"Unknown role {role!r}; roles are qa, qg, nli, detector.NAME, token_classifier, critic, embedder, lm, "
        "generator, retriever and spans."
    )


def wanted(precision: str) -> Wanted:
    """Check a precision's name; ExportError for one that cannot be asked for (``mixed`` is found, not chosen)."""
    match precision:
        case "fp32" | "fp16" | "int8":
            return precision
    raise ExportError(f"Unknown precision {precision!r}; choose fp32, fp16 or int8.")


def read_shortlist(path: Path) -> tuple[str, ...]:
    """The tokens of a file that has one on each line; ExportError when there are none."""
    tokens = tuple(dict.fromkeys(line for line in path.read_text(encoding="utf-8").split("\n") if line))
    if not tokens:
        raise ExportError(f"{path} is empty; a shortlist has a token on each line.")
    return tokens

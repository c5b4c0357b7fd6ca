"""The options of an exported role, and the settings of each kind of model that may fill it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from groundwire.runtime.bundles.manifest import Aggregation, TargetName, Template
from groundwire.runtime.errors import ExportError
from groundwire.runtime.parity.parity import Gate as Gate

RequestedPrecision: TypeAlias = Literal["fp32", "fp16", "fp8", "int8", "int4"]
Message: TypeAlias = tuple[str, str]
"""The role of a chat's message, and its text."""
PAIR_TEMPLATE = Template("{premise}", "{hypothesis}")
"""The text pair of classifiers and token classifiers."""
QUESTION_TEMPLATE = Template("answer: {answer}  context: {context}")
"""The input text of the Q² authors' question generator: two spaces before ``context``."""
PROMPT = ("Document: {knowledge}\n\n", "{history}.\n", "Agent:")
"""The prompt of a response generator, in parts: PMI-Faith's prompts. The space after "Agent:" belongs to the response,
because byte-level tokenizers make it a part of the first word."""


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint in evaluation mode, float32."""

    model: Any
    tokenizer: str
    """Content of ``tokenizer.json``."""
    name: str
    """The source in the manifest: the hub id, or the name of the local directory."""
    revision: str | None
    max_tokens: int
    pad_id: int

    @property
    def float_modules(self) -> tuple[str, ...]:
        """Modules whose family keeps them in float32 in half precision."""
        return tuple(getattr(self.model, "_keep_in_fp32_modules", None) or ())

    @property
    def architecture(self) -> str:
        """The transformers class."""
        return type(self.model).__name__


@dataclass(frozen=True)
class ClassifierSettings:
    """Natural-language inference and detectors."""

    labels: tuple[str, ...] | None = None
    """Labels in the order of the logits; None reads the checkpoint's ``id2label``."""
    supported: tuple[str, ...] | None = None
    """Detectors: the labels that mean "consistent"; None recognises the usual names."""
    unit: Literal["response", "sentence"] = "response"
    """Detectors: the text that is classified at once."""
    aggregation: Aggregation = "min"
    """Detectors of sentences: what the sentences' values become together."""
    one_separator: bool = False
    """Put one separator between the texts of a pair where the tokenizer puts two: for models that were trained on texts
    joined by their end token (MiniCheck's RoBERTa)."""
    template: Template = PAIR_TEMPLATE
    """How premise and hypothesis become model inputs."""


@dataclass(frozen=True)
class JudgeSettings:
    """Language models that answer a prompt by one of two words."""

    labels: tuple[str, ...] | None = None
    """The two words; the logits of the first token of each are compared. The model must have been trained, or asked by
    the prompt, to begin its answer with one of them."""
    supported: tuple[str, ...] | None = None
    """The word that means "consistent"; None recognises the usual ones."""
    template: Template | None = None
    """The prompt, a template of one text with ``{premise}`` and ``{hypothesis}``. All special tokens are written out:
    none is added."""
    messages: tuple[Message, ...] = ()
    """In place of ``template``: the messages of a chat with the two fields, which the checkpoint's chat template makes
    a prompt of."""
    chat_options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the checkpoint's chat template."""
    unit: Literal["response", "sentence"] = "response"
    """The text that is asked about at once."""
    aggregation: Aggregation = "min"
    """What the values of sentences become together."""


@dataclass(frozen=True)
class TokenClassifierSettings:
    """Token classifiers and critics."""

    labels: tuple[str, ...] | None = None
    """Labels in the order of the logits; None reads the checkpoint's ``id2label``."""
    supported: tuple[str, ...] | None = None
    """The label that means "consistent"; None recognises the usual names."""
    template: Template = PAIR_TEMPLATE
    """How premise and hypothesis become model inputs."""


@dataclass(frozen=True)
class QuestionGeneratorSettings:
    """Question generators."""

    template: Template = QUESTION_TEMPLATE
    """How answer and context become model inputs."""
    strip_prefix: str = ""
    """Removed from the front of generated texts."""
    shortlist: tuple[str, ...] = ()
    """The only tokens that a question may contain besides its source's; needs int8. Faster, with a few different
    questions (``export/passes/shortlist.py``). Empty: the whole vocabulary."""


@dataclass(frozen=True)
class ResponseGeneratorSettings:
    """Response generators."""

    prompt: tuple[str, ...] = PROMPT
    """The parts of the prompt, with ``{knowledge}`` and ``{history}`` once each, in different parts. The prompt without
    the knowledge leaves out the part that names it."""


@dataclass(frozen=True)
class ReaderSettings:
    """Readers, which the recipe that trains them exports (``export/roles/reader.py``)."""

    checkpoint: Checkpoint | None = None
    """The loaded model; a reader cannot be exported without it."""
    turn_end: str = " "
    """What follows each turn of the history."""


@dataclass(frozen=True)
class EmbedderSettings:
    """Embedders."""

    layer: int | None = None
    """How many of the encoder's layers to keep. None takes the layer that bert-score recommends for the checkpoint, or
    all of them where it recommends none (``export/roles/embedder.py``)."""
    baseline: tuple[float, float, float] | None = None
    """Precision, recall and F1 of unrelated sentences, for rescaling BERTScore. None takes bert-score's for the
    checkpoint at the recommended layer, or leaves scores unscaled."""


@dataclass(frozen=True)
class SpansSettings:
    """spaCy pipelines."""

    half: bool = False
    """Store the pipeline's weights in half precision. The runtime computes in float32 all the same."""


KindSettings: TypeAlias = (
    ClassifierSettings
    | JudgeSettings
    | TokenClassifierSettings
    | QuestionGeneratorSettings
    | ResponseGeneratorSettings
    | ReaderSettings
    | EmbedderSettings
    | SpansSettings
)
K = TypeVar("K", bound=KindSettings)


@dataclass(frozen=True)
class RoleOptions:
    """One role to export: the checkpoint, and settings that the checkpoint does not contain."""

    source: str
    """A hub id or a local directory in the transformers format; for ``spans`` a spaCy package or directory."""
    kind: KindSettings | None = None
    """What only this kind of model has; None takes the defaults of the role's kind."""
    revision: str | None = None
    """Commit, tag or branch of a hub checkpoint; None takes the newest."""
    precision: RequestedPrecision = "int8"
    """int8 for CPUs, fp16 for GPUs, fp8 for the targets ``tensorrt`` and ``tensorrt-rtx`` alone. int8 that fails its
    gate becomes mixed, then fp32. int4, for classifiers and judges of billions of weights, becomes int8 where it fails;
    it is not for targets."""
    target: TargetName | None = None
    """Add a graph of this ``precision`` for one kind of device, beside the role's own, which a bundle keeps when it has
    the role. A new role gets fp16 graphs of its own. Extractive QA, classifiers and token classifiers have targets,
    question generators one for CUDA; for TensorRT-RTX, readers, embedders, question generators and language models
    too."""
    max_tokens: int | None = None
    """Window in tokens, special tokens included; None takes the checkpoint's."""
    gate: Gate = field(default_factory=Gate)
    allow_unverified: bool = False
    """Save even when the gate fails, marked ``waived``: for benchmarks on random weights."""

    def read(self, kind: type[K]) -> K:
        """Return the settings of the role's kind of model.

        Args:
            kind: The record of the role's kind of model.

        Returns:
            ``self.kind``, or the defaults.
        """
        return self.kind if isinstance(self.kind, kind) else kind()


def check_precision(precision: str) -> RequestedPrecision:
    """Check a precision's name; ExportError if it cannot be requested (``mixed`` is a result, not a choice)."""
    match precision:
        case "fp32" | "fp16" | "fp8" | "int8" | "int4":
            return precision
    raise ExportError(f"Unknown precision {precision!r}; choose fp32, fp16, fp8, int8 or int4.")


def read_shortlist(path: Path) -> tuple[str, ...]:
    """Return the tokens of a file with one on each line; ExportError when there are none."""
    tokens = tuple(dict.fromkeys(line for line in path.read_text(encoding="utf-8").split("\n") if line))
    if not tokens:
        raise ExportError(f"{path} is empty; a shortlist has a token on each line.")
    return tokens

"""What a bundle says about itself: the records of its manifest ``bundle.json``.

Decoding a manifest validates it against these records, so a wrong type or an unknown field is an error with its path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidRequest
from .calibration import Calibration

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Positive: TypeAlias = Annotated[int, msgspec.Meta(gt=0)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
Labels: TypeAlias = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
Ids: TypeAlias = Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]
Rescaling: TypeAlias = Annotated[float, msgspec.Meta(gt=-1, lt=1)]
"""BERTScore of unrelated sentences; 1 would leave nothing to rescale to."""
INFERENCE = frozenset({"entailment", "contradiction", "neutral"})
"""Labels of a model that infers a hypothesis from a premise."""
Aggregation: TypeAlias = Literal["min", "mean"]
"""What the values of sentences become together: the least of them, or their mean."""
Precision: TypeAlias = Literal["fp32", "fp16", "fp8", "int8", "int4", "mixed"]
TargetName: TypeAlias = Literal["cuda", "tensorrt", "tensorrt-rtx"]
"""The devices for which a role may have another graph than its own."""


class Ranges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How large the values of a role's float32 graphs are on the fixed texts, which decides what may be float16.

    Their magnitude says more than a float16 graph does on a CPU, where nothing overflows.
    """

    limit: float
    """The largest magnitude with which a value may be float16: an eighth of what float16 holds."""
    largest: float
    """The largest magnitude of a value that is float16."""
    kept_float: dict[str, float] = {}
    """Values that are beyond the limit, and so are float32 in the graph, with their magnitudes."""


MIN_LOGIT_STD = 0.02
"""Standard deviation of a checkpoint's logits from which a comparison with them means something. Trained classifiers
have 1 and more, vectors of length 1 and 1,024 numbers 0.03, and random weights of a small model less."""


class Parity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a graph is from its PyTorch checkpoint on a fixed text set."""

    texts: Count
    max_logit_error: float
    """Largest absolute difference of a logit (generator, language model: of a token's log-probability)."""
    logit_std: float
    """Standard deviation of the checkpoint's logits on the same texts, the scale of the error."""
    decision_agreement: Share
    """Share of texts with the same decision: label, no-answer, next token, or the passage that makes it more probable
    (language models)."""
    span_agreement: Share | None = None
    """Share of texts with the same answer span (extractive QA only)."""
    kept_float: tuple[str, ...] = ()
    """Weights left in float because int8 moved the outputs too far."""
    gate: Literal["passed", "waived"] = "passed"
    """``waived`` only by the explicit flag that benchmarks on random weights use."""
    ranges: Ranges | msgspec.UnsetType = msgspec.UNSET
    """Of graphs with float16 values, which are compared with each result rounded to float16; unset and not None, so
    that older manifests keep their digest."""

    @property
    def explanation(self) -> str:
        """Why passing the gate says nothing about these graphs; empty where it does."""
        if self.logit_std >= MIN_LOGIT_STD:
            return ""
        return "nothing to compare: the checkpoint gives every text almost the same logits, as an untrained model does"


class ShapeProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shapes of one width: batches of 1 to ``max_rows`` rows, tuned for ``usual_rows``."""

    width: Positive
    usual_rows: Positive
    max_rows: Positive


class ShapePlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shapes that a graph is run with: a text is padded to the least width that holds it."""

    widths: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1)]
    """In tokens, ascending; the last holds the model's window."""
    max_tokens: Positive
    """Padded tokens in one batch; a batch has one row all the same."""
    max_rows: Positive
    usual_rows: Positive

    def __post_init__(self) -> None:
        if list(self.widths) != sorted(set(self.widths)):
            raise ValueError(f"The widths {self.widths} of a plan do not ascend.")

    @property
    def profiles(self) -> tuple[ShapeProfile, ...]:
        """One for each width."""
        rows = [min(self.max_rows, max(1, self.max_tokens // width)) for width in self.widths]
        return tuple(
            ShapeProfile(width, min(self.usual_rows, most), most) for width, most in zip(self.widths, rows, strict=True)
        )

    def fit(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """The width that each row of so many tokens is padded to."""
        widths: NDArray[np.int64] = np.array(self.widths)[np.searchsorted(self.widths, lengths)]
        return widths


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another graph of a role's checkpoint, for one kind of device."""

    graph: str
    precision: Precision
    parity: Parity | None = None
    plan: ShapePlan | None = None
    """The shapes of a graph that an engine is built of; None for any shapes."""


class GeneratorTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Other graphs of a question generator's checkpoint, for one kind of device."""

    encoder: str
    decoder: str
    precision: Precision
    parity: Parity | None = None


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a role's fields become the one or two texts of a model input; ``{name}`` is replaced by a field."""

    first: str
    second: str | None = None

    def check(self, required: Iterable[str], optional: Iterable[str] = ()) -> None:
        """InvalidRequest unless it has every required field and no other than these."""
        named = {field for text in (self.first, self.second or "") for field in fields_of(text)}
        required = set(required)
        if not required <= named <= required | set(optional):
            allowed = f", may have {_braced(optional)}" if optional else ""
            raise InvalidRequest(
                f"A template has the fields {_braced(named)}; it must have {_braced(required)}{allowed}, and no other."
            )


def fields_of(template: str) -> tuple[str, ...]:
    """The names between braces, in order.

    >>> fields_of("question: {answer} context: {context}")
    ('answer', 'context')
    """
    return tuple(part.partition("}")[0] for part in template.split("{")[1:])


def _braced(fields: Iterable[str]) -> str:
    return ", ".join(f"{{{field}}}" for field in sorted(fields)) or "none"


class ReaderHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A head of a reader: an output of its graph, by the head's name."""

    labels: Labels
    """In the order of the logits."""
    supported: Labels
    """Those that mean that the text is supported; of a head of verifiability, that it states something."""
    unit: Literal["answer", "sentence", "token"]
    """What it labels."""
    nothing: tuple[str, ...] = ()
    """Those that mean that the text states nothing to check."""

    def __post_init__(self) -> None:
        if unknown := {*self.supported, *self.nothing} - {*self.labels}:
            raise ValueError(f"supported and nothing name {sorted(unknown)}, which are not among {self.labels}.")


class RoleInfo(msgspec.Struct, frozen=True):
    """What metrics must know about a role to build its calls and read its results."""

    labels: tuple[str, ...] = ()
    """Names of the classes of a classifier or token classifier, in the order of its logits."""
    supported: tuple[str, ...] = ()
    """Those that mean "consistent"."""
    unit: Literal["response", "sentence"] = "response"
    """What a detector classifies at once."""
    aggregation: Aggregation = "min"
    """What the values of a detector's sentences become together."""
    baseline: tuple[float, float, float] | None = None
    """Precision, recall and F1 of an embedder's BERTScore for unrelated sentences; None where not measured."""
    heads: dict[str, ReaderHead] = {}
    """The heads of a reader by name."""


class _Role(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    source: str
    """The checkpoint: a hub id, or the name of a local directory."""
    revision: str | None = None

    @property
    def graph_files(self) -> tuple[str, ...]:
        """File names of its own graphs."""
        return ()

    @property
    def target_files(self) -> tuple[str, ...]:
        """File names of the graphs of its targets."""
        return ()

    @property
    def info(self) -> RoleInfo:
        """What metrics need to know of it."""
        return RoleInfo()


class _Model(_Role, frozen=True, forbid_unknown_fields=True, kw_only=True):
    architecture: str
    precision: Precision
    tokenizer: str
    max_tokens: Positive
    """The model's window, special tokens included."""
    pad_id: Count
    parity: Parity | None = None


class _EncoderRole(_Model, frozen=True, forbid_unknown_fields=True, kw_only=True):
    graph: str
    reference: str | msgspec.UnsetType = msgspec.UNSET
    """The file with the checkpoint's logits on fixed texts, for comparisons without the checkpoint. Unset and not None,
    as ``targets`` is, so that older manifests keep their digest."""

    targets: dict[TargetName, Target] | msgspec.UnsetType = msgspec.UNSET
    """Other graphs of the same checkpoint, by the device that runs them instead of ``graph``."""

    @property
    def graph_files(self) -> tuple[str, ...]:
        """Its one graph."""
        return (self.graph,)

    @property
    def target_files(self) -> tuple[str, ...]:
        """One graph of each target."""
        return tuple(target.graph for target in (self.targets or {}).values())

    def find_target(self, device: str) -> Target | None:
        """The target of a kind of device; None where that device runs the role's own graph."""
        return next((target for name, target in (self.targets or {}).items() if name == device), None)


class ExtractiveQARole(_EncoderRole, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="extractive_qa"):
    """An extractive question-answering model over (question, passage)."""

    stride: Count = 128
    """Tokens that neighbouring windows of a long passage share."""


class _HeadRole(_EncoderRole, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Roles that name the same graph are read from one pass over a text."""

    head: str | msgspec.UnsetType = msgspec.UNSET
    """Its output of the graph; left out when the graph has one. Unset and not None, so that older manifests keep
    their digest."""

    @property
    def output(self) -> str | None:
        """``head``, or None when the graph has one output."""
        return self.head if isinstance(self.head, str) else None


class ClassifierRole(_HeadRole, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="classifier"):
    """A sequence-pair classifier; ``labels`` in the order of its logits."""

    labels: Labels
    template: Template = Template("{premise}", "{hypothesis}")
    stride: Count = 32
    """Tokens that neighbouring windows of a long premise share."""
    window_order: tuple[str, ...] = ()
    """When windows of a long premise disagree, the first of these labels that any window has is the answer. Empty:
    entailment, contradiction, neutral for an inference model, else the order of ``labels``."""
    supported: tuple[str, ...] = ()
    """Labels of a detector that mean "consistent"; then the window that supports the hypothesis most decides."""
    unit: Literal["response", "sentence"] = "response"
    """What a detector classifies at once: the whole response, or each sentence; the worst sentence counts."""
    aggregation: Aggregation | msgspec.UnsetType = msgspec.UNSET
    """Where the unit is a sentence: what counts in place of the worst one. Unset and not None, so that older manifests
    keep their digest."""

    def __post_init__(self) -> None:
        compares = self.template.second is not None or set(self.labels) == INFERENCE
        self.template.check(
            ("premise", "hypothesis") if compares else ("hypothesis",), () if compares else ("premise",)
        )

    @property
    def info(self) -> RoleInfo:
        """Its labels, which of them support a response, the unit, and what the units become together."""
        return RoleInfo(self.labels, self.supported, self.unit, self.aggregation or "min")


class JudgeRole(ClassifierRole, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="judge"):
    """A language model that is given a prompt and answers by one of two words; ``labels`` are the words.

    The first text of ``template`` is the prompt. Special tokens that it spells are the model's own; those that a field
    spells are text.
    """

    def __post_init__(self) -> None:
        self.template.check(("premise", "hypothesis"))
        if self.template.second is not None or len(self.labels) != 2 or len(self.supported) != 1:
            raise ValueError("a judge has a template of one text, two labels, and one of them supported")


class QuestionGeneratorRole(_Model, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="question_generator"):
    """An encoder-decoder in two graphs (docs/reference/graphs.md has their signatures)."""

    encoder: str
    decoder: str
    template: Template
    eos_ids: Ids
    start_id: Count
    vocabulary: Positive
    layers: Positive
    heads: Positive
    head_dim: Positive
    strip_prefix: str = ""
    """Removed from the front of every generated text."""
    shortlist: Positive | None = None
    """How many tokens may be generated besides the source's; None: all."""
    targets: dict[Literal["cuda", "tensorrt-rtx"], GeneratorTarget] | msgspec.UnsetType = msgspec.UNSET
    """Other graphs of the same checkpoint. Unset and not None, so that older manifests keep their digest."""

    def __post_init__(self) -> None:
        self.template.check(("answer", "context"))

    @property
    def graph_files(self) -> tuple[str, ...]:
        """Encoder and decoder step."""
        return self.encoder, self.decoder

    @property
    def target_files(self) -> tuple[str, ...]:
        """Encoder and decoder step of each target."""
        return tuple(name for target in (self.targets or {}).values() for name in (target.encoder, target.decoder))

    def find_target(self, device: str) -> GeneratorTarget | None:
        """The target that a kind of device runs: CUDA's on every GPU, for no engine of a generator is run yet. None for
        its own graphs."""
        return (self.targets or {}).get("cuda") if device != "cpu" else None


class ResponseGeneratorRole(_Model, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="response_generator"):
    """A model that writes responses, in two graphs: PMI-Decode (docs/reference/graphs.md has their signatures)."""

    encoder: str
    decoder: str
    prompt: tuple[str, ...]
    """Parts of the text that the model reads, with the fields ``{knowledge}`` and ``{history}``. A part whose fields
    are all empty is left out, and so are the parts with ``{knowledge}`` in the context without the knowledge."""
    causal: bool
    """A causal language model continues the prompt: the parts are tokenized one by one, without special tokens, and
    their ids joined. An encoder reads them as one text."""
    eos_ids: Ids
    start_id: Count | None
    """None for a causal model, whose first token is the prompt's last."""
    vocabulary: Positive
    layers: Positive
    heads: Positive
    head_dim: Positive
    positions: Positive | None
    """Tokens that the decoder has positions for, the start token included; a causal model's prompt shares them. None
    for an unbounded number."""

    @property
    def graph_files(self) -> tuple[str, ...]:
        """Encoder and decoder step."""
        return self.encoder, self.decoder


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The head of a language model whose table is large: a separate graph, and the position of the table in a file."""

    graph: str
    file: str
    offset: Count
    """Bytes before the table."""
    shape: tuple[Positive, Positive, Positive]
    """Shape of the table, uint8 in C order: blocks of the vocabulary, tokens of a block, numbers of a token."""


class LanguageModelRole(_Model, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="language_model"):
    """A causal language model that scores texts (docs/reference/graphs.md has the signatures)."""

    graph: str
    head: Head | msgspec.UnsetType = msgspec.UNSET
    """Left out when the head is inside ``graph``; unset and not None, so that older manifests keep their digest."""
    layers: Count = 0
    """Layers whose keys and values the graph takes and gives, so that a prefix is read once for many texts; 0 when the
    graph reads prefix and text together."""
    heads: Count = 0
    head_dim: Count = 0
    targets: dict[Literal["tensorrt-rtx"], Target] | msgspec.UnsetType = msgspec.UNSET
    """Other graphs of the same checkpoint; no device runs them yet. Unset and not None, so that older manifests keep
    their digest."""

    @property
    def target_files(self) -> tuple[str, ...]:
        """One graph of each target."""
        return tuple(target.graph for target in (self.targets or {}).values())

    def find_target(self, device: str) -> Target | None:
        """None: every device runs its own graph."""
        return None

    @property
    def graph_files(self) -> tuple[str, ...]:
        """The graph, and the head's where it has one of its own."""
        return (self.graph, self.head.graph) if isinstance(self.head, Head) else (self.graph,)


class EmbedderRole(_EncoderRole, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="embedder"):
    """An encoder that gives token vectors, cut at the layer that serves best."""

    layer: Count
    """How many of the encoder's layers the graph has."""
    baseline: tuple[Rescaling, Rescaling, Rescaling] | None = None
    """Precision, recall and F1 of unrelated sentences, for rescaling BERTScore; None where not measured."""
    stride: Count = 0
    """Tokens that neighbouring windows of a long text share."""

    @property
    def info(self) -> RoleInfo:
        """The baseline of BERTScore."""
        return RoleInfo(baseline=self.baseline)


class TokenClassifierRole(_HeadRole, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="token_classifier"):
    """A token classifier over a text and its premises; ``labels`` in the order of its logits."""

    labels: Labels
    template: Template = Template("{premise}", "{hypothesis}")
    stride: Count = 32
    """Tokens that neighbouring windows of a long premise share."""
    supported: str
    """The label of supported tokens; where windows disagree, the window that supports a token most decides."""

    def __post_init__(self) -> None:
        self.template.check(("premise", "hypothesis"))

    @property
    def info(self) -> RoleInfo:
        """Its labels, and the label of supported tokens."""
        return RoleInfo(self.labels, (self.supported,))


class ReaderRole(_EncoderRole, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="reader"):
    """A model that labels an answer as a whole, its sentences and its tokens in one pass."""

    heads: dict[str, ReaderHead]
    """By the name of the output: ``consistency``, ``nli`` and ``verifiability`` of the answer, one of sentences and one
    of tokens."""
    template: Template = Template("{premise}", "{history}{hypothesis}")
    turn_end: str = " "
    """Follows each turn of the history."""
    stride: Count = 64
    """Tokens that neighbouring windows of long premises share."""

    def __post_init__(self) -> None:
        self.template.check(("premise", "hypothesis"), ("history",))
        if not (self.template.second or "").endswith("{hypothesis}"):
            raise ValueError("the second text of a reader's template ends with {hypothesis}")
        units = sorted(head.unit for head in self.heads.values())
        whole = {name for name, head in self.heads.items() if head.unit == "answer"}
        if units != ["answer"] * 3 + ["sentence", "token"] or whole != {"consistency", "nli", "verifiability"}:
            raise ValueError(
                "a reader has the heads consistency, nli and verifiability, one of sentences, one of tokens"
            )

    @property
    def info(self) -> RoleInfo:
        """Its heads."""
        return RoleInfo(heads=self.heads)


class RetrieverRole(_Model, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="retriever"):
    """An entity retriever in three graphs (docs/reference/graphs.md has their signatures)."""

    encoder: str
    """The masked language model: hidden states of triples, history and masked response."""
    query: str
    """The causal language model that turns a mention's state into a query."""
    memory: str
    """The same model over the text of an entity: gives its vector in the memory."""
    width: Positive
    """Numbers of a state, a query and an entity."""
    mask_id: Count
    """The token that replaces a mention's tokens."""
    pooling: Literal["mean", "max"] = "mean"
    """How the states of a mention's tokens become one vector."""
    paths: bool = False
    """Whether the memory text of an entity has the triples that join it to its anchor, or its name alone."""
    turns: Count = 3
    """Last turns of the history that are read."""

    @property
    def graph_files(self) -> tuple[str, ...]:
        """Encoder, query and memory."""
        return self.encoder, self.query, self.memory


class SpansRole(_Role, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="spans"):
    """A spaCy pipeline directory."""

    path: str


Role: TypeAlias = (
    ExtractiveQARole
    | ClassifierRole
    | JudgeRole
    | QuestionGeneratorRole
    | ResponseGeneratorRole
    | LanguageModelRole
    | EmbedderRole
    | TokenClassifierRole
    | ReaderRole
    | RetrieverRole
    | SpansRole
)


EncoderRole: TypeAlias = ExtractiveQARole | ClassifierRole | TokenClassifierRole
"""The roles that every device for engines needs a target of."""
ReferenceRole: TypeAlias = EncoderRole | ReaderRole
"""The roles that may have reference logits."""
PassRole: TypeAlias = ReferenceRole | EmbedderRole
"""The roles of one graph that one pass over token ids reads."""
TargetRole: TypeAlias = PassRole | QuestionGeneratorRole | LanguageModelRole
"""The roles that may have targets."""


class FileEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Size and digest of a file of the bundle."""

    bytes: Count
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class Canary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of one of a role's warm-up calls where the bundle was exported."""

    input: str
    """Digest of the call."""
    numbers: tuple[float, ...]
    """The result's numbers, in order."""


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of ``bundle.json``."""

    schema: int
    name: str
    version: str
    license: str
    created_with: str
    roles: dict[str, Role]
    calibration: Calibration | None = None
    """How to read the values of the bundle's metrics; None where none was fitted."""
    canaries: dict[str, tuple[Canary, ...]] | msgspec.UnsetType = msgspec.UNSET
    """By role, what ``warmup`` compares its results with; left out where it was not recorded."""
    recorded: FileEntry | msgspec.UnsetType = msgspec.UNSET
    """The file with the models' answers to fixed calls (``recorded.py``); left out where they were not recorded."""
    files: dict[str, FileEntry]
    """Every other file of the bundle but the manifest and README, by its path with forward slashes."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.bytes for entry in self.files.values())

    @property
    def precisions(self) -> dict[str, Precision]:
        """The precision of every role that has graphs."""
        return self.precisions_on("cpu")

    def precisions_on(self, device: str, *, served: bool = False) -> dict[str, Precision]:
        """The precision of every role that has graphs, on a kind of device, or ``served`` by a model server there."""
        kinds = PassRole if served else TargetRole
        targets = {name: role.find_target(device) for name, role in self.roles.items() if isinstance(role, kinds)}
        return {
            name: role.precision if (target := targets.get(name)) is None else target.precision
            for name, role in self.roles.items()
            if isinstance(role, _Model)
        }

    def digest(self) -> str:
        """Twelve hexadecimal digits that change with any file of the bundle and any field of its roles.

        Not with its canaries and recorded answers, nor with its calibration, which has a digest of its own: they read
        values and change none.
        """
        content = msgspec.json.encode([self.roles, self.files], order="deterministic")
        return hashlib.sha256(content).hexdigest()[:12]

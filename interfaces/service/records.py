"""The bodies of requests and answers that are not records of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from groundwire.engine import Options, Ranked, Triple
from groundwire.engine.schema.base import Count, Milliseconds
from groundwire.generation import GenerationOptions
from groundwire.guard import Correct, Fallback, Policy, Redact, Refine
from groundwire.guard.policies import OUTCOMES
from groundwire.runtime.arguments import OptionRecord

from .problems import Problem

JsonObject: TypeAlias = dict[str, Any]
Knowledge: TypeAlias = str | JsonObject | tuple[str | JsonObject, ...]
Triples: TypeAlias = tuple[Triple | tuple[str, str, str], ...]
Metrics: TypeAlias = str | tuple[str, ...]
Explanations: TypeAlias = bool | Literal["all"]
Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


ScoreAnswer: TypeAlias = Annotated[
    Any,
    msgspec.Meta(
        description="A Score, or those of its fields that were asked for.",
        extra_json_schema={"anyOf": [{"$ref": "#/components/schemas/Score"}, {"type": "object"}]},
    ),
]


History: TypeAlias = str | tuple[str, ...] | None
"""The utterances before a response, oldest first; a string is one, and null is none."""


class Turn(OptionRecord, frozen=True, kw_only=True):
    """What a response should rest on, and the dialogue before it."""

    knowledge: Knowledge | None = ()
    """A text, a JSON object such as a tool's result, or several of these; null is none."""
    history: History = ()
    """Utterances, oldest first."""
    triples: Triples = ()
    """Facts of a knowledge graph, as records or [subject, predicate, object]; they are the knowledge where no text is
    given."""


class ResponseBody(Turn, frozen=True, kw_only=True):
    """A response, and how to score it."""

    response: Text
    metrics: Metrics | None = None
    """Names and groups (default, fast, paper, all), joined as you like: ["default", "quotations"]. null: the metrics
    that the server was started with, else the verdict's."""
    options: Options = Options()
    """deadline_ms and priority are bounded by the server."""


class ScoreBody(ResponseBody, frozen=True, kw_only=True):
    """A response to score."""

    fields: tuple[str, ...] | None = None
    """Names of the fields of the score to answer with; null: all of them."""
    explanations: Explanations = True
    """false: answer without the explanation of each metric, which is most of an answer. true: each list has 500 entries
    at most, and `left_out` counts the others; all: each list is whole."""


class EvidenceBody(ResponseBody, frozen=True, kw_only=True):
    """A response to score, with evidence for an audit."""

    texts: bool = False
    """Put the texts into the packet; without, it has their digests and quotes nothing."""


class ScoreLine(Turn, frozen=True, kw_only=True):
    """A line of ``/score_many``."""

    response: Text
    id: str | int | None = None
    """Comes back with the score."""
    fields: tuple[str, ...] | None = None
    """Names of the fields of the score to answer with; null: all of them."""
    explanations: Explanations = True
    """As of /score: false, true or all."""


class ScoredLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a line of ``/score_many``: a score or a problem."""

    line: int
    """Number of the line, from 1; empty lines count."""
    id: str | int | None = None
    score: ScoreAnswer | None = None
    """Look at its status: only ``scored`` carries a value."""
    error: Problem | None = None


class RankBody(Turn, frozen=True, kw_only=True):
    """Candidate responses to one turn."""

    candidates: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    metric: str = "pmi"
    options: Options = Options()


class Ranking(msgspec.Struct, frozen=True):
    """The candidates, best first; candidates without a value come last."""

    ranked: tuple[Ranked, ...]


class RefineBody(OptionRecord, frozen=True, kw_only=True):
    """A response whose names are checked against triples, and replaced."""

    response: Text
    history: History = ()
    triples: Annotated[Triples, msgspec.Meta(min_length=1)]
    top: int = 5
    """Candidates of each name that are reported."""
    type_aware: bool = True
    """Prefer candidates that play a part in the triples that what they replace plays too."""
    min_probability: float = 0.05
    """0–1; a name is replaced only by a candidate that has it."""
    options: Options = Options()


class TurnBody(OptionRecord, frozen=True, kw_only=True):
    """A turn of an assistant that calls tools."""

    text: str = ""
    """What the assistant says."""
    calls: tuple[JsonObject, ...] = ()
    """The calls that it is about to make: objects with name and arguments, or calls as OpenAI and Anthropic write
    them."""
    log: tuple[JsonObject, ...] = ()
    """The calls that were made, with result and status, or the messages of a chat with them."""
    history: tuple[str | JsonObject, ...] = ()
    """Messages with role and content, or texts, oldest first; the last text is the user's."""
    tools: tuple[JsonObject, ...] = ()
    """Definitions of the tools; enumerations of their schemas are read, and the annotation readOnlyHint."""
    actions: tuple[str, ...] = ()
    """Names of tools that change something although their names do not say so."""
    sentences: bool = True
    """false: leave the models' score of the text out."""
    metrics: Metrics | None = None
    """Names and groups (default, fast, paper, all), joined as you like: ["default", "quotations"]. null: the metrics
    that the server was started with, else the verdict's."""
    options: Options = Options()
    """deadline_ms and priority are bounded by the server."""


class CorrectBody(OptionRecord, frozen=True, kw_only=True):
    """A response to correct by its knowledge."""

    response: Text
    knowledge: Knowledge
    """A text, a JSON object such as a tool's result, or several of these."""
    history: History = ()
    """Utterances, oldest first."""
    metrics: Metrics | None = None
    """Names and groups (default, fast, paper, all), joined as you like: ["default", "quotations"]. null: the metrics
    that the server was started with, else the verdict's."""
    max_drafts: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    """Corrections that are scored, at most; at least one for each inconsistent sentence."""
    remove_sentences: bool = False
    """Leave an inconsistent sentence out where it cannot be corrected and others remain."""
    options: Options = Options()
    """deadline_ms and priority are bounded by the server."""


class GenerateBody(OptionRecord, frozen=True, kw_only=True):
    """A dialogue to answer from its knowledge."""

    knowledge: Knowledge
    history: History
    generation: GenerationOptions = GenerationOptions()
    metrics: Metrics | None = None
    """Score every candidate by these; null: only with ``generation.n_candidates``."""
    options: Options = Options()


class RedactAction(OptionRecord, frozen=True, tag="redact"):
    """Let a sentence leave with a mark in the place of its unsupported words."""

    mark: str = "[…]"


class FallbackAction(OptionRecord, frozen=True, tag="fallback"):
    """Let a text leave in the place of all that has not left, and end the stream."""

    text: str


Otherwise: TypeAlias = Literal["flag", "block", "redact"] | RedactAction | FallbackAction


class RefineAction(OptionRecord, frozen=True, tag="refine"):
    """Repair the names of a sentence by the triples of the stream, and let it leave if it is consistent then."""

    otherwise: Otherwise = "block"


class CorrectAction(OptionRecord, frozen=True, tag="correct"):
    """Correct a sentence by the knowledge of the stream, and let it leave if it is consistent then."""

    otherwise: Otherwise = "block"


Action: TypeAlias = Otherwise | RefineAction | CorrectAction


class PolicyBody(OptionRecord, frozen=True, kw_only=True):
    """What happens to each sentence by its outcome; a consistent one leaves. See ``groundwire.engine.Policy``."""

    inconsistent: Action = "block"
    unverifiable: Action = "flag"
    unsure: Action | None = None
    unknown: Action = "block"
    deadline: Action = "block"
    failed: Action = "block"
    truncated: Action = "block"
    overflow: Otherwise = "block"
    max_held_words: Count = 200
    max_held_ms: Milliseconds = 30_000.0

    def build(self, max_stream_ms: float, max_held_words: int) -> Policy:
        """The engine's record, within the server's limits."""
        actions = {outcome: _build(getattr(self, outcome)) for outcome in OUTCOMES}
        return Policy(
            **actions,
            unsure=None if self.unsure is None else _build(self.unsure),
            max_held_words=min(self.max_held_words, max_held_words),
            max_held_ms=self.max_held_ms,
            deadline_ms=max_stream_ms,
        )


def _build(action: Action) -> Any:
    match action:
        case RedactAction():
            return Redact(action.mark)
        case FallbackAction():
            return Fallback(action.text)
        case RefineAction():
            return Refine(otherwise=_build(action.otherwise))
        case CorrectAction():
            return Correct(otherwise=_build(action.otherwise))
        case _:
            return action


class StreamBody(Turn, frozen=True, kw_only=True):
    """The first line of a stream: what the response that follows should rest on, and what happens to its sentences."""

    metrics: Metrics | None = None
    options: Options = Options()
    """deadline_ms bounds the check of each sentence."""
    policy: PolicyBody = PolicyBody()


class Delta(OptionRecord, frozen=True):
    """A further line of a stream: a part of the response, or its end."""

    delta: str = ""
    finish: bool = False
    """The response is complete. The end of the body says so too."""


class StreamError(msgspec.Struct, frozen=True, tag="error"):
    """The stream has ended, and nothing more leaves."""

    problem: Problem


class ClassifyParameters(msgspec.Struct, frozen=True):
    """What an answer is compared with."""

    context: str | tuple[str, ...]
    """The text that the answer should rest on, or several."""
    question: str = ""


class ClassifyBody(msgspec.Struct, frozen=True):
    """An answer, as vLLM semantic-router sends it to a hallucination detector (contract token_spans.v1)."""

    inputs: Text
    parameters: ClassifyParameters


class GuardrailParameters(msgspec.Struct, frozen=True):
    """What the configuration of LiteLLM's guardrail says to this server."""

    knowledge: Knowledge = ()
    """What answers should rest on, in the place of what the request has."""
    on_inconsistent: Literal["block", "redact"] = "block"
    """redact: inconsistent sentences are replaced by a mark, and the rest of the answer passes."""
    on_unknown: Literal["block", "pass"] = "block"
    """What becomes of an answer that cannot be checked: without knowledge, or without a verdict."""
    on_unfinished: Literal["check", "wait"] = "check"
    """wait: a last sentence without its full stop or line break is not looked at, as LiteLLM shows a stream before it
    is complete; the last words of an answer may then leave unchecked."""
    on_invented: Literal["block", "pass"] = "pass"
    """What becomes of tool calls with an argument that neither dialogue nor results give; pass looks at no call."""


class GuardrailBody(msgspec.Struct, frozen=True):
    """A request to a model, or its answer, as LiteLLM sends it to a generic guardrail; other fields are ignored."""

    input_type: Literal["request", "response"]
    """A request is remembered by its litellm_call_id for its answer."""
    texts: tuple[str, ...] | None = None
    """The texts of the request, or the answers."""
    litellm_call_id: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    structured_messages: tuple[JsonObject, ...] | None = None
    """The messages of the request: system messages and results of tools are its knowledge."""
    tools: tuple[JsonObject, ...] | None = None
    """Definitions of the tools of the request."""
    tool_calls: tuple[JsonObject, ...] | None = None
    """The calls of the answer."""
    additional_provider_specific_params: GuardrailParameters | None = None


class GuardrailAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What LiteLLM does with the texts."""

    action: Literal["NONE", "BLOCKED", "GUARDRAIL_INTERVENED"]
    blocked_reason: str | None = None
    texts: tuple[str, ...] | None = None
    """The texts that take the place of those that were sent."""


class QuestionChoice(msgspec.Struct, frozen=True):
    """A value of a question ``choice``."""

    value: str


class TypedQuestion(msgspec.Struct, frozen=True):
    """A typed question. Those that are known are described at the operations."""

    type: Literal["noul", "predicate", "choice", "score"]
    instructions: str | tuple[JsonObject, ...] = ""
    name: str | None = None
    """Names a question of decisions in its answer."""
    criteria: Any = None
    """Of a System One choice: its options, with a description each."""
    choices: tuple[QuestionChoice, ...] = ()
    """Of a choice of decisions."""


class DecisionState(OptionRecord, frozen=True, kw_only=True):
    """What typed questions are about."""

    response: Text
    knowledge: Knowledge = ()
    """A text, a JSON object such as a tool's result, or several of these."""
    history: History = ()
    """Utterances, oldest first."""


class SystemOneBody(msgspec.Struct, frozen=True):
    """Typed questions in the form of System One; the model is the server's, whatever is named."""

    state: str | JsonObject | tuple[JsonObject, ...]
    """An object with response, knowledge and history, its JSON, or the messages of a chat."""
    questions: Annotated[dict[str, TypedQuestion], msgspec.Meta(min_length=1)]
    model: str = ""


class NoulAnswer(msgspec.Struct, frozen=True, tag="noul"):
    """The probability, 0–1, that the response is supported."""

    noul: float


class SystemOneChoice(msgspec.Struct, frozen=True, tag="choice"):
    """The label of the response."""

    choice: str
    probabilities: Mapping[str, float]
    confidence: float
    """The probability, 0–1, of the choice."""


class TokenUsage(msgspec.Struct, frozen=True):
    """Estimated tokens of the texts."""

    input_tokens: int
    output_tokens: int = 0


class SystemOneAnswer(msgspec.Struct, frozen=True):
    """Answers by the names of their questions."""

    model: str
    answers: dict[str, NoulAnswer | SystemOneChoice]
    usage: TokenUsage
    refusals: dict[str, str]
    """Why questions have no answer."""


class DecisionsBody(msgspec.Struct, frozen=True):
    """Typed questions in the form of OpenAI's decisions; the model is the server's, whatever is named."""

    input: str | tuple[JsonObject, ...]
    """The JSON of an object with response, knowledge and history, or the messages of a chat."""
    questions: Annotated[tuple[TypedQuestion, ...], msgspec.Meta(min_length=1)]
    model: str = ""


class PredicateAnswer(msgspec.Struct, frozen=True, tag="predicate"):
    """The probability, 0–1, that the response is supported."""

    name: str | None
    probability: float


class ValueProbability(msgspec.Struct, frozen=True):
    """A value of a choice, and its probability, 0–1."""

    value: str
    probability: float


class ChoiceAnswer(msgspec.Struct, frozen=True, tag="choice"):
    """The label of the response."""

    name: str | None
    choice: str
    probabilities: tuple[ValueProbability, ...]
    confidence: float
    """The probability, 0–1, of the choice."""


class RefusedAnswer(msgspec.Struct, frozen=True, tag="refusal"):
    """A question without an answer."""

    name: str | None
    reason: str


class InputTokens(msgspec.Struct, frozen=True):
    """None are kept."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokens(msgspec.Struct, frozen=True):
    """None are written."""

    reasoning_tokens: int = 0


class DecisionUsage(msgspec.Struct, frozen=True):
    """Estimated tokens of the texts."""

    input_tokens: int
    output_tokens: int = 0
    total_tokens: int = 0
    input_tokens_details: InputTokens = InputTokens()
    output_tokens_details: OutputTokens = OutputTokens()


class DecisionAnswers(msgspec.Struct, frozen=True):
    """Answers in the order of their questions."""

    model: str
    answers: tuple[PredicateAnswer | ChoiceAnswer | RefusedAnswer, ...]
    usage: DecisionUsage


class ListedModel(msgspec.Struct, frozen=True):
    """A model."""

    id: str
    name: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "groundwire"
    description: str = "Whether a response is supported by its knowledge."


class ListedModels(msgspec.Struct, frozen=True):
    """The models, in two forms."""

    data: tuple[ListedModel, ...]
    """As OpenAI's clients read them."""
    models: tuple[ListedModel, ...]
    """As clients of System One read them."""
    object: Literal["list"] = "list"


class LabelledSpan(msgspec.Struct, frozen=True):
    """Words of the answer that its context does not support: ``text == inputs[start:end]`` in code points."""

    label: str
    score: float
    """1 minus the probability, 0–1, that the sentence of the words is consistent."""
    text: str
    start: int
    end: int


class LabelledSpans(msgspec.Struct, frozen=True):
    """All spans of an answer; none if it is consistent, or states nothing. What could not be read is an error."""

    spans: tuple[LabelledSpan, ...]


class Tensor(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tensor of the Open Inference Protocol, with its data as JSON, row by row."""

    name: str
    shape: tuple[int, ...]
    datatype: str
    data: list[Any]
    parameters: JsonObject = {}


class RequestedOutput(msgspec.Struct, frozen=True):
    """An output to return."""

    name: str
    parameters: JsonObject = {}


class InferBody(msgspec.Struct, frozen=True):
    """A request of the Open Inference Protocol."""

    inputs: Annotated[tuple[Tensor, ...], msgspec.Meta(min_length=1)]
    """response [n]; knowledge [n] or [n, passages]; perhaps history [n, turns]; all BYTES. Empty strings fill rows."""
    id: str = ""
    parameters: JsonObject = {}
    """metrics (names, separated by commas) and profile."""
    outputs: tuple[RequestedOutput, ...] = ()
    """Among label, status, score (JSON), value, probability. Default: the first three. A number is refused with the
    request if one of its rows has none."""


class Inference(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer of the Open Inference Protocol."""

    model_name: str
    model_version: str
    outputs: tuple[Tensor, ...]
    id: str = ""


class TensorMetadata(msgspec.Struct, frozen=True):
    """An input or output of a model; -1 is any number."""

    name: str
    datatype: str
    shape: tuple[int, ...]


class ModelMetadata(msgspec.Struct, frozen=True):
    """What the Open Inference Protocol says of a model."""

    name: str
    versions: tuple[str, ...]
    platform: str
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]


class ServerMetadata(msgspec.Struct, frozen=True):
    """What the Open Inference Protocol says of a server."""

    name: str
    version: str
    extensions: tuple[str, ...] = ()


class Live(msgspec.Struct, frozen=True):
    """The server lives."""

    live: bool


class Ready(msgspec.Struct, frozen=True, omit_defaults=True):
    """The server, or the model of this name, is ready."""

    ready: bool
    name: str = ""


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the server lives, or is ready."""

    status: str
    detail: str = ""

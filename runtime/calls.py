"""Model calls and their results: the vocabulary between metrics and the runtime.

A call is frozen and hashable: two equal calls have the same result, whatever batch they run in, so the scheduler may
answer one from the other.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from .arguments import OptionRecord
from .triples import Triple

AnswerRule: TypeAlias = Literal["independent", "joint"]
PROCESSES = "processes"
"""The role of ``Compute``: it has no model; the worker processes of an engine answer it."""


class TextSpan(msgspec.Struct, frozen=True):
    """A span of a source text: ``text == source[start:end]``, in characters."""

    text: str
    start: int
    end: int
    kind: str = "given"
    """Where it comes from: ``ent:LABEL``, ``noun_chunk``, or ``given`` by the caller."""


class BeamSearch(OptionRecord, frozen=True, tag="beam_search"):
    """Beam search, by default as the code of the Q² authors searches."""

    num_beams: int = 5
    num_return_sequences: int = 5
    """Sequences returned per source, best first; at most ``num_beams``."""
    no_repeat_ngram_size: int = 3
    """Length of the n-grams that may not occur twice; 0 allows all."""
    early_stopping: bool = True
    length_penalty: float = 1.0
    """Exponent of the length in the final score; above 0 favours longer sequences."""
    max_new_tokens: int = 127
    """Tokens generated at most; the start token does not count (the authors' ``max_length`` of 128 counts it)."""
    min_new_tokens: int = 0

    @property
    def parallel_sequences(self) -> int:
        """The number of sequences per source that a step continues."""
        return self.num_beams


class Greedy(OptionRecord, frozen=True, tag="greedy"):
    """The most probable token at every step: one sequence. The Q² greedy variant blocks no n-grams."""

    no_repeat_ngram_size: int = 0
    max_new_tokens: int = 127
    min_new_tokens: int = 0

    @property
    def parallel_sequences(self) -> int:
        """The number of sequences per source that a step continues."""
        return 1


class Sampling(OptionRecord, frozen=True, tag="sampling"):
    """Seeded sampling, by default as the code of the Q² authors samples."""

    num_return_sequences: int = 5
    top_k: int = 50
    """Candidates kept at each step; 0 keeps the whole vocabulary."""
    top_p: float = 0.95
    """Probability mass kept at each step, at least one token."""
    temperature: float = 1.0
    seed: int = 0
    """With the source, it determines all random numbers: equal calls draw equal sequences."""
    no_repeat_ngram_size: int = 0
    max_new_tokens: int = 127
    min_new_tokens: int = 0

    @property
    def parallel_sequences(self) -> int:
        """The number of sequences per source that a step continues."""
        return self.num_return_sequences


class BeamSampling(OptionRecord, frozen=True, tag="beam_sampling"):
    """Beam search whose continuations are drawn instead of taken from the top: transformers' ``num_beams`` with
    ``do_sample``. At every step a source draws twice as many as it has beams, without replacement, by their
    accumulated scores, and continues the best of those. Seeded like ``Sampling``."""

    num_beams: int = 4
    num_return_sequences: int = 4
    """Sequences returned per source, best first; at most ``num_beams``."""
    top_k: int = 50
    """Candidates of each beam that may be drawn; 0 keeps the whole vocabulary."""
    top_p: float = 1.0
    """Probability mass of each beam's candidates that may be drawn, at least one token."""
    temperature: float = 1.0
    seed: int = 0
    no_repeat_ngram_size: int = 0
    early_stopping: bool = False
    length_penalty: float = 1.0
    max_new_tokens: int = 127
    """Tokens generated at most; the start token does not count (the authors' ``max_length`` of 128 counts it)."""
    min_new_tokens: int = 0

    @property
    def parallel_sequences(self) -> int:
        """The number of sequences per source that a step continues."""
        return self.num_beams


class DelayedBeamSearch(OptionRecord, frozen=True, tag="delayed_beam_search"):
    """Beam search from a start that is drawn: top-k sampling for the first tokens, then beams (Massarelli et al. 2020).

    Defaults are as in "Rome was built in 1776" (Santhanam et al. 2021). Seeded like ``Sampling``."""

    num_beams: int = 5
    num_return_sequences: int = 5
    """Sequences returned per source, best first; at most ``num_beams``. They share their first tokens."""
    delay_steps: int = 5
    """Tokens that are drawn before the beams begin."""
    top_k: int = 10
    """Candidates that may be drawn; 0 keeps the whole vocabulary."""
    seed: int = 0
    no_repeat_ngram_size: int = 0
    early_stopping: bool = True
    length_penalty: float = 1.0
    max_new_tokens: int = 127
    """Tokens generated at most, the drawn ones included."""
    min_new_tokens: int = 0

    @property
    def parallel_sequences(self) -> int:
        """The number of sequences per source that a step continues."""
        return self.num_beams


Decoding: TypeAlias = BeamSearch | Greedy | Sampling | BeamSampling | DelayedBeamSearch
FAITHFUL = BeamSearch(num_beams=4, num_return_sequences=1, no_repeat_ngram_size=0, early_stopping=False)
"""Four beams, as PMI-Faith's authors search with, but without their other settings, which BART-large's configuration
has: no 3-gram twice, the end at four finished beams, and at least one token before it. They are
``BeamSearch(num_beams=4, num_return_sequences=1, no_repeat_ngram_size=3, early_stopping=True, min_new_tokens=1)``; here
no n-gram is blocked, and the search ends when no beam can improve."""


class FindSpans(msgspec.Struct, frozen=True):
    """Named entities and noun phrases of ``text`` → ``tuple[TextSpan, ...]``."""

    text: str


class IsPersonal(msgspec.Struct, frozen=True):
    """Whether ``question`` asks about the speakers themselves → ``bool``."""

    question: str


class GenerateQuestions(msgspec.Struct, frozen=True):
    """Questions whose answer in ``context`` is ``answer`` → ``tuple[GeneratedQuestion, ...]``, best first."""

    answer: str
    context: str
    decoding: Decoding = BeamSearch()


class Answer(msgspec.Struct, frozen=True):
    """The answer to ``question`` in ``passages`` → ``Answered``."""

    question: str
    passages: tuple[str, ...]
    rule: AnswerRule = "independent"
    """``independent``: start and end by argmax each, as the papers' code does; ``joint``: the best legal span."""


class Classify(msgspec.Struct, frozen=True):
    """The label of (``premises``, ``hypothesis``) by the classifier of ``role`` → ``Classified``."""

    role: str
    premises: tuple[str, ...]
    hypothesis: str


class ScoreText(msgspec.Struct, frozen=True):
    """The log-probability of every token of ``text`` after ``prefix``, by the model of role ``lm`` → ``TextScored``.

    The parts of ``prefix`` and ``text`` are tokenized separately and their ids joined, as the PMI-Faith authors' code
    does. Calls with the same prefix share its forward pass.
    """

    prefix: tuple[str, ...]
    text: str


class MeasureTexts(msgspec.Struct, frozen=True):
    """How many tokens each of ``texts`` has for the model of role ``lm`` → ``TextLengths``. Runs no model."""

    texts: tuple[str, ...]


class Embed(msgspec.Struct, frozen=True):
    """The token vectors of ``text`` by the encoder of role ``embedder`` → ``Embedded``."""

    text: str


class CountTokens(msgspec.Struct, frozen=True):
    """The number of ``texts`` that each token of role ``embedder`` occurs in → ``TokenCounts``. Runs no model."""

    texts: tuple[str, ...]


class ClassifyTokens(msgspec.Struct, frozen=True):
    """A label for every token of ``text``, given ``premises``, by the model of ``role`` → ``ClassifiedTokens``."""

    role: str
    premises: tuple[str, ...]
    text: str


class ReadAnswer(msgspec.Struct, frozen=True):
    """What the reader of ``role`` says about ``answer``, given ``premises`` → ``AnswerRead``.

    One pass reads the answer as a whole, each of its ``sentences`` and each of its tokens.
    """

    role: str
    premises: tuple[str, ...]
    """Passages, read together as far as the model's window goes, else in several windows."""
    history: tuple[str, ...]
    """Turns before the answer, the oldest first; the newest of them are read, as far as they fit."""
    answer: str
    sentences: tuple[tuple[int, int], ...]
    """Character ranges of ``answer``, disjoint and in the order of the text. Text outside them is read as context."""


class Candidate(msgspec.Struct, frozen=True, order=True):
    """An entity that may replace a mention, and the node of the graph that it was reached from."""

    anchor: str
    """The context node: an entity that the dialogue is about."""
    entity: str
    """An entity in its neighbourhood."""


class Retrieve(msgspec.Struct, frozen=True):
    """Which entity belongs at each mention of ``response`` → ``tuple[tuple[Retrieved, ...], ...]``, mention by mention.

    All mentions are masked at once and filled from left to right, each given the entity chosen before it
    (Neural Path Hunter, section 3.3). The model has the role ``retriever``.
    """

    history: tuple[str, ...]
    """Turns, oldest first; the role says how many of the last ones count."""
    triples: tuple[Triple, ...]
    """Facts, nearest first. They are linearised before the history as far as the window goes; the memory text of a
    candidate has the first facts that join it to its anchor, whether the window has them or not."""
    response: str
    mentions: tuple[tuple[int, int], ...]
    """Character ranges of ``response``, disjoint and in the order of the text."""
    candidates: tuple[tuple[Candidate, ...], ...]
    """For each mention, at least one."""
    top: int = 10
    """Candidates returned per mention at most."""


class Generate(msgspec.Struct, frozen=True):
    """Responses to ``history`` that rest on ``knowledge`` → ``tuple[GeneratedSequence, ...]``, best first.

    By role ``generator``. PMI-Decode (Nandwani et al. 2023, §4.2) scores the next token by
    ``alpha * cpmi + (1 - alpha) * log_prob``, both given everything before it, where CPMI is its log-probability with
    the knowledge minus that without. ``alpha`` 0 with ``pmi_top_p`` 1 is the plain decoding of the model; at ``alpha``
    0 the context without the knowledge is not read.
    """

    knowledge: tuple[str, ...]
    """Passages, joined by a space."""
    history: tuple[str, ...]
    """Turns, the oldest first, joined by a line break; may be empty."""
    decoding: Decoding = FAITHFUL
    alpha: float = 0.25
    """Weight of CPMI, 0 to 1. The paper recommends 0.25 with ``pmi_top_p`` 0.6."""
    pmi_top_p: float = 0.6
    """Above 0 up to 1: CPMI chooses among the most probable tokens (with the knowledge) that together have this
    probability; at least one, and all of them at 1."""


class Compute(msgspec.Struct, frozen=True):
    """Compute metrics of a request in another process, whole."""

    request: bytes
    """The request, its metrics' names and its options, as the engine encodes them."""
    metrics: tuple[str, ...]
    options: bytes
    whole: bool = False
    """Whether the result is the score, with its verdict, instead of the metrics."""
    max_entries: int | None = None
    """Entries of each list of that score, as ``Score.shorten`` has it; None for all."""


class GeneratedQuestion(msgspec.Struct, frozen=True):
    """One generated sequence."""

    text: str
    score: float
    """Length-normalised log-probability for beam search, mean log-probability otherwise."""


class SequenceToken(msgspec.Struct, frozen=True):
    """A token of a generated response."""

    id: int
    text: str
    """What it adds to the text; empty for a token that ends the response, or that only begins a character. Joined, the
    texts of all tokens are the response."""
    log_prob: float
    """Given the knowledge, the history and the tokens before it."""
    cpmi: float | None
    """``log_prob`` minus the log-probability without the knowledge. None at ``alpha`` 0, where that context is not
    read."""


class GeneratedSequence(msgspec.Struct, frozen=True):
    """A response generated by role ``generator``."""

    text: str
    score: float
    """Score of the decoding rule: the mean of a token's ``alpha * cpmi + (1 - alpha) * log_prob``, with the length
    penalty for beams."""
    tokens: tuple[SequenceToken, ...]
    """All of them, with the token that ends the response."""
    finished: bool
    """Whether the model ended it; False when ``max_new_tokens`` did."""


class SequencePart(msgspec.Struct, frozen=True):
    """The text that a decoding step adds to a response that is streamed."""

    text: str
    """Whole characters, possibly none. Joined, they are the response; a space is held back until a word follows it."""
    sequence: GeneratedSequence | None = None
    """The complete response, with the last part only."""


class Read(msgspec.Struct, frozen=True):
    """How much of the passages a model read."""

    windows: int
    characters: int
    """Characters read, over all passages."""
    total: int
    """Characters given, over all passages."""

    @property
    def share(self) -> float:
        """The share of the characters that was read, 0–1; all of no characters."""
        return self.characters / self.total if self.total else 1.0


class Answered(msgspec.Struct, frozen=True):
    """An extractive answer; ``text`` is empty when ``status`` is not ``answered``."""

    status: Literal["answered", "none", "empty"]
    """``none``: no window has an answer. ``empty``: some window chose a range, but no window chose a range that is an
    answer, because its end is before its start, it touches a special token (``[CLS]``, ``[SEP]``), or it has no
    words."""
    text: str
    passage: int
    """Index of the passage with the answer; -1 without an answer."""
    start: int
    """Character offset in that passage; -1 for words of the question, or without an answer."""
    end: int
    score: float
    """Start plus end logit of the answer, minus both logits of "no answer", in the best window."""
    read: Read


class Classified(msgspec.Struct, frozen=True):
    """The label with the highest probability, and all of them in the role's label order."""

    label: str
    probabilities: dict[str, float]
    window: int
    """Which window of the premises decided; 0 when there is one."""
    read: Read
    supported: float | None = None
    """Probability of the labels that mean "consistent", for roles that name them."""


class TextScored(msgspec.Struct, frozen=True):
    """Natural-log probabilities of a text's tokens, each given everything before it."""

    offsets: tuple[tuple[int, int], ...]
    """Character range of every token in the text."""
    log_probs: tuple[float, ...]
    """Log-probabilities of the tokens from ``first`` on, in order."""
    first: int
    """0, or 1 without a prefix: then the first token of the text has no prediction and is left out."""
    read: Read | None = None
    """How much of the prefix was read; None where the model did not say."""


class TextLengths(msgspec.Struct, frozen=True):
    """Lengths of texts in tokens, each by itself."""

    tokens: tuple[int, ...]
    limit: int
    """Tokens that the model reads at once."""


class Embedded(msgspec.Struct, frozen=True, eq=False):
    """Contextual token vectors of a text, special tokens included."""

    vectors: NDArray[np.float32]
    """[T, D], each of length 1."""
    ids: tuple[int, ...]
    """Token ids [T]."""
    offsets: tuple[tuple[int, int], ...]
    """Character range of every token in the text [T]; (0, 0) for special ones."""
    special: tuple[bool, ...]
    """Which tokens belong to the model rather than the text [T]."""
    read: Read


class TokenCounts(msgspec.Struct, frozen=True):
    """Document frequencies of tokens."""

    texts: int
    """How many texts were counted."""
    counts: dict[int, int]
    """Token id → number of texts with it, special tokens included; ids in no text are left out."""


class ClassifiedToken(msgspec.Struct, frozen=True):
    """A token of the text: its character range and the probability of each label in the role's order."""

    start: int
    end: int
    probabilities: tuple[float, ...]


class ClassifiedTokens(msgspec.Struct, frozen=True):
    """The tokens of a text, in order, with their labels' probabilities."""

    labels: tuple[str, ...]
    tokens: tuple[ClassifiedToken, ...]
    read: Read


class AnswerRead(msgspec.Struct, frozen=True):
    """The probabilities that a reader's heads give to their labels, in the order of the role's labels.

    Where premises are read in several windows, each head, sentence and token has the probabilities of the window that
    supports it most.
    """

    heads: dict[str, tuple[float, ...]]
    """By the name of a head of whole answers."""
    sentences: tuple[tuple[float, ...], ...]
    """For each sentence of the call."""
    tokens: tuple[ClassifiedToken, ...]
    """The tokens of the answer, in order."""
    read: Read


class Retrieved(msgspec.Struct, frozen=True):
    """A candidate for a mention, with its score."""

    anchor: str
    entity: str
    score: float
    """DistMult of anchor, query and entity, over the square root of their width."""
    probability: float
    """Softmax of the scores over all candidates of the mention, returned or not."""
    read: Read | None = None
    """How much of triples and history the model read; less than all where they did not fit its window."""


class Computed(msgspec.Struct, frozen=True):
    """What became of the metrics of ``Compute``, in their order, as the engine's scheduler has it; or the score."""

    outcomes: tuple[object, ...]


Call: TypeAlias = (
    FindSpans
    | IsPersonal
    | GenerateQuestions
    | Answer
    | Classify
    | ScoreText
    | MeasureTexts
    | Embed
    | CountTokens
    | ClassifyTokens
    | ReadAnswer
    | Retrieve
    | Generate
    | Compute
)
Result: TypeAlias = (
    tuple[TextSpan, ...]
    | bool
    | tuple[GeneratedQuestion, ...]
    | Answered
    | Classified
    | TextScored
    | TextLengths
    | Embedded
    | TokenCounts
    | ClassifiedTokens
    | AnswerRead
    | tuple[tuple[Retrieved, ...], ...]
    | tuple[GeneratedSequence, ...]
    | Computed
)


def role_of(call: Call) -> str:
    """The bundle role that answers ``call``."""
    match call:
        case FindSpans() | IsPersonal():
            return "spans"
        case GenerateQuestions():
            return "qg"
        case Answer():
            return "qa"
        case ScoreText() | MeasureTexts():
            return "lm"
        case Generate():
            return "generator"
        case Embed() | CountTokens():
            return "embedder"
        case Retrieve():
            return "retriever"
        case Classify() | ClassifyTokens() | ReadAnswer():
            return call.role
        case Compute():
            return PROCESSES


def shared_text(call: Call) -> str | None:
    """What ``call`` classifies, if another role may do so in the same pass; None for a call that shares none."""
    match call:
        case Classify():
            return call.hypothesis
        case ClassifyTokens():
            return call.text
        case _:
            return None

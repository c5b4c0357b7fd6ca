"""How a metric came to its value: one record per metric, with a type tag by which a JSON reader knows it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from groundwire.runtime.calls import TextSpan

from .base import Record

Reason: TypeAlias = Literal[
    "no_answer",
    "contradiction",
    "mismatch",
    "not_entailed",
    "detected",
    "not_in_knowledge",
    "less_likely",
    "absent_quotation",
    "stitched_quotation",
    "misattributed_quotation",
]
"""Why words count as unsupported; ``REASONS`` says what each means."""
QUOTATION_REASONS: frozenset[Reason] = frozenset({"absent_quotation", "stitched_quotation", "misattributed_quotation"})
"""Reasons why a quotation as a whole is unsupported, whatever its words are."""
REASONS: dict[Reason, str] = {
    "no_answer": "the knowledge does not say",
    "contradiction": "the knowledge says otherwise",
    "mismatch": "the knowledge says something else",
    "not_entailed": "the knowledge does not imply it",
    "detected": "a detector finds no support",
    "not_in_knowledge": "the knowledge does not have the word",
    "less_likely": "the document makes these words less likely",
    "absent_quotation": "the knowledge does not have this quotation",
    "stitched_quotation": "the knowledge has the parts of this quotation in different places",
    "misattributed_quotation": "the knowledge has this quotation from another speaker or source",
}
"""What tables and reports print for a reason."""


SpanType: TypeAlias = Literal["entity", "number", "date", "negation", "relation", "addition", "opinion"]
"""What unsupported words are: a name, an amount, a date or time, a negation, another word with which they say something
else of what the knowledge speaks of (``relation``), something that is added to it, or an opinion stated as a fact."""
Severity: TypeAlias = Literal["low", "medium", "high"]
"""How much unsupported words may mislead. ``high``: the knowledge contradicts an entity, a number, a date or a
negation, or a quotation is made up, put together or another speaker's. ``medium``: it contradicts something else, or
does not have an entity, a number or a date. ``low``: the rest."""
Category: TypeAlias = Literal["contradiction", "fabricated_reference", "unsupported_addition"]
Subcategory: TypeAlias = Literal["numerical", "temporal", "entity", "relational", "claim", "elaboration", "subjective"]
_CONTRADICTIONS: dict[SpanType, Subcategory] = {"number": "numerical", "date": "temporal", "entity": "entity"}
_ADDITIONS: dict[SpanType, Subcategory] = {"addition": "elaboration", "opinion": "subjective"}


class UnsupportedSpan(Record, frozen=True):
    """Words of the response that the knowledge does not support: ``text == response[start:end]``.

    In ``Score.unsupported`` they have a type and a severity.
    """

    text: str
    start: int
    end: int
    reason: Reason
    knowledge_says: str = ""
    """What the knowledge has instead; empty when it has nothing, or the metric does not look."""
    metric: str = ""
    """The metric that gives the reason."""
    metrics: tuple[str, ...] = ()
    """All metrics that doubt these words, in ``Score.unsupported``."""
    type: SpanType | None = None
    """What they are; None in the result of a single metric."""
    knowledge: Literal["contradicts", "silent"] | None = None
    """Whether the knowledge says otherwise, or nothing about them; None in the result of a single metric."""
    severity: Severity | None = None
    """None in the result of a single metric."""

    @property
    def category(self) -> Category | None:
        """The name that LettuceDetect 2 has for what they are; None in the result of a single metric."""
        if self.knowledge is None:
            return None
        if self.knowledge == "contradicts":
            return "contradiction"
        return "fabricated_reference" if self.type == "entity" else "unsupported_addition"

    @property
    def subcategory(self) -> Subcategory | None:
        """LettuceDetect's name within ``category``; None in the result of a single metric."""
        if self.type is None:
            return None
        if self.category == "contradiction":
            return _CONTRADICTIONS.get(self.type, "relational")
        return "entity" if self.type == "entity" else _ADDITIONS.get(self.type, "claim")


class PassageRange(Record, frozen=True):
    """Characters ``start`` to ``end`` of a passage of the knowledge."""

    passage: int
    """Its index."""
    start: int
    end: int


class Comparison(Record, frozen=True):
    """One question of Q² and what came of it."""

    span: TextSpan
    question: str
    rank: int
    """Place in the generator's order, from 0."""
    kept: bool
    discarded: Literal["", "personal", "no_answer_in_response", "other_answer_in_response"] = ""
    """Why the question was not kept."""
    response_answer: str = ""
    """What the reader answers from the response."""
    knowledge_answer: str | None = None
    """What it answers from the knowledge; None when it finds no answer, or for discarded questions."""
    f1: float | None = None
    """Token F1 of the knowledge answer with the span."""
    nli: str | None = None
    """Label of ("question knowledge answer.", "question span."), when it was asked."""
    nli_probabilities: dict[str, float] | None = None
    supported: float | None = None
    """Probability, 0–1, that the knowledge supports "question span.", by the reader (``q2_reader``)."""
    value: float | None = None
    """The question's score, 0–1."""
    answer_status: Literal["answered", "none", "empty"] | None = None
    """``none``: the knowledge has no answer. ``empty``: the reader chose words, but none that are an answer. Both
    score 0. None for discarded questions."""
    evidence: PassageRange | None = None
    """Where the answer is in the knowledge; None without an answer."""


class Q2Explanation(Record, frozen=True, tag="q2"):
    """What Q² saw: the spans it asked about, every question, and the fallback's label when no question was valid."""

    spans: tuple[TextSpan, ...]
    questions: tuple[Comparison, ...]
    fallback: str | None = None
    fallback_probabilities: dict[str, float] | None = None


class ClassifiedSpan(Record, frozen=True):
    """One sentence, or the whole response, and what a classifier says of it."""

    start: int
    end: int
    """Character range in the response."""
    label: str
    probabilities: dict[str, float]
    supported: float
    """Probability, 0–1, that it is consistent."""
    nothing: float = 0.0
    """Probability, 0–1, that it states nothing to check, as far as the classifier says so."""


class NliExplanation(Record, frozen=True, tag="nli"):
    """End-to-end inference: the whole response, then its sentences where they were asked for."""

    response: ClassifiedSpan
    reverse: ClassifiedSpan | None = None
    """The knowledge as hypothesis, where that direction was asked for."""
    sentences: tuple[ClassifiedSpan, ...] = ()


class DetectorExplanation(Record, frozen=True, tag="detector"):
    """What a detector says."""

    decision: Literal["consistent", "inconsistent"]
    """What the label with the highest probability says, as the papers decide."""
    scored: tuple[ClassifiedSpan, ...]
    """What the value depends on: the response, or every sentence."""
    sentences: tuple[ClassifiedSpan, ...] = ()
    """The sentences, where the response was classified as a whole and they were asked for too."""


class VerifiabilityExplanation(Record, frozen=True, tag="verifiability"):
    """Which sentences state something that knowledge could confirm."""

    sentences: tuple[ClassifiedSpan, ...]
    """``supported`` is the probability that the sentence is verifiable."""


class FlaggedToken(Record, frozen=True):
    """A token of the response and the probability that nothing supports it."""

    start: int
    end: int
    probability: float
    begins: bool = False
    """Whether a mention that the token belongs to begins here: label B is more probable than I. False for a classifier
    without these labels."""


class TokenClassifierExplanation(Record, frozen=True, tag="token_classifier"):
    """Every token of the response."""

    tokens: tuple[FlaggedToken, ...]


class ReadWindow(Record, frozen=True):
    """Sentences that the reader labelled in one pass, and what it says of them together."""

    start: int
    end: int
    """Character range in the response."""
    consistent: float
    """Probability, 0–1."""
    verifiable: float
    """Probability, 0–1, that they state something."""
    inference: dict[str, float]
    """Probability of entailment, neutral and contradiction."""


class ReaderExplanation(Record, frozen=True, tag="reader"):
    """What the reader says of a response."""

    windows: tuple[ReadWindow, ...]
    sentences: tuple[ClassifiedSpan, ...]
    tokens: tuple[FlaggedToken, ...]


class FlaggedMention(Record, frozen=True):
    """A name in the response that the triples do not support: ``text == response[start:end]``."""

    text: str
    start: int
    end: int
    probability: float
    """That it is hallucinated: the highest of its tokens, 0–1."""
    entity: str | None = None
    """The node of the graph that bears the name; None without a graph, or when it has no such node."""


class CriticExplanation(Record, frozen=True, tag="critic"):
    """What the critic says: the response is hallucinated if there is a mention."""

    mentions: tuple[FlaggedMention, ...]
    tokens: tuple[FlaggedToken, ...]
    """Every token of the response."""


class AnsweredPhrase(Record, frozen=True):
    """One question of FeQA."""

    span: TextSpan
    question: str
    answer: str
    """From the knowledge; empty when it has none."""
    f1: float


class FeqaExplanation(Record, frozen=True, tag="feqa"):
    """What FeQA asked."""

    phrases: tuple[AnsweredPhrase, ...]


class ContentWord(Record, frozen=True):
    """A word of the response that is neither a stop word nor punctuation: ``text == response[start:end]``."""

    text: str
    start: int
    end: int
    in_knowledge: bool
    """Whether the knowledge has it, whatever the case of its letters."""


class OverlapExplanation(Record, frozen=True, tag="overlap"):
    """Which words response and knowledge share."""

    precision: float
    """Share of the response's content words that the knowledge has, 0–1."""
    f1: float
    """Bag-of-words F1 of the content words, 0–1."""
    words: tuple[ContentWord, ...]
    unsupported: tuple[UnsupportedSpan, ...]
    """The words that the knowledge does not have. A paraphrase has such words too, so the score does not list them."""


class MatchedWord(Record, frozen=True):
    """A word of the response: ``text == response[start:end]``."""

    text: str
    start: int
    end: int
    similarity: float
    """Cosine, -1 to 1, of its tokens with their best matches in the knowledge, on average; not rescaled."""


class BertScoreExplanation(Record, frozen=True, tag="bertscore"):
    """What BERTScore matched."""

    precision: float
    recall: float
    f1: float
    """All three rescaled when there is a baseline."""
    baseline: tuple[float, float, float] | None
    """Precision, recall and F1 that became 0; None when the numbers are plain cosines."""
    words: tuple[MatchedWord, ...]


class PmiToken(Record, frozen=True):
    """A token of the response in its prompt, with its log-probabilities in nats."""

    text: str
    start: int | None
    end: int | None
    """Character range in the response; None for a token that holds the prompt's words alone."""
    with_document: float | None
    without_document: float | None
    """None where no token precedes it, so that it has no prediction."""
    difference: float | None
    """``with_document`` minus ``without_document``; above 0 the knowledge makes the token more likely."""


class PmiExplanation(Record, frozen=True, tag="pmi"):
    """What PMI-Faith compared."""

    tokens: tuple[PmiToken, ...]
    with_document: float
    without_document: float
    """Means over the tokens that count, nats per token; the value is their difference."""
    left_out: tuple[PassageRange, ...] = ()
    """Sentences of the knowledge that the model's window had no room for, in order."""


ValueKind: TypeAlias = Literal[
    "number", "quantity", "money", "percentage", "ordinal", "date", "duration", "age", "time", "weekday",
    "phone", "email", "url", "version", "postcode", "identifier",
    "name", "person", "place", "organisation", "nationality",
]  # fmt: skip
"""What a value is. No title and no word in a ``name`` says what it names."""
ValueOutcome: TypeAlias = Literal["supported", "derived", "contradicted", "absent"]


class StatedValue(Record, frozen=True):
    """A number, date or name of the response: ``text == response[start:end]``."""

    kind: ValueKind
    text: str
    start: int
    end: int
    normalized: str
    """The form in which it is compared: amounts in a base unit, dates as in ISO 8601, names without case."""
    outcome: ValueOutcome
    """``contradicted``: the knowledge has another value in the same role. ``absent``: it has none. ``derived``: it
    follows from other numbers."""
    knowledge_says: str = ""
    """The value of the knowledge that supports or contradicts it, as it is written there; of an absent one the nearest
    of its kind. Empty where there is none."""
    evidence: PassageRange | None = None
    """Where in the knowledge that is."""
    derivation: str = ""
    """How a derived number follows from others: "15 + 12 = 27"."""


class ValuesExplanation(Record, frozen=True, tag="values"):
    """Which values the response states, and which of them the knowledge has."""

    values: tuple[StatedValue, ...]


class CitationCandidate(Record, frozen=True):
    """A sentence of the knowledge that may support a sentence of the response, and what speaks for it; all 0–1."""

    evidence: PassageRange
    text: str
    """The sentence: ``text == knowledge[evidence.passage][evidence.start:evidence.end]``."""
    similarity: float
    """Mean cosine of the response sentence's content words with their best matches in it."""
    overlap: float
    """Share of those words that it has, by weights: words that few sentences of the knowledge have count more."""
    entailment: float
    contradiction: float
    """Probabilities of the inference model; the premise is the first sentence of the passage, then this one."""
    support: float
    """Probability that it supports the sentence of the response."""


CitedItemOutcome: TypeAlias = Literal["supported", "other", "unsupported", "no_item"]
"""What an item that the response cites says of its sentence. ``supported``: it supports it, alone or with the other
items that are cited there. ``other``: it does not, and a passage that is not cited does. ``unsupported``: no passage
does. ``no_item``: the knowledge has no such item."""


class CitedItem(Record, frozen=True):
    """An item of the knowledge that the response itself cites, by a mark such as ``[2]``: ``text ==
    response[start:end]``."""

    text: str
    start: int
    end: int
    passage: int | None
    """Index of the passage; None where the knowledge has no such item."""
    outcome: CitedItemOutcome
    support: float
    """Probability, 0–1, that the passage alone supports the sentence."""


class CitedSentence(Record, frozen=True):
    """A sentence of the response, and the sentences of the knowledge that are nearest to it."""

    start: int
    end: int
    """Character range in the response."""
    candidates: tuple[CitationCandidate, ...]
    """By ``support``, highest first. Those that reach ``CitationOptions.min_support`` are cited."""
    items: tuple[CitedItem, ...] = ()
    """The items that the response cites for it, in order."""
    joint_support: float | None = None
    """Probability, 0–1, that the cited items together support it, where it cites several."""


class CitationsExplanation(Record, frozen=True, tag="citations"):
    """Where the support of each sentence of the response was looked for."""

    sentences: tuple[CitedSentence, ...]
    """Those that have a content word."""
    min_support: float
    """``CitationOptions.min_support`` of the request."""
    citation_recall: float | None = None
    """Share of the sentences, 0–1, that the items which they cite support; None where the response cites no item."""
    citation_precision: float | None = None
    """Share of the cited items, 0–1, that support their sentence, alone or with the others; None likewise."""


QuotationOutcome: TypeAlias = Literal["exact", "normalized", "altered", "stitched", "misattributed", "absent"]
"""What a quotation is. ``exact``: the source has it letter for letter, whatever the kind of its marks and dashes.
``normalized``: with another case or punctuation, or with an ellipsis or words in brackets. ``altered``: with other
words, more or fewer. ``stitched``: put together from places that are apart. ``misattributed``: exact or normalized, and
of another speaker or source than the response names. ``absent``: neither the knowledge nor the history has it."""
FAITHFUL: frozenset[QuotationOutcome] = frozenset({"exact", "normalized"})
"""Outcomes of quotations that say what their source says."""


class QuotedPart(Record, frozen=True):
    """Words of a quotation, and those of the source: ``text == response[start:end]``."""

    text: str
    start: int
    end: int
    knowledge_says: str = ""
    """The words of the source; empty where it has none in their place."""
    evidence: PassageRange | None = None
    """Where in the knowledge they are; None where it has none, and for words of the history."""
    turn: int | None = None
    """Index of the turn of the history that has them, in the place of ``evidence``."""


class QuotedText(Record, frozen=True):
    """A quotation of the response, without its marks: ``text == response[start:end]``."""

    text: str
    start: int
    end: int
    outcome: QuotationOutcome
    speaker: str = ""
    """The speaker or source that the response names; empty where it names none."""
    source_speaker: str = ""
    """The speaker or title that the knowledge has beside the words, where the response names another one."""
    parts: tuple[QuotedPart, ...] = ()
    """Where its words are: one part, or each part that is in a place of its own; none where they are ``absent``."""
    changed: tuple[QuotedPart, ...] = ()
    """Its words that are not those of the source; those of an omission are empty, where it is."""


class QuotationsExplanation(Record, frozen=True, tag="quotations"):
    """What the response quotes."""

    quotations: tuple[QuotedText, ...]
    """In the order of the response."""


Explanation: TypeAlias = (
    Q2Explanation
    | NliExplanation
    | DetectorExplanation
    | VerifiabilityExplanation
    | TokenClassifierExplanation
    | ReaderExplanation
    | CriticExplanation
    | FeqaExplanation
    | OverlapExplanation
    | BertScoreExplanation
    | PmiExplanation
    | ValuesExplanation
    | CitationsExplanation
    | QuotationsExplanation
)

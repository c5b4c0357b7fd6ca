"""Why a response is not corrected: the sentence of the knowledge that contradicts it, and what kept its words out.

Words and values of other sentences are no reason: the price of express delivery does not say why a response about
standard delivery stays. The reader finds the sentence that contradicts; without a reader, the first reason is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groundwire.engine import MetricResult, Request, Score
from groundwire.engine.extend import Failure
from groundwire.engine.schema.explanations import ReaderExplanation
from groundwire.engine.schema.results import SentenceVerdict
from groundwire.metrics import Sentence

from .alternatives import OtherValue
from .choosing import ScoredDraft
from .keeping import list_heads
from .proposals import OF_NOTHING, Proposal, list_values
from .sources import Sources, SourceSentence

MAX_PREMISES = 12
"""Sentences of the knowledge, most similar first, that are read beside a sentence of the response."""
CONTRADICTS = 0.8
"""Probability of a contradiction from which the reader's word is taken, about a sentence with a word in common. To
sentences about something else the reader gives 0.95 now and then."""
NO_DRAFT = (
    "The knowledge has nothing of the same kind to put in the place of the unsupported words, and they cannot be left "
    "out."
)
NO_WORDS = "The knowledge says {known!r}, but no words of that can take the place of {old!r}."
QUOTED = "The knowledge says {known!r}. "
NOT_BETTER = "The metrics doubt every correction as much as the response itself; the first one writes {new!r}."
NOT_BETTER_WITHOUT = "The metrics doubt the response without {old!r} as much as the response itself."
NOT_PLAIN = (
    "The knowledge says {new!r} where the response says {old!r}, but the sentence is not plainly more probable with it."
)


class Inquiry:
    """Asks which sentence of the knowledge contradicts the most doubted sentence of a response."""

    def __init__(self, request: Request, doubted: Sequence[SentenceVerdict], sources: Sources) -> None:
        """Choose the sentences that are read.

        Args:
            request: The response, its knowledge and its history.
            doubted: Sentences of the response that are inconsistent, one or more.
            sources: The knowledge.
        """
        sentence = min(doubted, key=lambda part: part.verdict.probability or 0.0)
        heads = list_heads(sentence.text)
        nearest = sources.list_nearest(sentence.text, MAX_PREMISES)
        self._premises = [source for source in nearest if not heads.isdisjoint(list_heads(source.text))]
        self.requests = [Request(sentence.text, (source.text,), request.history) for source in self._premises]
        """What the reader is asked."""

    def choose(self, results: Iterable[MetricResult | Failure]) -> SourceSentence | None:
        """The sentence that contradicts; None if none plainly does.

        Args:
            results: The reader's results of ``requests``.
        """
        rated = zip(map(_find_contradiction, results), self._premises, strict=True)
        probability, source = max(rated, key=lambda pair: pair[0], default=(0.0, None))
        return source if probability >= CONTRADICTS else None


def _find_contradiction(result: MetricResult | Failure) -> float:
    if isinstance(result, Failure) or not isinstance(result.explanation, ReaderExplanation):
        return 0.0
    return max((window.inference.get("contradiction", 0.0) for window in result.explanation.windows), default=0.0)


def explain_refusal(
    response: str,
    score: Score,
    objections: Sequence[Proposal] = (),
    tried: OtherValue | None = None,
    checked: Sequence[ScoredDraft] = (),
    contradiction: SourceSentence | None = None,
) -> str:
    """Return why a response stays as it is.

    Args:
        response: The response.
        score: Its score.
        objections: Proposals that were not drafted.
        tried: Another value that was tried in the place of a doubted one.
        checked: Drafts, none of which is better.
        contradiction: The sentence of the knowledge that contradicts the response; only reasons that are about its
            words are given.
    """
    if checked:
        edit = checked[0].draft.edits[0]
        old, new = response[edit.start : edit.end], checked[0].draft.response[edit.new_start : edit.new_end]
        reason = (NOT_BETTER if new else NOT_BETTER_WITHOUT).format(old=old, new=new)
        if contradiction is None or contradiction.covers(edit.evidence):
            return reason
        return QUOTED.format(known=contradiction.text) + reason
    reasons = [
        *((item.evidence, item.objection) for item in objections if not item.objects_to_supported),
        *((item.evidence, NOT_PLAIN.format(old=item.old, new=item.new)) for item in (tried,) if item is not None),
        # That the knowledge supports what would be replaced says less than that a value was tried.
        *((item.evidence, item.objection) for item in objections if item.objects_to_supported),
    ]
    about = [text for evidence, text in reasons if contradiction is None or contradiction.covers(evidence)]
    if about:
        return about[0]
    doubted = [part for part in score.sentences if part.verdict.label == "inconsistent"]
    if contradiction is not None:
        ours = min(doubted, key=lambda part: part.verdict.probability or 0.0)
        return NO_WORDS.format(
            known=contradiction.text, old=ours.unsupported[0].text if ours.unsupported else ours.text
        )
    values = [value for part in doubted for value in list_values(score, Sentence(part.text, part.start, part.end))]
    spans = [span for part in doubted for span in part.unsupported if span.knowledge == "contradicts"]
    candidates = [
        *((value.text, value.knowledge_says) for value in values if value.outcome == "contradicted"),
        *((span.text, span.knowledge_says) for span in spans),
    ]
    return next((OF_NOTHING.format(old=old, new=new) for old, new in candidates if new), NO_DRAFT)

"""Which drafts are better than the response, by the verdicts on both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groundwire.engine import Score, Verdict
from groundwire.engine.schema.explanations import ValuesExplanation
from groundwire.engine.schema.results import STOPPED, SentenceVerdict
from groundwire.engine.verdict import find_feature

from .drafts import Draft

MIN_GAIN = 0.05
"""By how much the probability of the changed sentence must rise, at least."""
LOW_TRUST, HIGH_TRUST = 0.5, 0.9
"""A draft with less trust than ``HIGH_TRUST`` has to convince the models, and a draft with less than ``LOW_TRUST`` has
to convince them by more; after it the sentence must be consistent, too."""
MIN_LEARNED, MIN_GUESS_LEARNED = 0.1, 0.4
"""By how much models must then add to the logit of the sentence. Shared words do not count: every edit adds some."""
CONSISTENT = 0.3
"""What it counts, as a probability, that the changed sentence is consistent."""
SAID = 0.1
"""What it counts that it still says as much: "was hosted by Bob Ross", and not "was hosted"."""
TRUST = 0.5
"""What it counts, as a probability, that a draft was trusted before the check."""


class ScoredDraft(NamedTuple):
    """A draft and its score by the metrics that drafts are compared by."""

    draft: Draft
    score: Score


def choose_drafts(before: Score, checked: Iterable[ScoredDraft]) -> list[ScoredDraft]:
    """The best draft of each sentence that has one which is better than the sentence, in the order of the response."""
    best: dict[int, tuple[float, ScoredDraft]] = {}
    for item in checked:
        worth = _rate(before, item)
        start = item.draft.sentence.start
        if worth is not None and (start not in best or worth > best[start][0]):
            best[start] = (worth, item)
    return [item for _, (_, item) in sorted(best.items())]


def is_better(before: Score, after: Score) -> bool:
    """Whether a response with several edits is better than the original: fewer or less doubtful sentences."""
    if not has_verdict(after) or count_wrong_values(after) > count_wrong_values(before):
        return False
    return _sum_doubt(after) <= _sum_doubt(before) - MIN_GAIN


def _rate(before: Score, item: ScoredDraft) -> float | None:
    """How good a draft is; None if it is not better than the response."""
    draft, after = item
    if draft.removes_sentence:
        return 0.0 if is_better(before, after) else None
    if not has_verdict(after) or count_wrong_values(after) > count_wrong_values(before):
        return None
    old = find_sentence(before.sentences, draft.sentence.start)
    new = find_sentence(after.sentences, min(edit.new_start for edit in draft.edits), draft.sentence.start)
    if old is None or new is None or old.verdict.probability is None or new.verdict.probability is None:
        return None
    gain = new.verdict.probability - old.verdict.probability
    if gain < MIN_GAIN or new.verdict.label not in ("consistent", "inconsistent"):
        return None
    learned = sum_model_shares(new.verdict) - sum_model_shares(old.verdict)
    if draft.trust < HIGH_TRUST and learned < MIN_LEARNED:
        return None
    if draft.trust < LOW_TRUST and (learned < MIN_GUESS_LEARNED or new.verdict.label != "consistent"):
        return None
    is_consistent = new.verdict.label == "consistent"
    return gain + TRUST * draft.trust + is_consistent * (CONSISTENT + SAID * (not draft.removes_words))


def sum_model_shares(verdict: Verdict) -> float:
    """What the metrics that ask models have added to the logit of a verdict."""
    shares = verdict.contributions or {}
    return sum(share for name, share in shares.items() if find_feature(name).metric.roles)


def find_sentence(sentences: Sequence[SentenceVerdict], *offsets: int) -> SentenceVerdict | None:
    """The sentence that has one of the characters, the first that one has."""
    matching = (item for offset in offsets for item in sentences if item.start <= offset < item.end)
    return next(matching, None)


def has_verdict(score: Score) -> bool:
    """Whether a score has a verdict and no metric was stopped."""
    return score.verdict.label != "unknown" and all(result.status not in STOPPED for result in score.metrics.values())


def _sum_doubt(score: Score) -> float:
    """The probabilities, added up, that the inconsistent sentences are indeed."""
    return sum(
        1.0 - (part.verdict.probability or 0.0)
        for part in score.sentences
        if part.verdict.label in ("inconsistent", "unknown")
    )


def count_wrong_values(score: Score) -> int:
    """How many values of a response the knowledge does not have."""
    return sum(
        value.outcome != "supported"
        for result in score.metrics.values()
        if isinstance(result.explanation, ValuesExplanation)
        for value in result.explanation.values
    )

"""Other values of the knowledge in the place of a doubted one, where only the verdict can tell which one is meant.

"Seniors pay €61" has the price of adults, and the knowledge has five prices. No rule of words says which is right, so
each is put in the place of the doubted value, in the form that the response gives it, and the verdict reads them all.
One is taken if the sentence is plainly more probable with it than with every other, and if its clause in the knowledge
has more of the words around the doubted value than every clause that has the doubted value itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from groundwire.engine import Score
from groundwire.engine.extend import Range, within
from groundwire.engine.schema.explanations import PassageRange
from groundwire.engine.values import Content, Measure, Name, Value, compare, read_values
from groundwire.metrics import Sentence

from ..wording import Replacement, replace_names
from .choosing import ScoredDraft, count_wrong_values, find_sentence, has_verdict
from .drafts import AS_WRITTEN, Draft, DraftEdit
from .keeping import CONTACTS, Kept, find_clause, list_heads
from .proposals import are_alike, fit, list_values, says_otherwise
from .question import UserQuestion
from .rendering import take_unit
from .sources import Sources, SourceSentence, find_free_parts

IN_SENTENCE = 0.5
"""What a word counts that the sentence has in another clause, of a word in the clause of a value."""
IN_QUESTION = 0.5
"""What a word of the question counts, of a word in the clause of the doubted value."""
MIN_AGREEMENT, MIN_SURPLUS = 1.0, 0.5
"""How many words have to be around a value in the knowledge, at least, and how many more than around the doubted."""
MIN_PROBABILITY, MIN_GAIN = 0.55, 0.15
"""The probability of the sentence with a value, at least, and its gain over the response."""
AGREED, MOST_AGREED = 0.1, 3.0
"""What a word that agrees adds to the probability, and how many words count at most."""
MIN_LEAD, LEADS, MOST_LEAD = 0.04, 0.5, 0.3
"""By how much that sum leads that of every other value, at least, what the lead adds, and how much of it counts."""
MIN_RATE = 0.77
"""All three together, at least. The numbers were chosen on the development twins: ``recipes/research/measured.md``."""


class OtherValue(NamedTuple):
    """Another value in the place of a doubted one."""

    draft: Draft
    old: str
    """The words of the doubted value."""
    new: str
    """The words of this one in the knowledge."""
    content: Content
    agreement: float
    """How many words around the doubted value are around this one in the knowledge."""
    rivalry: float
    """The same of the doubted value itself, at its best place in the knowledge; below 0 where it has none."""

    @property
    def start(self) -> int:
        """Where the doubted value starts."""
        return self.draft.edits[0].start

    @property
    def evidence(self) -> PassageRange | None:
        """Where this one is in the knowledge."""
        return self.draft.edits[0].evidence


class ScoredAlternative(NamedTuple):
    """An alternative and its score by the metrics that drafts are compared by."""

    alternative: OtherValue
    score: Score


def list_alternatives(
    response: str,
    sentence: Sentence,
    score: Score,
    sources: Sources,
    untouched: Kept,
    question: UserQuestion,
) -> Iterator[list[OtherValue]]:
    """Yield the alternatives for each doubted value of a sentence, those that agree most first.

    Args:
        response: The text that has the sentence.
        sentence: A sentence that is inconsistent.
        score: The score of the response.
        sources: The knowledge.
        untouched: What is left as it is.
        question: What the response answers.
    """
    wrong = [value for value in list_values(score, sentence) if value.outcome in ("contradicted", "absent")]
    doubted: list[Range] = [*wrong, *within(score.unsupported, sentence.start, sentence.end)]
    pairs = [(source, theirs) for source in sources.list_sentences() for theirs in source.parts]
    for ours in find_free_parts(response):
        if not sentence.start <= ours.start < sentence.end or not _overlaps(ours, doubted):
            continue
        if not _is_exchangeable(ours) or untouched.is_fixed(ours.start, ours.end) or untouched.is_computed(ours):
            continue
        around = _Around.read(response, sentence, ours, question)
        by_response: dict[str, OtherValue] = {}
        rivalry = max(
            (around.count_shared(*pair) for pair in pairs if _is_value_of(pair[1].content, ours.content)),
            default=-1.0,
        )
        for source, theirs in pairs:
            draft = _draft(response, sentence, ours, source, theirs)
            if draft is None or _is_objected(question, sentence, draft, source):
                continue
            agreement = around.count_shared(source, theirs)
            if draft.response not in by_response or agreement > by_response[draft.response].agreement:
                old, new = response[ours.start : ours.end], source.text[theirs.start : theirs.end]
                by_response[draft.response] = OtherValue(draft, old, new, theirs.content, agreement, rivalry)
        if by_response:
            yield sorted(by_response.values(), key=lambda item: -item.agreement)


class _Around(NamedTuple):
    """The words around a value of a response: what it is about."""

    clause: set[str]
    sentence: set[str]
    question: set[str]

    @classmethod
    def read(cls, response: str, sentence: Sentence, value: Value, question: UserQuestion) -> _Around:
        """The words of its clause, of the rest of its sentence, and those that only the question has."""
        part = find_clause(response, value.start, value.end)
        clause = list_heads(response[part.start : value.start], response[value.end : part.end])
        rest = list_heads(response[sentence.start : value.start], response[value.end : sentence.end]) - clause
        return cls(clause, rest, list_heads(question.text) - clause - rest)

    def count_shared(self, source: SourceSentence, value: Value) -> float:
        """How many of them are around a value of the knowledge, those of other clauses with less weight."""
        part = find_clause(source.text, value.start, value.end)
        near = list_heads(source.text[part.start : value.start], source.text[value.end : part.end])
        far = list_heads(source.text[: value.start], source.text[value.end :]) - near
        weighted = ((self.clause, 1.0), (self.sentence, IN_SENTENCE), (self.question, IN_QUESTION))
        return sum(weight * (len(words & near) + IN_SENTENCE * len(words & far)) for words, weight in weighted)


def _is_exchangeable(value: Value) -> bool:
    return (value.is_amount or value.kind == "weekday") and value.kind not in ("ordinal", *CONTACTS)


def _draft(response: str, sentence: Sentence, ours: Value, source: SourceSentence, theirs: Value) -> Draft | None:
    """The response with a value of the knowledge, in the form of its own; None if it is not read as that value."""
    content = take_unit(ours.content, theirs.content)
    takes_unit = content != theirs.content
    if takes_unit and any(_is_measured_alike(ours, part) for part in source.parts):
        return None  # the sentence writes the unit where it is meant: "at least 17, and weigh 50 kg"
    if says_otherwise(response[sentence.start : ours.start], source, theirs):
        return None
    if not are_alike(ours, theirs) or type(content) is not type(ours.content) or _is_value_of(content, ours.content):
        return None
    if isinstance(content, Measure) and not _is_measured_alike(ours, theirs._replace(content=content)):
        return None
    proposal = fit(response, ours, source, theirs, "value", MIN_PROBABILITY)
    if takes_unit and not proposal.is_rendered:
        return None
    text, (where,) = replace_names(response, [Replacement(proposal.start, proposal.end, proposal.text, AS_WRITTEN)])
    written = next(
        (part for part in read_values(text) if part.start < where.new_end and where.new_start < part.end), None
    )
    if written is None or text == response or not _is_value_of(content, written.content):
        return None
    edit = DraftEdit(*where, "replace", "value", proposal.evidence)
    return Draft(text, (edit,), sentence, MIN_PROBABILITY)


def _is_measured_alike(ours: Value, theirs: Value) -> bool:
    """Whether both are amounts of one measure, and count the same where both say what."""
    left, right = ours.content, theirs.content
    if not (isinstance(left, Measure) and isinstance(right, Measure)) or left.measure != right.measure:
        return False
    return not (left.nouns and right.nouns) or not left.nouns.isdisjoint(right.nouns)


def _is_value_of(source_content: Content, stated: Content) -> bool:
    """Whether a value of the knowledge is the one that is stated."""
    is_alike = not isinstance(source_content, Name) and type(source_content) is type(stated)
    return is_alike and compare(stated, source_content) == "supports"


def _is_objected(question: UserQuestion, sentence: Sentence, draft: Draft, source: SourceSentence) -> bool:
    (edit,) = draft.edits
    new = draft.response[edit.new_start : edit.new_end]
    return bool(question.find_objection(sentence, edit.start, edit.end, new, source))


def choose_alternatives(before: Score, checked: Sequence[ScoredAlternative]) -> list[ScoredDraft]:
    """The alternative of each sentence that is plainly the most probable, in the order of the response."""
    by_sentence: dict[int, list[ScoredAlternative]] = {}
    for item in checked:
        by_sentence.setdefault(item.alternative.draft.sentence.start, []).append(item)
    best = (_choose(before, items) for _, items in sorted(by_sentence.items()))
    return [ScoredDraft(item.alternative.draft, item.score) for item in best if item is not None]


def find_most_probable(before: Score, checked: Sequence[ScoredAlternative]) -> OtherValue | None:
    """The alternative with which its sentence is most probable; None without one."""
    best = max(checked, key=lambda item: _find_probability(before, item), default=None)
    return None if best is None else best.alternative


def _choose(before: Score, items: Sequence[ScoredAlternative]) -> ScoredAlternative | None:
    """The alternative of a sentence that is right; None if none is plainly."""
    probabilities = {item.alternative.draft.response: _find_probability(before, item) for item in items}

    def rate(item: ScoredAlternative) -> float:
        return probabilities[item.alternative.draft.response] + AGREED * min(item.alternative.agreement, MOST_AGREED)

    best, *others = sorted(items, key=rate, reverse=True)
    draft, content = best.alternative.draft, best.alternative.content
    old = find_sentence(before.sentences, draft.sentence.start)
    probability = probabilities[draft.response]
    gain = probability - (1.0 if old is None or old.verdict.probability is None else old.verdict.probability)
    rivals = (
        rate(item)
        for item in others
        if item.alternative.start != best.alternative.start or not _is_value_of(content, item.alternative.content)
    )
    lead = min(rate(best) - max(rivals, default=0.0), MOST_LEAD)
    alternative = best.alternative
    is_agreed = alternative.agreement >= max(MIN_AGREEMENT, alternative.rivalry + MIN_SURPLUS)
    is_probable = probability >= MIN_PROBABILITY and gain >= MIN_GAIN and lead >= MIN_LEAD
    return best if is_agreed and is_probable and rate(best) + LEADS * lead >= MIN_RATE else None


def _find_probability(before: Score, item: ScoredAlternative) -> float:
    """How probable the sentence is with an alternative; 0 without a verdict, or with more wrong values than before."""
    draft = item.alternative.draft
    sentence = find_sentence(item.score.sentences, draft.edits[0].new_start, draft.sentence.start)
    if not has_verdict(item.score) or count_wrong_values(item.score) > count_wrong_values(before):
        return 0.0
    return 0.0 if sentence is None else sentence.verdict.probability or 0.0


def _overlaps(item: Range, others: Iterable[Range]) -> bool:
    return any(other.start < item.end and item.start < other.end for other in others)

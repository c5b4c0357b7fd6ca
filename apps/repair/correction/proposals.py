"""What could stand in the place of unsupported words: values, answers, words and candidates of the knowledge.

A proposal takes its words from one sentence of the knowledge, character by character; what a model says is used to find
them, and is never written into a response.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import takewhile
from typing import NamedTuple

from groundwire.engine import Score, UnsupportedSpan
from groundwire.engine.extend import WORD, Range, within, words
from groundwire.engine.schema.explanations import (
    Comparison,
    PassageRange,
    Q2Explanation,
    StatedValue,
    ValuesExplanation,
)
from groundwire.engine.values import MONTHS, UNITS, Date, Measure, Name, Value, compare, stem
from groundwire.metrics import Sentence
from groundwire.runtime.texts.characters import is_letters

from ..records import EditSource
from .alignment import align_words
from .keeping import CONTACTS, Kept, find_clause, list_heads
from .question import UserQuestion
from .rendering import render
from .sources import Sources, SourceSentence, find_free_parts
from .subject import exchanges_subject, find_subject_change

# Chosen by eye, on development pairs, down to COVERED.
VALUE, LIKELY_VALUE, WORDING, ANSWER, CANDIDATE = 1.0, 0.7, 0.8, 0.7, 0.3
"""How far a proposal is trusted before it is checked, 0–1, by its source. ``LIKELY_VALUE``: a name, or a number or date
beside other words than in the response."""
NEXT_SENTENCE = 0.05
"""How much less the words of the next sentence are trusted."""
AGREEMENT = 0.3
"""How much more a proposal of two sources is trusted."""
SIMILAR = 0.8
"""From which share of common letters two words are the same, spelt or inflected differently."""
NEIGHBOURHOOD = 60
"""Characters before or after a value in which its neighbour is looked for."""
ANSWERED_WRONG = 0.5
"""Score of a question of Q² below which its answers differ."""
_REACHING = frozenset(
    {"call", "write", "email", "mail", "phone", "ring", "contact", "reach", "visit", "see", "send", "go", "us"}
    | {"number", "address", "link", "page"}
)
"""Words of a sentence, as ``list_heads`` gives them, that do not tell whose address or phone number it has."""
ELSEWHERE = 0.5
"""What a word counts that a value's sentence has in another clause, of a word in the value's own clause."""
MOSTLY = 2 / 3
"""Share of the words of a clause, at least, that the knowledge's clause has if both are about the same."""
SAME_UNIT = 0.25
"""What an equal unit counts, in words: it only decides between values that share as many."""
KEPT = "The knowledge says {new!r} where the response says {old!r}, but {reason}."
HAS_BOTH = (
    "The knowledge says {new!r} and {old!r}, and it is not plain that the response means what it says {new!r} about."
)
HAS_IT = "The knowledge says {new!r} where the response says {old!r}, but the response says {new!r} elsewhere, too."
IN_DIALOGUE = "The knowledge says {new!r} where the response says {old!r}, but the dialogue has {old!r}, too."
OTHER_KIND = "The knowledge says {new!r} where the response says {old!r}, but that is a value of another kind."
OTHER_CLAUSE = "The knowledge says {new!r} where the response says {old!r}, but about something else."
OTHER_SUBJECT = "The knowledge says it of {new!r}, not of {old!r}; what a response speaks of is not exchanged."
OF_NOTHING = (
    "The knowledge says {new!r}, but no word around it says that it is about what the response gives as {old!r}."
)
AMBIGUOUS = (
    "The knowledge says {new!r} where the response says {old!r}, but {rival!r} is as near to what the response speaks "
    "of."
)
FRAME = 4
"""Equal words next to a value and next to another, from which both are in one place of one statement."""
COVERED = 0.5
"""Share of the characters of a span, or an answer, from which the value in it is what it is about."""
_DETERMINER = re.compile(r"(an?|the)\s+", re.IGNORECASE)
_BEFORE = re.compile(r"(?<!\w)(an?|the)\s+$", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")
_MONTH = re.compile(rf"\b(?:{'|'.join(month.capitalize() for month in MONTHS if len(month) > 2)})\b")
_DAY = re.compile(r"(?<!\d)\d{1,2}(?!\d)")
_TRAILING_YEAR = re.compile(r",?\s*[12]\d{3}$")
_UNIT = re.compile(r"\s*([^\W\d_]+|[°%])$")
_NEXT_WORD = re.compile(r"\s+([^\W\d_]+)")


class Proposal(NamedTuple):
    """Words of the knowledge for characters ``start`` to ``end`` of a response."""

    start: int
    end: int
    text: str
    source: EditSource
    weight: float
    """How far it is trusted before it is checked, 0–1."""
    evidence: PassageRange
    sentence: SourceSentence
    """The sentence that the words are from."""
    objection: str = ""
    """Why it is not drafted; empty if it is."""
    objects_to_supported: bool = False
    """Whether the objection is that the knowledge supports the words that would be replaced."""
    is_rendered: bool = False
    """Whether it is a value in the form of the response, and not in the words of the knowledge."""


def propose(
    response: str,
    sentence: Sentence,
    score: Score,
    sources: Sources,
    untouched: Kept | None = None,
    question: UserQuestion | None = None,
) -> list[Proposal]:
    """Proposals for the unsupported words of a sentence of ``response``, the most trusted first.

    A value that the knowledge supports, in other words perhaps, is left as it is, and so is what is only spelt
    differently, and what is ``untouched``. What ``question`` asks about has an objection.
    """
    untouched = Kept(response, sources.passages) if untouched is None else untouched
    question = UserQuestion(response) if question is None else question
    doubted = _Doubted(
        response,
        sentence,
        _shift(find_free_parts(sentence.text), sentence.start),
        [span for span in score.unsupported if sentence.start <= span.start < sentence.end],
    )
    nearest = sources.find_nearest(sentence.text)
    values = list(list_values(score, sentence))
    supported = [value for value in values if value.outcome == "supported"]
    proposals = [
        *_propose_values(doubted, values, sources),
        *_propose_answers(doubted, score, sources),
        *_propose_wordings(doubted, nearest),
        *_propose_candidates(doubted, nearest, untouched),
    ]
    best: dict[tuple[int, int, str], Proposal] = {}
    for proposal in proposals:
        if is_similar(response[proposal.start : proposal.end], proposal.text):
            continue
        old, new = _name_both(doubted, proposal)
        contradicted = _is_contradicted(proposal, values)
        plain = _is_plain(doubted, proposal, untouched, contradicted=contradicted)
        keeps_supported = _overlaps(proposal, supported) and not _fits_better(doubted, proposal, sources)
        if keeps_supported:
            objection = HAS_BOTH.format(old=old, new=new)
        elif (change := find_subject_change(response, *proposal[:3])) and exchanges_subject(change, untouched):
            objection = OTHER_SUBJECT.format(old=old, new=new)
        elif _is_about_other(doubted, proposal, untouched):
            objection = OTHER_CLAUSE.format(old=old, new=new)
        else:
            objection = question.find_objection(
                sentence, proposal.start, proposal.end, proposal.text, proposal.sentence
            ) or _find_objection(doubted, proposal, sources, untouched, plain=plain, contradicted=contradicted)
        weight = max(proposal.weight, VALUE) if plain else proposal.weight
        proposal = proposal._replace(weight=weight, objection=objection, objects_to_supported=keeps_supported)
        key = (proposal.start, proposal.end, proposal.text.casefold())
        earlier = best.get(key, proposal)
        weight = max(earlier.weight, proposal.weight)
        # What two sources propose is trusted more than what one does.
        weight = weight if earlier is proposal or earlier.objection else min(1.0, weight + AGREEMENT)
        chosen = min(earlier, proposal, key=lambda item: (bool(item.objection), -item.weight))
        best[key] = chosen._replace(weight=weight)
    return sorted(best.values(), key=lambda proposal: (-proposal.weight, proposal.start))


def _is_about_other(doubted: _Doubted, proposal: Proposal, untouched: Kept) -> bool:
    """Whether the sentence of a proposal says the same of another subject than the clause of the response."""
    clause = find_clause(doubted.response, proposal.start, proposal.end)
    for difference in align_words(doubted.sentence.text, proposal.sentence.text):
        start, end = doubted.sentence.start + difference.start, doubted.sentence.start + difference.end
        if clause.start <= start < clause.end and not difference.negates:
            change = find_subject_change(doubted.response, start, end, difference.text)
            if change and exchanges_subject(change, untouched) and (change.is_name or change.qualifies):
                return True
    return False


def _find_objection(
    doubted: _Doubted, proposal: Proposal, sources: Sources, untouched: Kept, *, plain: bool, contradicted: bool
) -> str:
    """Why the words of a proposal may not stand in the response, whatever was asked; empty if they may."""
    words_of = dict(zip(("old", "new"), _name_both(doubted, proposal), strict=True))
    reason = untouched.find_reason(proposal.start, proposal.end, contradicted=contradicted)
    if untouched.touches_code(proposal.start, proposal.end):
        return KEPT.format(**words_of, reason=reason)
    if untouched.is_in_dialogue(proposal.start, proposal.end):
        return IN_DIALOGUE.format(**words_of)
    ours = _choose_part(doubted.parts, proposal.start, proposal.end)
    is_contact = ours is not None and ours.kind in CONTACTS  # "call the Leeds shop on" frames another shop's number
    if not is_contact and _is_framed(doubted.sentence, proposal, untouched) and not untouched.is_asked_with_amounts:
        return ""
    difference = _compare_values(doubted, proposal, sources).format(**words_of)
    return difference or ("" if plain or not reason else KEPT.format(**words_of, reason=reason))


def _name_both(doubted: _Doubted, proposal: Proposal) -> tuple[str, str]:
    """The words that are replaced and the words of the knowledge, as a reader finds them: with their unit."""
    source, start = proposal.sentence, proposal.evidence.start - proposal.sentence.start
    ours = _choose_part(doubted.parts, proposal.start, proposal.end)
    theirs = _choose_part(source.parts, start, proposal.evidence.end - source.start)
    if not proposal.is_rendered or ours is None or theirs is None:
        return doubted.response[proposal.start : proposal.end], proposal.text
    return doubted.response[ours.start : ours.end], source.text[theirs.start : theirs.end]


def _is_framed(sentence: Sentence, proposal: Proposal, untouched: Kept) -> bool:
    """Whether the knowledge has the same words next to it, ``FRAME`` of them on both sides together.

    And not, beyond them, a word of something else in the knowledge: "a [return] ticket to Bath costs".
    """
    source, known_range = proposal.sentence.text, proposal.evidence
    first, last = proposal.start - sentence.start, proposal.end - sentence.start
    start, end = known_range.start - proposal.sentence.start, known_range.end - proposal.sentence.start
    before = _list_words(sentence.text[:first])[::-1], _list_words(source[:start])[::-1]
    after = _list_words(sentence.text[last:]), _list_words(source[end:])
    equal, beyond = 0, ""
    for ours, theirs in (before, after):
        count = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False)))
        equal += count
        beyond += " ".join(ours[count : count + 1]) + " "
    return equal >= FRAME and (list_heads(beyond) - list_heads(source)).isdisjoint(untouched.known_heads)


def _is_contradicted(proposal: Proposal, values: Iterable[StatedValue]) -> bool:
    """Whether the value of a proposal contradicts the value in its place, by the rules of values."""
    return any(
        value.outcome == "contradicted"
        and value.evidence is not None
        and value.evidence.passage == proposal.evidence.passage
        and _overlaps(value.evidence, [proposal.evidence])
        for value in values
        if _overlaps(value, [proposal])
    )


def _is_plain(doubted: _Doubted, proposal: Proposal, untouched: Kept, *, contradicted: bool) -> bool:
    """Whether a clause of the knowledge says what the response's says, with the value of a proposal."""
    source, start = proposal.sentence, proposal.evidence.start - proposal.sentence.start
    ours = _choose_part(doubted.parts, proposal.start, proposal.end)
    theirs = _choose_part(source.parts, start, proposal.evidence.end - source.start)
    if ours is None or theirs is None or isinstance(ours.content, Name):
        return False
    return untouched.is_plain(ours, source, theirs, contradicted=contradicted)


def _list_words(text: str) -> list[str]:
    return [match[0].lower() for match in WORD.finditer(text)]


def _compare_values(doubted: _Doubted, proposal: Proposal, sources: Sources) -> str:
    """Why a number, time, date or address is not of what the response speaks of, or the response has it already.

    Empty if neither is so, and for other words.
    """
    ours = _choose_part(doubted.parts, proposal.start, proposal.end)
    if ours is None or isinstance(ours.content, Name):
        return ""
    source, start = proposal.sentence, proposal.evidence.start - proposal.sentence.start
    theirs = _choose_part(source.parts, start, proposal.evidence.end - source.start)
    if theirs is None or isinstance(theirs.content, Name):
        return OTHER_KIND
    mine, other = ours.content, theirs.content
    if isinstance(mine, Measure) and isinstance(other, Measure) and mine.measure != other.measure:
        return OTHER_KIND
    if _has_value(doubted.response, theirs, ours):
        return HAS_IT
    if isinstance(mine, Date) and says_otherwise(doubted.response[doubted.sentence.start : ours.start], source, theirs):
        return OTHER_CLAUSE
    if ours.kind in CONTACTS:
        return _compare_contacts(doubted, ours, sources, source, theirs)
    return _find_rival(doubted.response, ours, sources, source, theirs)


def _compare_contacts(doubted: _Doubted, ours: Value, sources: Sources, source: SourceSentence, theirs: Value) -> str:
    """Why an address or a phone number of the knowledge may be another one's; empty if it is whose the response means.

    The number of another shop differs in a digit, so nothing is taken for written wrongly: every word of the response's
    sentence, and of the name in its address, has to be in the sentence of the knowledge, and at least one is; and in no
    sentence with another address or number of the kind.
    """
    response, sentence = doubted.response, doubted.sentence
    around = response[sentence.start : ours.start], response[ours.end : sentence.end]
    heads = list_heads(*around, _name_contact(response[ours.start : ours.end])) - _REACHING
    owners = _list_owners(source, theirs)
    if heads.isdisjoint(owners):
        return OF_NOTHING
    if not heads <= owners:
        return OTHER_CLAUSE
    rivals = (
        other.text[part.start : part.end]
        for other in sources.list_sentences()
        for part in other.parts
        if part.kind == ours.kind and part.content != theirs.content and heads <= _list_owners(other, part)
    )
    return next((AMBIGUOUS.replace("{rival!r}", repr(rival)) for rival in rivals), "")


def _list_owners(source: SourceSentence, contact: Value) -> set[str]:
    """The words of a sentence that say whose an address or a phone number in it is."""
    name = _name_contact(source.text[contact.start : contact.end])
    return list_heads(source.text[: contact.start], source.text[contact.end :], name)


def _name_contact(address: str) -> str:
    """The words of an address that say whose it is: before the @, or after the host.

    >>> _name_contact("help@shop.example"), _name_contact("https://shop.example/returns/new")
    ('help', 'returns/new')
    """
    if "@" in address:
        return address.partition("@")[0]
    return address.partition("://")[2].partition("/")[2]


def _find_rival(response: str, ours: Value, sources: Sources, source: SourceSentence, theirs: Value) -> str:
    """Why another value of the knowledge fits as well, or this one does not; empty if this one alone fits.

    It fits alone if its clause shares more words with the clause of ``ours`` than the clause of any other value that is
    like it. If the knowledge has no other, one word of its sentence is enough.
    """
    clause = find_clause(response, ours.start, ours.end)
    heads = list_heads(response[clause.start : ours.start], response[ours.end : clause.end])
    rivals = [
        (sentence, part)
        for sentence in sources.list_sentences()
        for part in sentence.parts
        if are_alike(ours, part) and compare(theirs.content, part.content) == "differs"
    ]
    if not rivals:
        return OF_NOTHING if heads.isdisjoint(list_heads(source.text)) else ""
    shared = _count_shared(heads, ours, source, theirs)
    if shared < 1:
        return OF_NOTHING
    nearest = max(rivals, key=lambda rival: _count_shared(heads, ours, *rival))
    if shared > _count_shared(heads, ours, *nearest):
        return ""
    return AMBIGUOUS.replace("{rival!r}", repr(nearest[0].text[nearest[1].start : nearest[1].end]))


def _fits_better(doubted: _Doubted, proposal: Proposal, sources: Sources) -> bool:
    """Whether the sentence of another value says what the response says, and none with the response's own value.

    The response's value is in the knowledge, but about something else: most wrong values of models that have read it
    are so. Two words or more of the response's clause, two of three of them, have to be in the sentence.
    """
    ours = _choose_part(doubted.parts, proposal.start, proposal.end)
    source, start = proposal.sentence, proposal.evidence.start - proposal.sentence.start
    theirs = _choose_part(source.parts, start, proposal.evidence.end - source.start)
    if ours is None or theirs is None or not ours.is_amount or not _overlaps(ours, doubted.doubts):
        return False
    if ours.kind != theirs.kind or any(getattr(part.content, "span", None) for part in (ours, theirs)):
        return False
    clause = find_clause(doubted.response, ours.start, ours.end)
    heads = list_heads(doubted.response[clause.start : ours.start], doubted.response[ours.end : clause.end])
    if len(heads & list_heads(source.text)) < max(2, MOSTLY * len(heads)):
        return False
    scores = (
        _count_shared(heads, ours, sentence, part)
        for sentence in sources.list_sentences()
        for part in sentence.parts
        if are_alike(ours, part) and compare(ours.content, part.content) == "supports"
    )
    return _count_shared(heads, ours, source, theirs) >= max(scores, default=0.0) + 1


def _count_shared(heads: set[str], ours: Value, source: SourceSentence, theirs: Value) -> float:
    """How many of the words ``heads`` the clause of a value has, and with less weight its sentence."""
    clause = find_clause(source.text, theirs.start, theirs.end)
    inside = heads & list_heads(clause.text)
    outside = heads & list_heads(source.text[: clause.start], source.text[clause.end :]) - inside
    mine, other = ours.content, theirs.content
    is_same_unit = isinstance(mine, Measure) and isinstance(other, Measure) and mine.factor == other.factor
    return len(inside) + ELSEWHERE * len(outside) + SAME_UNIT * is_same_unit


def says_otherwise(before: str, source: SourceSentence, theirs: Value) -> bool:
    """Whether the last content word before a value is in another clause of the source than the value there.

    "Born in 1968" says nothing of "Born in Michigan, she moved in 1978".
    """
    word = _find_content(before, -1)
    clause = find_clause(source.text, theirs.start, theirs.end)
    around = f"{source.text[clause.start : theirs.start]} {source.text[theirs.end : clause.end]}"
    inside, everywhere = ({stem(item.lower) for item in words(text)} for text in (around, source.text))
    is_said = any(item.content for item in words(around))
    return word is not None and is_said and word in everywhere - inside


def _has_value(response: str, theirs: Value, ours: Value) -> bool:
    """Whether a response has a value elsewhere."""
    return any(
        part.start != ours.start
        and not isinstance(part.content, Name)
        and compare(part.content, theirs.content) == "supports"
        for part in find_free_parts(response)
    )


def is_similar(old: str, new: str) -> bool:
    """Whether both are the same word, spelt or inflected differently.

    >>> is_similar("Championship", "championships"), is_similar("has not", "has"), is_similar("1903", "2003")
    (True, False, False)
    >>> is_similar("help@shop.example", "helps@shop.example")
    False
    """
    old, new = old.casefold(), new.casefold()
    if old == new:
        return True
    if not all(is_letters(character) or character in "-'’" for character in old + new):
        return False
    return SequenceMatcher(None, old, new, autojunk=False).ratio() >= SIMILAR


class _Doubted(NamedTuple):
    """A sentence of a response that is inconsistent."""

    response: str
    sentence: Sentence
    parts: list[Value]
    """The numbers, dates and names that it states, by their place in the response."""
    doubts: list[UnsupportedSpan]


def list_values(score: Score, sentence: Sentence) -> Iterator[StatedValue]:
    """The values that a sentence states, with what the knowledge says about them."""
    for result in score.metrics.values():
        if isinstance(result.explanation, ValuesExplanation):
            yield from within(result.explanation.values, sentence.start, sentence.end)


def _propose_values(doubted: _Doubted, values: Iterable[StatedValue], sources: Sources) -> Iterator[Proposal]:
    """The values of the knowledge that contradict values of the sentence."""
    for value in values:
        source = None if value.evidence is None else sources.find_around(value.evidence)
        if value.outcome != "contradicted" or value.evidence is None or source is None:
            continue
        bounds = (value.evidence.start - source.start, value.evidence.end - source.start)
        ours, theirs = _choose_part(doubted.parts, value.start, value.end), _choose_part(source.parts, *bounds)
        if ours is None or theirs is None or not are_alike(ours, theirs):
            continue
        if value.kind == "nationality" and not _share_neighbour(doubted.response, ours, source, theirs):
            continue  # "a French song" and "Indians", say
        is_sure = ours.type != "entity" and (
            value.kind not in ("number", "date", "ordinal") or _share_neighbour(doubted.response, ours, source, theirs)
        )
        weight = VALUE if is_sure else LIKELY_VALUE
        ours, theirs = ours._replace(start=value.start, end=value.end), theirs._replace(start=bounds[0], end=bounds[1])
        yield fit(doubted.response, ours, source, theirs, "value", weight)


def _propose_answers(doubted: _Doubted, score: Score, sources: Sources) -> Iterator[Proposal]:
    """The answers of the knowledge to questions about unsupported words, if they are of the same type."""
    for question in _list_failed(score, doubted):
        span, evidence = question.span, question.evidence
        source = None if evidence is None else sources.find_around(evidence)
        if source is None or evidence is None:
            continue
        bounds = (evidence.start - source.start, evidence.end - source.start)
        ours, theirs = _choose_part(doubted.parts, span.start, span.end), _choose_part(source.parts, *bounds)
        if ours is not None and theirs is not None and are_alike(ours, theirs):
            yield fit(doubted.response, ours, source, theirs, "answer", ANSWER)


def _list_failed(score: Score, doubted: _Doubted) -> Iterator[Comparison]:
    """The questions about unsupported words of the sentence to which the knowledge gives another answer."""
    start, end = doubted.sentence.start, doubted.sentence.end
    for result in score.metrics.values():
        if not isinstance(result.explanation, Q2Explanation):
            continue
        for question in result.explanation.questions:
            wrong = question.value is not None and question.value < ANSWERED_WRONG
            inside = start <= question.span.start and question.span.end <= end
            if wrong and inside and _overlaps(question.span, doubted.doubts):
                yield question


def _propose_wordings(doubted: _Doubted, nearest: Iterable[SourceSentence]) -> Iterator[Proposal]:
    """What an otherwise similar sentence says where the response has unsupported words, or a negation more or less.

    A value is put in the place of a value of its type, else one word or two in the place of as many.
    """
    sentence = doubted.sentence
    for rank, source in enumerate(nearest):
        for difference in align_words(sentence.text, source.text):
            ours = (sentence.start + difference.start, sentence.start + difference.end)
            theirs = (difference.known_start, difference.known_end)
            mine, other = _choose_part(doubted.parts, *ours), _choose_part(source.parts, *theirs)
            evidence = source.cite(*theirs)
            weight = WORDING * difference.trust - rank * NEXT_SENTENCE
            text = source.write(*theirs)
            if difference.negates:
                yield Proposal(*ours, text, "wording", weight, evidence, source)
            elif not any(span.start < ours[1] and ours[0] < span.end for span in doubted.doubts):
                continue
            elif mine is not None and other is not None:
                if are_alike(mine, other):
                    yield fit(doubted.response, mine, source, other, "wording", weight)
            elif mine is other and difference.is_plain:
                yield Proposal(*ours, text, "wording", weight, evidence, source)


def _propose_candidates(doubted: _Doubted, nearest: Iterable[SourceSentence], untouched: Kept) -> Iterator[Proposal]:
    """For an unsupported value, the only one of a similar sentence that is of its type and not in the response.

    Among several, the only one whose clause says what the clause of the response says.
    """
    stated = doubted.sentence.text.casefold()
    for ours in doubted.parts:
        if not _overlaps(ours, doubted.doubts) or _is_common(doubted.response, ours):
            continue
        for rank, source in enumerate(nearest):
            others = [
                theirs
                for theirs in source.parts
                if are_alike(ours, theirs)
                and source.text[theirs.start : theirs.end].casefold() not in stated
                and not _is_common(source.text, theirs)
                and not _is_mentioned(ours, source)
                and not _has_other_role(ours, theirs, source)
                and (ours.kind != "nationality" or _share_neighbour(doubted.response, ours, source, theirs))
            ]
            others = [theirs for theirs in others if theirs.kind == ours.kind] or others
            if len(others) > 1 and not isinstance(ours.content, Name):
                others = [theirs for theirs in others if untouched.is_plain(ours, source, theirs, contradicted=False)]
            if len(others) == 1:
                yield fit(doubted.response, ours, source, others[0], "candidate", CANDIDATE - rank * NEXT_SENTENCE)


def _is_mentioned(ours: Value, source: SourceSentence) -> bool:
    """Whether a sentence of the knowledge has a word of a name of the response: it may speak of the same one."""
    if not isinstance(ours.content, Name):
        return False
    return any(stem(word.lower) in map(stem, ours.content.words) for word in words(source.text))


def _has_other_role(ours: Value, theirs: Value, source: SourceSentence) -> bool:
    """Whether a sentence says of a name something else than the response, and what the response says of another.

    "Opened by the Mayor" is not corrected by "designed by Ove Arup and opened by the Queen".
    """
    if not (isinstance(ours.content, Name) and isinstance(theirs.content, Name)):
        return False
    (preposition, word), (known_preposition, known_word) = ours.content.role, theirs.content.role
    is_other = preposition == known_preposition != "" and word != known_word != ""
    return is_other and any(stem(item.lower) == word for item in words(source.text))


def _is_common(text: str, part: Value) -> bool:
    """Whether a name follows "a" or "an", as a common noun with a capital does: "works as a Priest"."""
    before = _BEFORE.search(text, 0, part.start)
    article = _leading_determiner(text[part.start : part.end]) or ("" if before is None else before[0])
    return part.type == "entity" and article.strip().lower() in ("a", "an")


def _share_neighbour(response: str, ours: Value, source: SourceSentence, theirs: Value) -> bool:
    """Whether the content word before or after a value of the response is also beside a value of the knowledge."""
    return any(
        mine is not None and mine == other
        for mine, other in (
            (_find_content(response[: ours.start], -1), _find_content(source.text[: theirs.start], -1)),
            (_find_content(response[ours.end :], 0), _find_content(source.text[theirs.end :], 0)),
        )
    )


def _find_content(text: str, index: int) -> str | None:
    """The stem of the first (0) or last (-1) content word of the beginning or end of a text; None without one."""
    part = text[-NEIGHBOURHOOD:] if index else text[:NEIGHBOURHOOD]
    content = [stem(word.lower) for word in words(part) if word.content]
    return content[index] if content else None


def fit(response: str, ours: Value, source: SourceSentence, theirs: Value, kind: EditSource, weight: float) -> Proposal:
    """A value of the knowledge for one of the response: in its form, else in the words of the source.

    Words are taken with or without their article, and with the noun after a number, as the response needs them.
    """
    known_text = source.text[theirs.start : theirs.end]
    rendered = render(response[ours.start : ours.end], ours.content, known_text, theirs.content)
    if rendered is not None:
        unit = _find_equal_end(response[ours.start : ours.end], rendered)
        known_end = theirs.end - unit * source.text.endswith(rendered[len(rendered) - unit :], 0, theirs.end)
        text, evidence = rendered[: len(rendered) - unit], source.cite(theirs.start, known_end)
        return Proposal(ours.start, ours.end - unit, text, kind, weight, evidence, source, is_rendered=True)
    (start, end), (known_start, known_end) = (ours.start, ours.end), (theirs.start, theirs.end)
    start += len(_leading_determiner(response[start:end]))
    known_start += len(_leading_determiner(source.text[known_start:known_end]))
    before, known_before = _BEFORE.search(response, 0, start), _BEFORE.search(source.text, 0, known_start)
    definite, known_definite = _is_definite(before), _is_definite(known_before)
    # "The" goes with a name; "a" and "an" are fitted to it later.
    if definite and before is not None and known_before is None:
        start = before.start()
    elif known_definite and known_before is not None and before is None:
        known_start = known_before.start()
    (start, end), (known_start, known_end), parts = _fit_parts(response, (start, end), source, (known_start, known_end))
    if parts is not None:
        return Proposal(start, end, parts, kind, weight, source.cite(known_start, known_end), source)
    noun, known_noun = _NEXT_WORD.match(response, end), _NEXT_WORD.match(source.text, known_end)
    if noun and known_noun and _differ_in_number(noun[1].lower(), known_noun[1].lower()):
        end, known_end = noun.end(), known_noun.end()
    text = source.write(known_start, known_end)
    return Proposal(start, end, text, kind, weight, source.cite(known_start, known_end), source)


def _fit_parts(
    response: str, ours: tuple[int, int], source: SourceSentence, theirs: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int], str | None]:
    """Both ranges, and a date of the knowledge as coarse as the response's.

    The third is None where the words of the source are to be taken as they are.
    """
    old, new = response[slice(*ours)], source.text[slice(*theirs)]
    year, known_year = _YEAR.fullmatch(old), _YEAR.search(new)
    if year and known_year:
        start = theirs[0] + known_year.start()
        return ours, (start, start + 4), new[known_year.start() : known_year.end()]
    month, known_month = _MONTH.search(old), _MONTH.search(new)
    if month and known_month and not _DAY.search(old.replace(known_month[0], "")):
        known_range = f"{known_month[0]} {known_year[0]}" if known_year and _YEAR.search(old) else known_month[0]
        return ours, theirs, known_range
    if month and known_month and not _YEAR.search(old) and known_year:
        return ours, theirs, _TRAILING_YEAR.sub("", new) if new.endswith(known_year[0]) else None
    return ours, theirs, None


def _find_equal_end(old: str, new: str) -> int:
    """How many characters of a unit two amounts end with alike, with the space before it.

    >>> _find_equal_end("12 days", "2 days"), _find_equal_end("€12", "€2")
    (5, 0)
    """
    unit = _UNIT.search(old)
    return len(unit[0]) if unit is not None and unit[1].lower() in UNITS and new.endswith(unit[0]) else 0


def _leading_determiner(text: str) -> str:
    match = _DETERMINER.match(text)
    return "" if match is None or match.end() == len(text) else match[0]


def _differ_in_number(noun: str, other: str) -> bool:
    """Whether one of two nouns is the plural of the other.

    >>> _differ_in_number("brothers", "brother"), _differ_in_number("boxes", "box"), _differ_in_number("cats", "cats")
    (True, True, False)
    """
    short, long = sorted((noun, other), key=len)
    return long in (f"{short}s", f"{short}es") or (short.endswith("y") and long == f"{short[:-1]}ies")


def _is_definite(article: re.Match[str] | None) -> bool:
    return article is not None and article[1].lower() == "the"


def _shift(parts: Iterable[Value], offset: int) -> list[Value]:
    return [part._replace(start=part.start + offset, end=part.end + offset) for part in parts]


def _choose_part(parts: Iterable[Value], start: int, end: int) -> Value | None:
    """The value that most of a range is; None without one."""
    best = max(parts, key=lambda part: min(part.end, end) - max(part.start, start), default=None)
    if best is None:
        return None
    covered = min(best.end, end) - max(best.start, start)
    return best if covered >= COVERED * (end - start) else None


def are_alike(ours: Value, theirs: Value) -> bool:
    """Whether one value may replace another: of one type, and not a person for a place or a date for a weekday.

    A value that may be a nationality gives way to a nationality, or to what follows the same words ("in Rome", "in
    Oslo").
    """
    if ours.type != theirs.type or (ours.kind == "weekday") != (theirs.kind == "weekday"):
        return False
    if ours.kind != theirs.kind and not CONTACTS.isdisjoint((ours.kind, theirs.kind)):
        return False
    if not (isinstance(ours.content, Name) and isinstance(theirs.content, Name)):
        return True
    if "nationality" in (ours.kind, theirs.kind):
        return ours.kind == theirs.kind or (all(ours.content.role) and ours.content.role == theirs.content.role)
    return len({ours.kind, theirs.kind} - {"name"}) < 2


def _overlaps(item: Range, others: Iterable[Range]) -> bool:
    return any(other.start < item.end and item.start < other.end for other in others)

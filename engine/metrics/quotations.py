"""Quotations: does the knowledge have what the response quotes, and from whom?

No model is asked. Every quotation of the response is looked for in the knowledge and in the history, word for word and
nearly so (``text.matching``); what differs, and whether it is from one place and from the speaker or source that the
response names, says what it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, starmap
from typing import NamedTuple

from ..schema.explanations import (
    FAITHFUL,
    PassageRange,
    QuotationOutcome,
    QuotationsExplanation,
    QuotedPart,
    QuotedText,
    Reason,
    UnsupportedSpan,
)
from ..schema.options import Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.citation_marks import CitationMark, find_citation_marks
from ..text.matching import (
    REACH,
    Piece,
    QuotedWord,
    SourceWords,
    WordEdit,
    count_content,
    read_quotation,
    squeeze,
)
from ..text.quotations import Quotation, find_quotations
from ..text.speeches import SpeakerIndex
from .base import Details, Metric, RoleInfos, WordEvidence
from .requests import ReadRequest

_DENIAL = re.compile(
    r"\b(?:not|never|cannot|neither|nor|hardly|scarcely|barely|rarely|seldom|nothing|none|no (?:one|longer|way|means)"
    r"|nobody"  # terms: literal
    r"|far from|unless|refus(?:e[sd]?|ing)|den(?:y|ies|ied)|doubt(?:s|ed)?|fail(?:s|ed)? to|forbids?|forbidden"
    r"|prohibit(?:s|ed)?|(?:false|untrue|wrong|impossible|unlikely) that)\b|n['’]t\b",
    re.IGNORECASE,
)
"""What turns a sentence round; "without flash" may be left out of one."""
_SENTENCE_END = re.compile(r"[.!?][\"”’)]*\s")
_CLAUSE_END = re.compile(r"[.!?,;:\n“”\"]|\s[–—-]\s")
CLAUSE = 12
"""Words of a clause that may deny what is quoted of it, before or after."""
_REASONS: dict[QuotationOutcome, Reason] = {
    "absent": "absent_quotation",
    "stitched": "stitched_quotation",
    "misattributed": "misattributed_quotation",
}
"""Why all words of a quotation are unsupported."""
LEAST_SHARE = 0.6
"""Share of a quotation's words that a source has, from which it is an altered quotation of it."""
STITCHED_SHARE = 0.75
"""Share of its words that several places have together, from which it is stitched."""
LEAST_PIECE = 3
"""Words of each such place, at least."""
_MARK_DISTANCE = 60
"""Characters between a quotation and the mark that cites for it, at most."""


def quotations(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """The share, 0–1, of the response's quotations that are exact or normalized.

    A response that quotes nothing has nothing to verify.
    """
    quoted_ranges = find_quotations(request.response)
    if not quoted_ranges:
        return MetricResult("quotations", "nothing_to_verify", message="The response quotes nothing.")
    quoted = [read_quotation(request.response, item.start, item.end) for item in quoted_ranges]
    words = SourceWords((*request.knowledge, *request.history), quoted)
    for _ in words.read():
        yield []  # others have a turn, and a request that was stopped ends here
    marks, _ = find_citation_marks(request.response, request.knowledge)
    checker = _Checker(request, words, marks)
    checked = [
        result
        for item, item_words in zip(quoted_ranges, quoted, strict=True)
        if (result := checker.check(item, item_words))
    ]
    if not checked:
        return MetricResult("quotations", "nothing_to_verify", message="The response quotes nothing.")
    return MetricResult(
        "quotations",
        "scored",
        sum(item.outcome in FAITHFUL for item in checked) / len(checked),
        explanation=QuotationsExplanation(tuple(checked)),
        unsupported=tuple(_list_spans(request.response, checked)),
    )


class _Group(NamedTuple):
    """Pieces of a quotation that follow one another in one place."""

    pieces: tuple[Piece, ...]

    @property
    def matched(self) -> int:
        return sum(piece.matched for piece in self.pieces)


class _Checker:
    """Says what the quotations of one response are."""

    def __init__(self, request: ReadRequest, words: SourceWords, marks: Sequence[CitationMark]) -> None:
        self._request = request
        self._words = words
        self._marks = marks
        self._speakers = SpeakerIndex(request.knowledge)

    def check(self, item: Quotation, quoted: Sequence[QuotedWord]) -> QuotedText | None:
        """What a quotation is; None for a term that the knowledge does not have."""
        cited = self._find_cited(item)
        pieces = self._words.find(quoted, lambda piece: not self._find_other(item, cited, piece))
        groups = self._group(quoted, pieces)
        outcome, used = self._classify(item, quoted, groups)
        if item.is_term and outcome == "absent":
            return None
        other = ""
        if outcome in FAITHFUL:
            others = [self._find_other(item, cited, piece) for group in used for piece in group.pieces]
            if all(others):
                outcome, other = "misattributed", others[0] or ""
        changed = self._list_changes(item, quoted, used) if outcome == "altered" else ()
        parts = tuple(
            self._make_part(quoted[group.pieces[0].start].start, quoted[group.pieces[-1].end - 1].end,
                            group.pieces[0].first, group.pieces[-1].last)
            for group in used
        )  # fmt: skip
        text = self._request.response[item.start : item.end]
        return QuotedText(text, item.start, item.end, outcome, item.speaker, other, parts, tuple(changed))

    def _group(self, quoted: Sequence[QuotedWord], pieces: Sequence[Piece]) -> list[_Group]:
        groups: list[_Group] = []
        for piece in chain.from_iterable(map(self._split_piece, pieces)):
            if groups and self._goes_on(quoted, groups[-1].pieces[-1], piece):
                groups[-1] = _Group((*groups[-1].pieces, piece))
            else:
                groups.append(_Group((piece,)))
        return groups

    def _split_piece(self, piece: Piece) -> Iterator[Piece]:
        """The parts of a piece in the speeches of a passage: words that differ may hide where one ends."""
        start, first, changes = piece.start, piece.first, list[WordEdit]()
        ends = [*piece.changes, WordEdit(piece.end, piece.end, piece.last, piece.last)]
        for change, following in pairwise(ends):
            source, *before = self._words.locate(first, change.first)
            _, *after = self._words.locate(change.last, following.first)
            if source < len(self._request.knowledge) and not self._speakers.texts[source].are_one(before, after):
                yield _make_piece(start, change.start, first, change.first, changes)
                start, first, changes = change.end, change.last, []
            else:
                changes.append(change)
        yield _make_piece(start, piece.end, first, piece.last, changes) if start > piece.start else piece

    def _goes_on(self, quoted: Sequence[QuotedWord], last: Piece, piece: Piece) -> bool:
        """Whether a piece of a quotation follows another one in the source, as the quotation says."""
        between = piece.start - last.end
        gap = max((word.gap for word in quoted[last.end : piece.start + 1]), default=0)
        if self._words.is_end(last.last) and self._words.is_begin(piece.first):
            return between == 0  # from one passage to another: a text that was cut into passages
        source, *first = self._words.locate(last.first, last.last)
        other, *second = self._words.locate(piece.first, piece.last)
        if source != other or not 0 <= piece.first - last.last <= max(gap, between + REACH if between else 0):
            return False
        is_passage = source < len(self._request.knowledge)
        return not (gap and is_passage) or self._speakers.texts[source].are_one(first, second)

    def _classify(
        self, item: Quotation, quoted: Sequence[QuotedWord], groups: Sequence[_Group]
    ) -> tuple[QuotationOutcome, Sequence[_Group]]:
        """What a quotation is, and the groups of pieces that say so."""
        if not groups:
            return "absent", ()
        lead = max(groups, key=lambda group: group.matched)
        matched = sum(group.matched for group in groups)
        is_whole = matched == len(quoted) and not any(piece.changes for group in groups for piece in group.pieces)
        if len(groups) == 1 and is_whole:
            if any(starmap(self._cuts_denial, pairwise(lead.pieces))) or any(self._find_cut_ends(item, quoted, lead)):
                return "altered", (lead,)
            return ("exact" if self._is_exact(item, quoted, lead) else "normalized"), (lead,)
        if is_whole and all(quoted[group.pieces[0].start].gap for group in groups[1:]):
            return "stitched", groups
        strong = [group for group in groups if self._is_strong(quoted, group)]
        if len(strong) > 1 and matched >= STITCHED_SHARE * len(quoted):
            return "stitched", strong
        content = count_content([quoted[i] for piece in lead.pieces for i in _list_matched(piece)])
        if lead.matched >= LEAST_SHARE * len(quoted) and content >= 2:
            return "altered", (lead,)
        return "absent", ()

    def _is_strong(self, quoted: Sequence[QuotedWord], group: _Group) -> bool:
        return group.matched >= LEAST_PIECE and any(
            count_content([quoted[i] for i in _list_matched(piece)]) for piece in group.pieces
        )

    def _cuts_denial(self, last: Piece, piece: Piece) -> bool:
        """Whether an ellipsis or brackets between two pieces leave out a "not" of a sentence that they quote."""
        if last.last >= piece.first:
            return False
        parts = _SENTENCE_END.split(self._read(last.last, piece.first))
        return any(_DENIAL.search(part) for part in (parts[0], parts[-1]))

    def _find_cut_ends(self, item: Quotation, quoted: Sequence[QuotedWord], group: _Group) -> tuple[int, int]:
        """How many words, with a "not", an ellipsis or brackets leave out before the first word, and after the last."""
        before, after = self._read_ends(item, quoted)
        first, last = group.pieces[0].first, group.pieces[-1].last
        low, high = self._words.find_bounds(first)
        return (
            self._count_denying(range(first - 1, max(low, first - CLAUSE) - 1, -1)) if _is_cut(before) else 0,
            self._count_denying(range(last, min(high, last + CLAUSE))) if _is_cut(after) else 0,
        )

    def _count_denying(self, indices: range) -> int:
        """How many words of a clause, from the nearest one on, end with a denial; 0 without one."""
        for count, index in enumerate(indices, 1):
            nearest = indices[0]
            words = min(index, nearest), max(index, nearest)
            between = self._read_between(index if indices.step < 0 else index - 1)
            if _CLAUSE_END.search(between):
                return 0
            if _DENIAL.search(self._read(words[0], words[1] + 1)):
                return count
        return 0

    def _read_ends(self, item: Quotation, quoted: Sequence[QuotedWord]) -> tuple[str, str]:
        """The signs of a quotation before its first word, and after its last one."""
        response = self._request.response
        return response[item.start : quoted[0].start], response[quoted[-1].end : item.end]

    def _is_exact(self, item: Quotation, quoted: Sequence[QuotedWord], group: _Group) -> bool:
        if len(group.pieces) > 1 or any(map(_is_cut, self._read_ends(item, quoted))):
            return False
        text = self._request.response[quoted[0].start : quoted[-1].end]
        return squeeze(text) == squeeze(self._read(group.pieces[0].first, group.pieces[0].last))

    def _list_changes(
        self, item: Quotation, quoted: Sequence[QuotedWord], groups: Sequence[_Group]
    ) -> Iterator[QuotedPart]:
        """The words of an altered quotation that its source does not have, and where it has others."""
        (group,) = groups
        first, last = group.pieces[0], group.pieces[-1]
        cut_before, cut_after = self._find_cut_ends(item, quoted, group)
        if cut_before and not first.start:
            yield self._make_change(quoted, 0, 0, first.first - cut_before, first.first)
        if first.start:
            begin = self._reach_back(first.first, first.start)
            yield self._make_change(quoted, 0, first.start, begin, first.first)
        before: Piece | None = None
        for piece in group.pieces:
            if before is not None and (
                piece.start > before.end or not quoted[piece.start].gap or self._cuts_denial(before, piece)
            ):
                yield self._make_change(quoted, before.end, piece.start, before.last, piece.first)
            for change in piece.changes:
                yield self._make_change(quoted, *change)
            before = piece
        if last.end < len(quoted):
            end = self._reach_on(last.last, len(quoted) - last.end)
            yield self._make_change(quoted, last.end, len(quoted), last.last, end)
        elif cut_after:
            yield self._make_change(quoted, len(quoted), len(quoted), last.last, last.last + cut_after)

    def _reach_back(self, first: int, count: int) -> int:
        """The first of at most ``count`` words of the same sentence before a word of the source."""
        low, begin = max(first - count, self._words.find_bounds(first)[0]), first
        while begin > low and not _SENTENCE_END.search(self._read_between(begin - 1)):
            begin -= 1
        return begin

    def _reach_on(self, last: int, count: int) -> int:
        """The end of at most ``count`` words of the same sentence from a word of the source on."""
        high, end = min(last + count, self._words.find_bounds(last)[1]), last
        while end < high and not _SENTENCE_END.search(self._read_between(end - 1)):
            end += 1
        return end

    def _read_between(self, index: int) -> str:
        """What is between a word of the source and the next one of its text."""
        source, _, start = self._words.locate(index, index + 1)
        return self._words.texts[source][start : self._words.locate(index + 1, index + 2)[1]]

    def _make_change(self, quoted: Sequence[QuotedWord], start: int, end: int, first: int, last: int) -> QuotedPart:
        if start < end:
            return self._make_part(quoted[start].start, quoted[end - 1].end, *self._words.clip(first, last))
        index = quoted[start - 1].end if start else quoted[0].start
        return self._make_part(index, index, *self._words.clip(first, last))

    def _make_part(self, start: int, end: int, first: int, last: int) -> QuotedPart:
        text = self._request.response[start:end]
        if first == last:
            return QuotedPart(text, start, end)
        source, begin, stop = self._words.locate(first, last)
        turn = source - len(self._request.knowledge)
        where = PassageRange(source, begin, stop) if turn < 0 else None
        return QuotedPart(text, start, end, self._read(first, last), where, None if turn < 0 else turn)

    def _read(self, first: int, last: int) -> str:
        source, start, end = self._words.locate(first, last)
        return self._words.texts[source][start:end]

    def _find_cited(self, item: Quotation) -> tuple[int | None, ...]:
        """The passages that the mark right after a quotation cites."""
        first = bisect_right(self._marks, item.end, key=lambda mark: mark.start)
        cited: list[int | None] = []
        end = item.end
        for mark in self._marks[first:]:
            between = self._request.response[end : mark.start]
            if len(between) > _MARK_DISTANCE or re.search(r"[.!?]\s+\S|\n\s*\n|[“\"]\w", between):
                break
            cited += mark.passages
            end = mark.end
        return tuple(cited)

    def _find_other(self, item: Quotation, cited: Sequence[int | None], piece: Piece) -> str:
        """The speaker or source of a place, if the response names another one; empty otherwise."""
        source, start, end = self._words.locate(piece.first, piece.last)
        if source >= len(self._request.knowledge):
            return ""
        cited_passages = [passage for passage in cited if passage is not None]
        if cited_passages and source not in cited_passages:
            return self._speakers.texts[source].title or f"passage {source + 1}"
        return self._speakers.find_other(item.speaker, item.is_sure, source, start, end)


def _is_cut(signs: str) -> bool:
    """Whether an ellipsis or brackets are among the signs at the end of a quotation."""
    return "[" in signs or "…" in signs or ".." in signs


def _make_piece(start: int, end: int, first: int, last: int, changes: Sequence[WordEdit]) -> Piece:
    changed = sum(change.end - change.start for change in changes)
    return Piece(start, end, first, last, end - start - changed, tuple(changes))


def _list_matched(piece: Piece) -> Iterator[int]:
    """The words of a piece that are those of the source."""
    start = piece.start
    for change in piece.changes:
        yield from range(start, change.start)
        start = change.end
    yield from range(start, piece.end)


def _list_spans(response: str, checked: Sequence[QuotedText]) -> Iterator[UnsupportedSpan]:
    for item in checked:
        if reason := _REASONS.get(item.outcome):
            yield UnsupportedSpan(item.text, item.start, item.end, reason, item.source_speaker, "quotations")
        for part in item.changed:
            start, end = (part.start, part.end) if part.text else _find_neighbour(response, part.start, item.end)
            text = response[start:end]
            yield UnsupportedSpan(text, start, end, "mismatch", part.knowledge_says, "quotations")


def _find_neighbour(response: str, index: int, end: int) -> tuple[int, int]:
    """The word after a place where words were left out."""
    match = re.compile(r"\w+").search(response, index, end)
    return match.span() if match else (index, end)


def _details(result: MetricResult) -> Details | None:
    explanation = result.explanation
    if not isinstance(explanation, QuotationsExplanation):
        return None
    rows = tuple(
        (
            item.text,
            item.outcome,
            item.source_speaker
            or ", ".join(map(_describe_change, item.changed))
            or " … ".join(part.knowledge_says for part in item.parts),
        )
        for item in explanation.quotations
    )
    return Details(("quotation", "outcome", "the source has"), rows)


def _describe_change(part: QuotedPart) -> str:
    if not part.text:
        return f"also “{part.knowledge_says}”"
    return f"“{part.knowledge_says}”, not “{part.text}”" if part.knowledge_says else f"no “{part.text}”"


METRICS = (
    Metric(
        name="quotations",
        title="Quotations",
        description="share of the response’s quotations that the knowledge has as they are quoted",
        compute=quotations,
        order=15,
        words=WordEvidence(1.0, precision=2, is_certain=True),
        quotes=True,
        details=_details,
    ),
)

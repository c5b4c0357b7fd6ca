"""Drafts: responses in which unsupported words are replaced or left out; no draft says anything new.

Every new word of a draft is a word of the sentence of the knowledge that it was taken from, or a word that the response
had there; and every number, date or name that a draft has around its edits is one of that sentence or of the response.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from groundwire.engine import UnsupportedSpan
from groundwire.engine.extend import WORD, Range, words
from groundwire.engine.schema.explanations import PassageRange
from groundwire.engine.values import Name, check_values, read_values
from groundwire.metrics import Sentence
from groundwire.runtime.texts.characters import is_alphanumeric

from ..records import EditSource
from ..wording import Replacement, replace_names
from .keeping import Kept
from .proposals import Proposal
from .question import UserQuestion
from .removal import find_removals

# Chosen by eye, on development pairs.
TOGETHER = 0.7
"""How far proposals must be trusted to be drafted together, 0–1."""
REMOVAL = 0.35
"""How far leaving unsupported words out is trusted."""
DOUBTED = 0.5
"""Share of the content words of a part that must be unsupported, at least, for the part to be left out."""
AS_WRITTEN = "AA"
"""As the old name: the new one keeps its capitals, but for the first letter of a sentence (``replace_names``)."""
_ARTICLES = frozenset({"a", "an"})
_DOUBLED = re.compile(r"\b(\w+)\s+\1\b", re.IGNORECASE)
"""A word that is written twice: an edit that doubles one broke the sentence."""
_BLANK = re.compile(r"\s+")


class DraftEdit(NamedTuple):
    """An edit of a draft: characters of the response, and the characters of the draft that replace them."""

    start: int
    end: int
    new_start: int
    new_end: int
    action: Literal["replace", "insert", "remove", "remove_sentence"]
    source: EditSource
    evidence: PassageRange | None


class Draft(NamedTuple):
    """A response with one sentence changed."""

    response: str
    edits: tuple[DraftEdit, ...]
    sentence: Sentence
    """That of the original."""
    trust: float
    """How far it is trusted before it is checked, 0–1."""

    @property
    def removes_words(self) -> bool:
        """Whether words are left out, and none put in their place."""
        return any(edit.source == "removal" for edit in self.edits)

    @property
    def removes_sentence(self) -> bool:
        """Whether the whole sentence is left out."""
        return any(edit.action == "remove_sentence" for edit in self.edits)


def make_drafts(
    response: str,
    sentence: Sentence,
    proposals: Sequence[Proposal],
    doubts: Sequence[UnsupportedSpan],
    supported: Sequence[Range],
    untouched: Kept | None = None,
    question: UserQuestion | None = None,
) -> Iterator[Draft]:
    """Yield drafts for a sentence, the most trusted first: several proposals together, single ones, removals.

    ``doubts`` are its unsupported words, ``supported`` the values that the knowledge has, ``untouched`` what
    is left as it is, as is what ``question`` asks about.
    """
    proposals = [proposal for proposal in proposals if not proposal.objection]
    together = _choose_disjoint(proposal for proposal in proposals if proposal.weight >= TOGETHER)
    trusted = [proposal for proposal in proposals if proposal.weight > REMOVAL]
    drafts = chain(
        (_replace(response, sentence, chosen) for chosen in (together,) if len(chosen) > 1),
        (_replace(response, sentence, [proposal]) for proposal in trusted),
        _remove_parts(response, sentence, doubts, supported, untouched, question),
        (_replace(response, sentence, [proposal]) for proposal in proposals[len(trusted) :]),
    )
    seen: set[str] = set()
    for draft in drafts:
        if draft is not None and draft.response not in seen:
            seen.add(draft.response)
            yield draft


def remove_sentence(response: str, sentence: Sentence) -> Draft | None:
    """The response without a sentence and the spaces before it; None if nothing would be left."""
    start, end = sentence.start, sentence.end
    start -= len(response[:start]) - len(response[:start].rstrip())
    if not response[:start].strip():
        start, end = 0, end + len(response[end:]) - len(response[end:].lstrip())
    left = response[:start] + response[end:]
    if not any(map(is_alphanumeric, left)):
        return None
    edit = DraftEdit(start, end, start, start, "remove_sentence", "removal", None)
    return Draft(left, (edit,), sentence, 0.0)


def _choose_disjoint(proposals: Iterable[Proposal]) -> list[Proposal]:
    """The proposals that do not overlap an earlier one, in the order of the response."""
    chosen: list[Proposal] = []
    for proposal in proposals:
        if all(proposal.end <= other.start or other.end <= proposal.start for other in chosen):
            chosen.append(proposal)
    return sorted(chosen, key=lambda proposal: proposal.start)


def _replace(response: str, sentence: Sentence, proposals: Sequence[Proposal]) -> Draft | None:
    """The response with the words of all proposals; None if it would say what the knowledge does not."""
    text, placed = replace_names(
        response, [Replacement(item.start, item.end, item.text, AS_WRITTEN) for item in proposals]
    )
    edits = []
    for proposal, where in zip(proposals, placed, strict=True):
        old, new = response[where.start : where.end], text[where.new_start : where.new_end]
        if old == new or not (proposal.is_rendered or _has_only_words_of(new, (old, proposal.sentence.text))):
            return None
        action: Literal["replace", "insert"] = "insert" if _BLANK.sub(" ", new).startswith(f"{old} ") else "replace"
        edits.append(DraftEdit(*where, action, proposal.source, proposal.evidence))
    source_texts = tuple(dict.fromkeys(proposal.sentence.text for proposal in proposals))
    if len(_DOUBLED.findall(text)) > len(_DOUBLED.findall(response)) or not _states_nothing_new(
        response, text, edits, source_texts
    ):
        return None
    return Draft(text, tuple(edits), sentence, min(proposal.weight for proposal in proposals))


def _remove_parts(
    response: str,
    sentence: Sentence,
    doubts: Sequence[UnsupportedSpan],
    supported: Sequence[Range],
    untouched: Kept | None,
    question: UserQuestion | None,
) -> Iterator[Draft]:
    """The response without parts of the sentence that are mostly unsupported, and have nothing that is supported."""
    for doubt in doubts:
        if doubt.severity == "low":
            continue
        for part in find_removals(sentence.text, doubt.start - sentence.start, doubt.end - sentence.start):
            start, end = sentence.start + part.start, sentence.start + part.end
            if not _is_doubted(response, start, end, doubts) or any(
                item.start < end and start < item.end for item in supported
            ):
                continue
            if untouched is not None and (untouched.touches_code(start, end) or untouched.states_amount(start, end)):
                continue
            if question is not None and question.find_objection(sentence, start, end, "", None):
                continue
            edit = DraftEdit(start, end, start, start, "remove", "removal", None)
            text = response[:start] + response[end:]
            if _states_nothing_new(response, text, [edit], ()):
                yield Draft(text, (edit,), sentence, REMOVAL)


def _is_doubted(response: str, start: int, end: int, doubts: Sequence[UnsupportedSpan]) -> bool:
    """Whether most content words of a part are in unsupported spans."""
    content = [(start + word.start, start + word.end) for word in words(response[start:end]) if word.content]
    doubted = [word for word in content if any(span.start < word[1] and word[0] < span.end for span in doubts)]
    return len(doubted) > DOUBTED * len(content)


def _has_only_words_of(new: str, texts: Iterable[str]) -> bool:
    allowed_words = {word.casefold() for text in texts for word in WORD.findall(text)} | _ARTICLES
    return all(word.casefold() in allowed_words for word in WORD.findall(new))


def _states_nothing_new(response: str, text: str, edits: Sequence[DraftEdit], source_texts: Sequence[str]) -> bool:
    """Whether every value of ``text`` that has a part in an edit is in ``source_texts`` or in the response."""
    values = [part for part in read_values(text) if any(_is_touched(part.start, part.end, edit) for edit in edits)]
    if not values:
        return True
    supported = {check.value.end for check in check_values(text, source_texts) if check.outcome == "supported"}
    for part in values:
        is_named = any(_has_words(text[part.start : part.end], source) for source in (*source_texts, response))
        if not (is_named if isinstance(part.content, Name) else is_named or part.end in supported):
            return False
    return True


def _is_touched(start: int, end: int, edit: DraftEdit) -> bool:
    if edit.new_start == edit.new_end:
        return start < edit.new_start < end
    return start < edit.new_end and edit.new_start < end


def _has_words(name: str, text: str) -> bool:
    """Whether a text has these words next to each other."""
    pattern = r"\s+".join(map(re.escape, name.split()))
    return re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE) is not None

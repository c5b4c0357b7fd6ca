"""Small edits that make a supported claim unsupported, with the characters they change and the reason.

An edit is a list of replacements in the claim, so the unsupported words are known exactly. The same edit can be made in
the knowledge (``edit_knowledge``): then the edited claim is supported and the original is not, and the wording of a
response alone does not show its label. The reasons follow LettuceDetect's structured edits (Kovács 2026), grouped
to six.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from groundwire.evaluate.twins.edits import ClaimEdit, Replacement
from groundwire.evaluate.twins.negation import edit_by_negation

from ..common.corpus import word_coverage
from . import perturbations, word_sets
from .pairs import NEAR, shorten_sentence
from .typed_names import NameTypes, TypedName

REASONS = ("entity", "number", "date", "negation", "relation", "addition")
LABELS = ("supported", *REASONS)
"""The labels of a token."""


@dataclass(frozen=True, slots=True)
class EditContext:
    """What an edit may use beside the claim."""

    knowledge: str
    near: tuple[str, ...]
    """Other sentences, most of them about the same topic, that the knowledge lacks."""
    names: NameTypes
    answer: str = ""
    """The part of the claim that is the answer to a question, or one end of a fact ..."""
    rivals: tuple[str, ...] = ()
    """... and what else could be in its place."""

    def list_names(self, texts: Sequence[str], like: TypedName, claim: str) -> list[str]:
        """The names in ``texts`` of the type of ``like`` that share no word with the claim."""
        names = (name for text in texts for name in self.names.find(text) if name.type == like.type)
        fitting = (name.text for name in names if not _share_words(name.text, claim))
        article = re.search(r"\b(an?) $", claim[: like.start])
        return [
            text
            for text in dict.fromkeys(fitting)
            if article is None or (article[1] == "an") == (text[0].lower() in "aeiou")
        ]


Editor: TypeAlias = Callable[[str, EditContext, random.Random], ClaimEdit | None]
"""Edits a claim; None where it does not apply."""


def edit_name(claim: str, context: EditContext, rng: random.Random) -> ClaimEdit | None:
    """Another name of the same type, mostly one of the knowledge where it has any."""
    names = context.names.find(claim)
    for name in rng.sample(names, min(3, len(names))):
        inside = context.list_names([context.knowledge], name, claim)
        outside = [text for text in context.list_names(context.near, name, claim) if text not in context.knowledge]
        pool = inside if inside and (rng.random() < 0.8 or not outside) else outside
        if pool:
            kind = "name_inside" if pool is inside else "name_outside"
            return ClaimEdit(kind, "entity", _replace_all(claim, name.text, rng.choice(pool)))
    return None


def edit_answer(claim: str, context: EditContext, rng: random.Random) -> ClaimEdit | None:
    """Another answer of the same kind in place of the claim's."""
    rivals = [text for text in context.rivals if not _share_words(text, claim) and len(text.split()) <= 8]
    replacements = _replace_all(claim, context.answer, "") if context.answer else ()
    if not rivals or not replacements:
        return None
    inside = [text for text in rivals if text in context.knowledge]
    new = rng.choice(inside if inside and rng.random() < 0.5 else rivals)
    reason = find_value_reason(claim, replacements[0][0], replacements[0][1])
    return ClaimEdit("answer", reason, tuple((start, end, new) for start, end, _ in replacements))


def find_value_reason(claim: str, start: int, end: int) -> str:
    """Whether the characters are a date, a number or, else, an entity."""
    text = claim[start:end]
    if any(match.start() < end and match.end() > start for match in word_sets.find_dates(claim)):
        return "date"
    return "number" if re.search(r"\d", text) or word_sets.is_number_word(text) else "entity"


def edit_number(claim: str, context: EditContext, rng: random.Random) -> ClaimEdit | None:
    """Another number in digits, or another unit; sometimes a number that the knowledge has elsewhere."""
    dates = word_sets.find_dates(claim)
    numbers = [
        match
        for match in perturbations.NUMBER.finditer(claim)
        if not any(date.start() < match.end() and match.start() < date.end() for date in dates)
    ]
    units = list(word_sets.UNIT.finditer(claim))
    if units and (not numbers or rng.random() < 0.2):
        unit = rng.choice(units)
        return ClaimEdit("unit", "number", ((*unit.span(), word_sets.replace_unit(unit.group(), rng)),))
    if not numbers:
        return None
    number = rng.choice(numbers)
    shape = len(re.findall(r"\d", number.group()))
    others = {
        match.group()
        for match in perturbations.NUMBER.finditer(context.knowledge)
        if match.group() not in claim and abs(len(re.findall(r"\d", match.group())) - shape) <= 1
    }
    if others and rng.random() < 0.4:
        return ClaimEdit("number_inside", "number", ((*number.span(), rng.choice(sorted(others))),))
    return ClaimEdit("number", "number", ((*number.span(), perturbations.vary_number(number.group(), rng)),))


def edit_date(claim: str, context: EditContext, rng: random.Random) -> ClaimEdit | None:
    """Another year, decade, century, month or day of the week; sometimes a year of the knowledge."""
    dates = word_sets.find_dates(claim)
    if not dates:
        return None
    date = rng.choice(dates)
    if date.group().isdigit():
        years = {match.group() for match in word_sets.find_dates(context.knowledge) if match.group().isdigit()}
        others = sorted(year for year in years if year not in claim)
        if others and rng.random() < 0.4:
            return ClaimEdit("date_inside", "date", ((*date.span(), rng.choice(others)),))
    return ClaimEdit("date", "date", ((*date.span(), word_sets.vary_date(date.group(), rng)),))


def edit_word(claim: str, _: EditContext, rng: random.Random) -> ClaimEdit | None:
    """A word of a set (opposites, verbs, professions, directions) replaced by another of its set."""
    matches = [match for match in word_sets.MEMBER.finditer(claim) if not word_sets.is_part_of_name(claim, match)]
    if not matches:
        return None
    chosen = rng.choice(matches)
    new, reason = word_sets.replace_member(chosen.group(), rng)
    return ClaimEdit("word", reason, ((*chosen.span(), new),))


def _edit_by_negation(claim: str, _: EditContext, rng: random.Random) -> ClaimEdit | None:
    return edit_by_negation(claim, rng)


_BETWEEN = re.compile(r"(?<!\w)(?:and|or|between|with|near|married|met|borders?|adjoins?|alongside)(?!\w)|^[,;\s]*$")


def edit_roles(claim: str, context: EditContext, rng: random.Random) -> ClaimEdit | None:
    """Two names of the same known type exchanged, unless what is said of them holds both ways.

    Names of no known type are often parts of a longer one ("Youth in Revolt").
    """
    names = context.names.find(claim)
    pairs = [
        (first, second)
        for index, first in enumerate(names)
        for second in names[index + 1 :]
        if first.type == second.type != "other"
        and not _share_words(first.text, second.text)
        and len(re.findall(r"\w+", claim[first.end : second.start])) >= 2
        and not _BETWEEN.search(claim[first.end : second.start])
        and not re.search(r"\b(?:between|both|neither)\b", claim[: first.start], re.IGNORECASE)
        and not re.match(r" (?:and|or)\b|, ", claim[second.end :])
    ]
    if not pairs:
        return None
    first, second = rng.choice(pairs)
    return ClaimEdit(
        "roles", "relation", ((first.start, first.end, second.text), (second.start, second.end, first.text))
    )


_SUBJECT_AND_VERB = re.compile(
    r"((?:The )?[A-Z][\w'’-]*(?: (?:[A-Z][\w'’-]*|of|the|and|de))*) "
    r"((?:is|was|are|were|has|had|can|could|will|became|won|made|began|received|played|wrote|served)\b.{12,})"
)


def edit_by_splicing(claim: str, context: EditContext, rng: random.Random) -> ClaimEdit | None:
    """The predicate of a sentence about something else after the claim's subject."""
    match = _SUBJECT_AND_VERB.match(claim)
    if match is None:
        return None
    inside = re.split(r"(?<=[.!?]) ", context.knowledge)
    texts = [*rng.sample(inside, len(inside)), *rng.sample(context.near, len(context.near))]
    for text in texts:
        other = _SUBJECT_AND_VERB.match(text)
        if other and not _share_words(other[1], claim) and word_coverage(other[2], claim) < NEAR:
            predicate = _cut_clause(other[2], rng)
            stop = "." if claim.endswith(".") else ""
            return ClaimEdit("splice", "relation", ((match.start(2), len(claim), predicate.rstrip(" .") + stop),))
    return None


_RELATIVE = re.compile(r", (?:which|who|where|whose|known|based|founded|located|including)\b[^,.;()]{10,70}(?=[,.])")
_ADVERBIAL = re.compile(
    r" (?:in|at|near|during|by|with|from|for|on) (?:the )?"
    r"(?:[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*|\d{4}|\w+ \d{4})(?=[,.; ])"
)


def edit_by_adding_clause(claim: str, context: EditContext, rng: random.Random) -> ClaimEdit | None:
    """A relative clause or an adverbial of another sentence at the end of the claim."""
    for text in rng.sample(context.near, len(context.near)):
        pieces = [*_RELATIVE.findall(text), *_ADVERBIAL.findall(text)]
        fitting = [
            piece
            for piece in pieces
            if word_coverage(piece, context.knowledge + claim) < NEAR
            and not (re.search(r"\d{4}", piece) and re.search(r"\d{4}", claim))
            and (piece.startswith(",") or piece.split()[0] != (re.findall(r"\w+", claim) or [""])[-2:][0])
        ]
        if fitting:
            end = len(claim.rstrip(" .!"))
            return ClaimEdit("clause", "addition", ((end, end, rng.choice(fitting)),), source=text)
    return None


def edit_by_adding_sentence(claim: str, context: EditContext, rng: random.Random) -> ClaimEdit | None:
    """A sentence that the knowledge lacks, before or after the claim."""
    for text in rng.sample(context.near, len(context.near)):
        if len(text.split()) > 30 or word_coverage(text, context.knowledge) >= NEAR:
            continue
        sentence = shorten_sentence(text, text, rng)
        if rng.random() < 0.3:
            return ClaimEdit("sentence", "addition", ((0, 0, f"{sentence} "),), source=text)
        if claim.endswith((".", "!", "?")):
            return ClaimEdit("sentence", "addition", ((len(claim), len(claim), f" {sentence}"),), source=text)
        joined = (
            f"{sentence[:1].lower()}{sentence[1:]}" if sentence.split()[0] in ("He", "She", "It", "The") else sentence
        )
        return ClaimEdit(
            "sentence", "addition", ((len(claim), len(claim), f", and {joined.rstrip('.')}"),), source=text
        )
    return None


EDITORS: dict[str, tuple[Editor, float]] = {
    "name": (edit_name, 0.25),
    "answer": (edit_answer, 0.08),
    "number": (edit_number, 0.1),
    "date": (edit_date, 0.1),
    "word": (edit_word, 0.14),
    "negation": (_edit_by_negation, 0.09),
    "roles": (edit_roles, 0.1),
    "splice": (edit_by_splicing, 0.06),
    "clause": (edit_by_adding_clause, 0.04),
    "sentence": (edit_by_adding_sentence, 0.04),
}
"""The editors, and how often each is tried first."""


def draw_editor(rng: random.Random) -> str:
    """The name of an editor, by its share."""
    return rng.choices(list(EDITORS), [share for _, share in EDITORS.values()])[0]


def edit_claim(claim: str, context: EditContext, editor: str, rng: random.Random) -> ClaimEdit | None:
    """An edit by the editor of that name; None where it does not apply."""
    edit = EDITORS[editor][0](claim, context, rng)
    return edit if edit is not None and edit.apply(claim) != claim else None


def edit_knowledge(knowledge: str, claim: str, edit: ClaimEdit, rng: random.Random) -> str | None:
    """The knowledge with the same edit, so that it supports the edited claim and no longer the original one.

    A value is exchanged wherever the knowledge has it, with the value that replaces it; another change is made where
    the knowledge has the words around it once. None when neither is possible.
    """
    if edit.kind == "sentence":
        sentences = re.split(r"(?<=[.!?]) ", knowledge)
        sentences.insert(rng.randint(0, len(sentences)), edit.source)
        return " ".join(sentences)
    if edit.kind in (
        "name_inside",
        "name_outside",
        "answer",
        "number",
        "number_inside",
        "date",
        "date_inside",
        "roles",
    ):
        start, end, new = edit.replacements[0]
        return _exchange(knowledge, claim[start:end], new)
    (start, end, new), *others = edit.replacements
    return None if others or edit.kind == "splice" else _replace_in_context(knowledge, claim, (start, end, new))


def _exchange(text: str, old: str, new: str) -> str | None:
    pattern = re.compile(rf"(?<!\w)(?:{re.escape(old)}|{re.escape(new)})(?!\w)")
    changed = pattern.sub(lambda match: new if match.group() == old else old, text)
    if not re.search(rf"(?<!\w){re.escape(old)}(?!\w)", text):
        return None
    if new not in text and _share_words(old, changed):
        # Part of the old name is left ("Presley" of "Elvis Presley"): what the text then says is not clear.
        return None
    return changed


def _replace_in_context(knowledge: str, claim: str, replacement: Replacement) -> str | None:
    start, end, new = replacement
    before, after = re.findall(r"\S+\s*", claim[:start]), re.findall(r"\s*\S+", claim[end:])
    for left, right in ((2, 2), (3, 1), (1, 2), (2, 1), (3, 0), (0, 3), (1, 1), (2, 0)):
        prefix, suffix = "".join(before[len(before) - left :] if left else ""), "".join(after[:right])
        suffix = suffix.rstrip(".!?")
        context = prefix + claim[start:end] + suffix
        if len(re.findall(r"\w+", context)) >= 2 + (end > start) and knowledge.count(context) == 1:
            return knowledge.replace(context, prefix + new + suffix)
    return None


def _replace_all(text: str, old: str, new: str) -> tuple[Replacement, ...]:
    return tuple((*match.span(), new) for match in re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", text))


def _cut_clause(predicate: str, rng: random.Random) -> str:
    """The predicate, half of the time without what follows its first comma."""
    first = predicate.split(",")[0]
    return first if rng.random() < 0.5 and len(first.split()) >= 4 else predicate


def _share_words(first: str, second: str) -> bool:
    words = set(re.findall(r"\w{3,}|\d+", first.lower()))
    return bool(words & set(re.findall(r"\w{3,}|\d+", second.lower())))

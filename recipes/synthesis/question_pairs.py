"""Minimal pairs in the words of people who asked about a passage: two statements, one of them supported.

The pairs of ``minimal_pairs`` copy most of their passage, so a model that has read those alone takes other words for a
sign of an unsupported claim. These do not copy, and differ where people found it easy to miss:

- ``unanswerable``: SQuAD 2.0's annotators changed a question so that the passage no longer answers it ("highest" to
  "lowest", "annexed" the other way round, "no longer"). Both questions are stated with their answers; the words that
  the change put in are unsupported.
- ``argument``: of two questions of QAMR about one sentence, the first is stated with its own answer and with the
  answer of the second, so what is swapped are mostly roles ("who beat whom");
- ``polar``: a yes/no question and its answer as a statement, and the opposite ("you can buy it on Sundays").
"""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundwire.evaluate.twins.edits import EditedSpan

from ..common.corpus import Squad, find_sentence_bounds, is_held_out, read_rows, word_set
from .answer_pairs import answer_kind
from .chat_style import ChatStyle
from .qa_to_statement import declare, find_preposition

SHARES = {"unanswerable": 0.64, "argument": 0.2, "polar": 0.16}
REASONS = {"E": "entity", "#": "number", "N": "negation", "A": "relation", "X": "relation", "I": "addition"}
"""Why a changed question is unanswerable (SQuAD2-CR), as the reason of its unsupported words."""
PLAIN = 0.4
"""Share of the pairs that are not in chat style."""
MOST_CHANGED = 0.5
"""Share of the words of a changed statement; where more differ, which of them are unsupported is unclear."""
LONGEST_ANSWER = 8
"""Words."""
LONGEST_QUESTION = 14
"""Words of a yes/no question."""
SENTENCES = (1, 1, 2, 2, 3, 4, 5, 6)
"""Lengths of the passage, before the limit in words."""
_WORD = re.compile(r"[\w'’-]+")
_ATTEMPTS = 200
_POLAR = re.compile(
    r"(?P<verb>is|are|was|were|can|could|will|would|has|have|do) "
    r"(?P<subject>you|i|we|they|it|there|he|she) (?P<rest>.+)",
    re.IGNORECASE,
)
_NEGATED = {"can": "can't", "will": "won't"}


@dataclass(frozen=True, slots=True)
class Statements:
    """Two statements about one passage."""

    supported: str
    unsupported: str
    kind: str
    context: str
    ranges: tuple[tuple[int, int], ...]
    """Characters of ``context`` that both rest on."""
    reason: str
    changed: tuple[tuple[int, int], ...] | None
    """Unsupported characters of ``unsupported``; None where they are not known."""


@dataclass(frozen=True, slots=True)
class QuestionPair:
    """Two responses to one knowledge."""

    knowledge: str
    supported: str
    unsupported: str
    spans: tuple[EditedSpan, ...] | None
    """Edited words of the unsupported response; None where they are not known."""
    kind: str
    aside: bool
    """Whether the responses hold more than the statement."""


class QuestionPairs:
    """Draws pairs of statements."""

    def __init__(self, statements: Mapping[str, Sequence[Statements]], style: ChatStyle) -> None:
        """``statements`` by kind, as in ``SHARES``. ValueError when there are none."""
        self._statements = {kind: listed for kind, listed in statements.items() if listed}
        if not self._statements:
            raise ValueError("There are no pairs of questions; give the unanswerable questions of SQuAD 2.0 or QAMR.")
        self._style = style

    @classmethod
    def read(cls, data: Path, style: ChatStyle, split: str = "train") -> QuestionPairs | None:
        """From ``data/more``, with the questions of SQuAD's training articles; None where the files are missing.

        ``split`` dev has the articles that ``is_held_out`` selects, train all others.
        """
        more, held_out = data / "more", split != "train"
        unanswerable = more / "reading_squad2_unanswerable.jsonl.gz"
        arguments = more / "reading_qamr.jsonl.gz"
        rows = _read(unanswerable, "title", held_out)
        statements = {
            "unanswerable": _state_unanswerable(rows, Squad.read(data / "squad1_train.jsonl.gz")) if rows else [],
            "argument": _state_arguments(_read(arguments, "context", held_out)),
            "polar": _state_polar(_read(more / "reading_yesno.jsonl.gz", "context", held_out)),
        }
        return cls(statements, style) if any(statements.values()) else None

    def draw(self, words: int, rng: random.Random) -> QuestionPair:
        """Draw a pair whose knowledge has at most so many words, as far as what it rests on allows."""
        kinds = list(self._statements)
        for _ in range(_ATTEMPTS):
            chosen = rng.choice(self._statements[rng.choices(kinds, [SHARES[kind] for kind in kinds])[0]])
            knowledge = _cut_passage(chosen, words, rng)
            if len(knowledge.split()) <= 1.5 * words:
                break
        return self._dress(chosen, knowledge, rng)

    def _dress(self, chosen: Statements, knowledge: str, rng: random.Random) -> QuestionPair:
        """Both statements in the same style."""
        if rng.random() < PLAIN:
            spans = chosen.changed
            supported, unsupported, aside = chosen.supported, chosen.unsupported, False
        else:
            seed = rng.getrandbits(32)
            first = self._style.style_claim(chosen.supported, random.Random(seed))
            second = self._style.style_claim(chosen.unsupported, random.Random(seed))
            supported, unsupported, aside = first.text, second.text, first.aside or second.aside
            spans = chosen.changed
            if spans is not None:
                texts = [chosen.unsupported[start:end] for start, end in spans]
                spans = _find_in_order(second.claim, texts, len(second.before))
        marked = None if spans is None else tuple(EditedSpan(*span, chosen.reason) for span in spans)
        return QuestionPair(knowledge, supported, unsupported, marked, chosen.kind, aside)


def read_polar_statements(data: Path) -> list[str]:
    """What the yes/no questions of the training articles state, affirmed and denied; none where the file is missing."""
    rows = _read(data / "more" / "reading_yesno.jsonl.gz", "context", held_out=False)
    return [text for statements in _state_polar(rows) for text in (statements.supported, statements.unsupported)]


def find_changed(supported: str, unsupported: str) -> tuple[tuple[int, int], ...] | None:
    """The characters of the words of ``unsupported`` that differ from ``supported``.

    Empty when the two say the same, but for spelling; None when most words differ, or when only words are missing.

    >>> text = "109 degrees was the lowest temperature"
    >>> [text[start:end] for start, end in find_changed("109 degrees was the highest temperature", text)]
    ['lowest']
    >>> find_changed("It is called a colour.", "it is called a color")
    ()
    """
    old, new = _WORD.findall(supported.lower()), list(_WORD.finditer(unsupported))
    words = [match.group().lower() for match in new]
    matcher = difflib.SequenceMatcher(None, old, words, autojunk=False)
    changes = [(old[i:j], k, m) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]
    changes = [(before, k, m) for before, k, m in changes if not _are_spellings("".join(before), "".join(words[k:m]))]
    if not changes:
        return ()
    trimmed = [_trim(before, words, k, m) for before, k, m in changes]
    ranges = tuple((new[k].start(), new[m - 1].end()) for k, m in trimmed if m > k)
    count = sum(m - k for k, m in trimmed)
    return ranges if ranges and count <= MOST_CHANGED * len(words) else None


def _are_spellings(first: str, second: str) -> bool:
    """Whether two words are one word in two spellings or forms."""
    longest = max(len(first), len(second))
    return longest >= 4 and longest - len(first) <= 2 and difflib.SequenceMatcher(None, first, second).ratio() > 0.85


def _trim(before: Sequence[str], words: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """A range of ``words`` without those at its ends that ``before`` has in another spelling."""

    def is_known(word: str) -> bool:
        return any(_are_spellings(word, other) for other in before)

    while first < last and is_known(words[first]):
        first += 1
    while first < last and is_known(words[last - 1]):
        last -= 1
    return first, last


def _read(path: Path, key: str, held_out: bool) -> list[dict[str, Any]]:
    return [row for row in read_rows(path) if is_held_out(row[key]) == held_out] if path.is_file() else []


def _state(question: str, answer: str, context: str, start: int) -> str | None:
    """The statement of a question and its answer, with a capital and a full stop; None where no rule makes one."""
    if not answer or len(answer.split()) > LONGEST_ANSWER:
        return None
    bare = " ".join(question.split()).rstrip(" ?.")
    context_words = set(_WORD.findall(context.lower()))
    text = declare(bare, answer, find_preposition(context, start), context_words) if bare else None
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else None


def _state_unanswerable(rows: Sequence[Mapping[str, Any]], squad: Squad) -> list[Statements]:
    """The changed questions with their plausible answers, beside the questions that they were made from."""
    by_question = {(squad.contexts[q.paragraph], _squeeze(q.text)): q for q in squad.questions}
    statements = []
    for row in rows:
        context, paired = row["context"], row.get("paired_question") or ""
        question = by_question.get((context, _squeeze(paired)))
        plausible = row.get("plausible_answer") or ""
        start = context.find(plausible)
        if question is None or start < 0:
            continue
        supported = _state(question.text, question.answer, context, question.start)
        unsupported = _state(row["question"], plausible, context, start)
        if supported is None or unsupported is None:
            continue
        changed = find_changed(supported, unsupported)
        if changed == ():
            continue
        ranges = (
            (question.start, question.start + len(question.answer)),
            (start, start + len(plausible)),
        )
        reason = REASONS.get(row.get("cause") or "", "relation")
        statements.append(Statements(supported, unsupported, "unanswerable", context, ranges, reason, changed))
    return statements


def _state_arguments(rows: Sequence[Mapping[str, Any]]) -> list[Statements]:
    """Questions about one sentence, each with its own answer and with another one's of the same kind."""
    by_context: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_context.setdefault(row["context"], []).append(row)
    statements = []
    for context, group in by_context.items():
        ranges = ((0, len(context)),)
        for row in group:
            answers = row["answers"]
            words = set().union(*(word_set(text) for text in (*answers, row["question"])))
            others = sorted(
                {
                    answer
                    for other in group
                    for answer in other["answers"]
                    if answer_kind(answer) == answer_kind(answers[0]) and not word_set(answer) & words
                }
            )
            if not others:
                continue
            supported = _state(row["question"], answers[0], context, context.find(answers[0]))
            # One other answer for each question, the same in every run.
            wrong = others[len(row["id"]) % len(others)]
            unsupported = _state(row["question"], wrong, context, context.find(wrong))
            if supported is None or unsupported is None or len(supported.split()) < 5:
                continue
            match = _find_words(wrong, unsupported)
            reason = {"number": "number", "name": "entity"}.get(answer_kind(wrong), "relation")
            span = None if match is None else (match.span(),)
            statements.append(Statements(supported, unsupported, "argument", context, ranges, reason, span))
    return statements


def _state_polar(rows: Sequence[Mapping[str, Any]]) -> list[Statements]:
    """Yes/no questions whose subject is a pronoun or "there", stated and denied."""
    statements = []
    for row in rows:
        asked = _POLAR.fullmatch(row["question"].strip(" ?"))
        answers = [answer.lower() for answer in row["answers"]]
        if asked is None or answers not in (["yes"], ["no"]) or len(row["question"].split()) > LONGEST_QUESTION:
            continue
        verb, subject, rest = asked["verb"].lower(), asked["subject"].lower(), asked["rest"]
        negated = _NEGATED.get(verb, f"{verb}n't")
        stated = f"{subject} {rest}." if verb == "do" else f"{subject} {verb} {rest}."
        denied = f"{subject} {negated} {rest}."
        true, false = (stated, denied) if answers == ["yes"] else (denied, stated)
        changed = find_changed(true, false)
        if verb == "do" and false == stated:
            changed = None
        ranges = ((0, len(row["context"])),)
        first, second = (text[:1].upper() + text[1:] for text in (true, false))
        statements.append(Statements(first, second, "polar", row["context"], ranges, "negation", changed))
    return statements


def _squeeze(text: str) -> str:
    return re.sub(r"\W+", "", text.lower())


def _cut_passage(chosen: Statements, words: int, rng: random.Random) -> str:
    """The sentences that the statements rest on, and some beside them."""
    bounds = find_sentence_bounds(chosen.context)
    needed = [
        index
        for index, (start, end) in enumerate(bounds)
        if any(start < range_end and range_start < end for range_start, range_end in chosen.ranges)
    ]
    first, last = needed[0], needed[-1]
    for _ in range(rng.choice(SENTENCES) - 1):
        sides = [(first - 1, last)] if first > 0 else []
        sides += [(first, last + 1)] if last + 1 < len(bounds) else []
        if not sides:
            break
        wider = rng.choice(sides)
        if len(chosen.context[bounds[wider[0]][0] : bounds[wider[1]][1]].split()) > words:
            break
        first, last = wider
    return chosen.context[bounds[first][0] : bounds[last][1]].strip()


def _find_in_order(text: str, parts: Sequence[str], shift: int) -> tuple[tuple[int, int], ...] | None:
    """Where the parts are in ``text``, one after the other, moved by ``shift``; None when one is missing."""
    ranges, done = [], 0
    for part in parts:
        match = _find_words(part, text, done)
        if match is None:
            return None
        ranges.append((match.start() + shift, match.end() + shift))
        done = match.end()
    return tuple(ranges)


def _find_words(part: str, text: str, start: int = 0) -> re.Match[str] | None:
    """Where ``text`` has the words of ``part``, from ``start`` on; case is ignored, and a part of a word is none."""
    return re.compile(rf"(?<!\w){re.escape(part)}(?!\w)", re.IGNORECASE).search(text, start)

"""Draws pairs of a supported and an unsupported answer from written documents."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .documents import Document, WrittenAnswer, read_documents

TEXTS = Path(__file__).parent / "texts"
"""The documents of this project, a file for about ten."""
HELD_OUT = 10
"""One document of so many is held out of training."""
HELD_OUT_FILE = re.compile(r"(detail|long|tables|tools)_[89]\d")
"""The names, without suffix, of the files of a writer of whom nothing is trained on."""
COUNTS, COUNT_WEIGHTS = (1, 2, 3), (0.7, 0.2, 0.1)
"""Slots that an unsupported answer has wrong, and how often."""
DISTRACTED = 0.4
"""Share of the pairs whose knowledge gets a passage of another document, where the words suffice."""
STATES_NOTHING = 0.08
"""Share of the draws that give an answer that states nothing, where the document has one."""
ATTEMPTS = 20
_TIME = re.compile(
    r"\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(january|february|march|april|june|july|august|september|october|november"
    r"|december|noon|midnight|weekdays?|weekends?|today|tomorrow|yesterday|morning|evening|o'clock)\b|\d\s?[ap]\.?m\b|\d:\d\d|\b(1[5-9]|20)\d\d\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|half"
    r"|twice|third|quarter|dozen|double|first|second)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(not|no|never|none|without|cannot|nor|nothing)\b|n['’]t\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WrittenSpan:
    """Characters of a response that its knowledge does not support."""

    start: int
    end: int
    reason: str
    """One of the reasons of ``synthesis.structured_edits``."""


@dataclass(frozen=True, slots=True)
class WrittenRow:
    """A response to a history and a knowledge."""

    knowledge: tuple[str, ...]
    history: tuple[str, ...]
    response: str
    spans: tuple[WrittenSpan, ...]
    """The unsupported characters; none in a supported response."""
    states_nothing: bool = False


@dataclass(frozen=True, slots=True)
class WrittenPair:
    """A supported response, and the same with some slots unsupported or a response that states nothing."""

    first: WrittenRow
    second: WrittenRow


class WrittenPairs:
    """The documents of a split."""

    def __init__(self, documents: Sequence[Document]) -> None:
        """ValueError for no documents."""
        if not documents:
            raise ValueError("There are no written documents; give one at least.")
        self.documents = tuple(documents)
        """The documents, in the order of the files."""

    @classmethod
    def read(cls, split: str, folder: Path = TEXTS) -> WrittenPairs:
        """Read the documents of a split.

        Args:
            split: ``train``, or ``dev`` for the documents that are held out of training.
            folder: The files, ``*.txt``.

        Raises:
            ValueError: If a document is malformed, or the split has none.
        """
        documents = [
            document
            for path in sorted(folder.glob("*.txt"))
            for document in read_documents(path)
            if is_for_measuring(document, path) == (split == "dev")
        ]
        return cls(documents)

    def __len__(self) -> int:
        return len(self.documents)

    def draw(self, words: int, rng: random.Random) -> WrittenPair:
        """Draw a pair whose knowledge and response have about ``words`` words at most, if such documents are found."""
        for _ in range(ATTEMPTS):
            document = rng.choice(self.documents)
            answer = rng.choice([answer for answer in document.answers if not answer.states_nothing])
            room = words - _count_words([*document.passages, *answer.history, answer.supported])
            if room >= 0:
                break
        passages = list(document.passages)
        if rng.random() < DISTRACTED:
            other = rng.choice(rng.choice(self.documents).passages)
            if other not in passages and _count_words([other]) <= room:
                passages.insert(rng.randint(0, len(passages)), other)
        knowledge = tuple(passages)
        first = WrittenRow(knowledge, answer.history, answer.supported, ())
        empty = [other for other in document.answers if other.states_nothing]
        if empty and rng.random() < STATES_NOTHING:
            other_answer = rng.choice(empty)
            text = other_answer.supported
            return WrittenPair(first, WrittenRow(knowledge, other_answer.history, text, (), states_nothing=True))
        response, spans = falsify(answer, draw_slots(answer, rng), rng)
        return WrittenPair(first, WrittenRow(knowledge, answer.history, response, spans))


def is_for_measuring(document: Document, path: Path) -> bool:
    """Whether a document of a file is kept for measuring: its knowledge decides, or its writer."""
    if HELD_OUT_FILE.fullmatch(path.stem):
        return True
    digest = hashlib.sha256("\n".join(document.passages).encode()).digest()
    return digest[0] % HELD_OUT == 0


def draw_slots(answer: WrittenAnswer, rng: random.Random) -> frozenset[int]:
    """Draw the indices of the slots that become wrong; a group of slots does so together."""
    groups: dict[str, list[int]] = {}
    for index, slot in enumerate(answer.slots):
        groups.setdefault(slot.group or f"slot {index}", []).append(index)
    count = min(len(groups), rng.choices(COUNTS, COUNT_WEIGHTS)[0])
    return frozenset(index for members in rng.sample(list(groups.values()), count) for index in members)


def falsify(answer: WrittenAnswer, wrong: frozenset[int], rng: random.Random) -> tuple[str, tuple[WrittenSpan, ...]]:
    """The answer with the slots of ``wrong`` unsupported, and the unsupported characters."""
    text, spans = "", []
    for index, part in enumerate(answer.texts):
        text = _join(text, part)
        if index == len(answer.slots):
            break
        slot = answer.slots[index]
        if index not in wrong:
            text = _join(text, slot.supported)
            continue
        wording = rng.choice(slot.unsupported)
        before = _join(text, wording)
        offset = len(before) - len(wording) if before.endswith(wording) else len(text)
        start, end = _trim(before[offset:], slot.supported)
        start, end = offset + start, offset + end
        spans.append(WrittenSpan(start, end, name_reason(slot.supported, before[start:end])))
        text = before
    lead = len(text) - len(text.lstrip())
    shifted = (WrittenSpan(max(0, s.start - lead), s.end - lead, s.reason) for s in spans)
    return text.strip(), tuple(shifted)


def name_reason(supported: str, words: str) -> str:
    """The reason of unsupported words in the place of ``supported``: what a reader would say they are."""
    if not supported.strip():
        return "addition"
    if bool(_NEGATION.search(supported)) != bool(_NEGATION.search(words)):
        return "negation"
    if _TIME.search(words):
        return "date"
    if _NUMBER.search(words):
        return "number"
    return "entity" if re.search(r"(?<!^)\b[A-Z]\w", f" {words}") else "relation"


def _join(text: str, part: str) -> str:
    """Append without the double space, or the space before a stop, that an empty wording would leave."""
    if part and (text.endswith(" ") and part[0] in " .,;:!?"):
        text = text.rstrip(" ") if part[0] != " " else text[:-1]
    return text + part


def _trim(wording: str, supported: str) -> tuple[int, int]:
    """The characters of ``wording`` without the words that it begins and ends with as ``supported`` does."""
    words, others = list(re.finditer(r"\S+", wording)), supported.split()
    limit = min(len(words) - 1, len(others))
    before = _count_equal([word[0] for word in words], others, limit)
    after = _count_equal([word[0] for word in reversed(words)], others[::-1], limit - before)
    start, end = words[before].start(), words[len(words) - 1 - after].end()
    text = wording[start:end]
    inner = text.strip(",;:– ") or text
    start += text.index(inner)
    return start, start + len(inner)


def _count_equal(words: Sequence[str], others: Sequence[str], limit: int) -> int:
    """How many of the first ``limit`` words are equal."""
    return next((index for index in range(limit) if words[index] != others[index]), max(limit, 0))


def _count_words(texts: Iterable[str]) -> int:
    return sum(len(text.split()) for text in texts)

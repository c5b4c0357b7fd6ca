"""Reads written documents: knowledge as production has it, and answers in which each doubtful slot has two wordings.

A file has documents one after another::

    === clinic: parking
    The car park at the back has 24 spaces …
    ---
    A second passage of the knowledge.
    @@
    H: An earlier turn of the history, if there is one.
    Q: Can I park there?
    A: Yes, <<at the back||in front>> there is room for <<24||42||240>> cars.
    It may have several lines.
    N: Sorry, I could not find anything about that.

``<<true||false||other false>>`` is a slot: the first wording is supported by the knowledge, each other one is not.
``<<||false>>`` adds something that the knowledge does not say. Slots that begin with the same number and a colon,
``<<1:Anna||Ben>>``, change together; ``<<7:30||7:45>>`` is a time. ``A:`` begins an answer, ``N:`` an answer that
states nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TITLE, ANSWERS, PASSAGE = "=== ", "@@", "---"
SLOT = re.compile(r"<<(?:(\d):)?(.*?)>>", re.DOTALL)
SEPARATOR = "||"
_TIME = re.compile(r"\d{1,2}:\d\d(?!\d)")
TURN = re.compile(r"^(H|Q|A|N): ?", re.MULTILINE)
WRAPPED = re.compile(r"(?<=[^\n]{80})(?<![|`])\n(?=[^\s\-*|#`\d>•{}\[\]])")
"""The line break of a turn that was wrapped by its writer: after a long line and before no list, table or code."""


@dataclass(frozen=True, slots=True)
class WordingSlot:
    """A slot of an answer with a supported wording and unsupported ones."""

    supported: str
    unsupported: tuple[str, ...]
    group: str
    """Slots of one group change together; empty for a slot of its own."""


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """An answer as text and slots by turns; it begins and ends with a text, which may be empty."""

    history: tuple[str, ...]
    texts: tuple[str, ...]
    slots: tuple[WordingSlot, ...]
    states_nothing: bool

    @property
    def supported(self) -> str:
        """The answer with every slot supported."""
        middle = [f"{slot.supported}{text}" for slot, text in zip(self.slots, self.texts[1:], strict=True)]
        return tidy_spaces("".join([self.texts[0], *middle]))


@dataclass(frozen=True, slots=True)
class Document:
    """A knowledge and the answers that were written for it."""

    title: str
    passages: tuple[str, ...]
    answers: tuple[WrittenAnswer, ...]


def tidy_spaces(text: str) -> str:
    """Close the double space that an empty wording leaves; line breaks and indentation stay."""
    return re.sub(r"(?<=\S) {2,}(?=\S)", " ", re.sub(r" +([.,;:!?])(?=\s|$)", r"\1", text)).strip()


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a file.

    Args:
        path: The file.

    Raises:
        ValueError: If a document is not as the module says; it names the file and the title.
    """
    for block in re.split(rf"^{TITLE}", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, body = block.partition("\n")
        try:
            yield parse_document(title.strip(), body)
        except ValueError as error:
            raise ValueError(f"{path.name}, {title.strip()!r}: {error}") from error


def parse_document(title: str, body: str) -> Document:
    """Parse the lines of a document below its title; ValueError says what is wrong."""
    parts = re.split(rf"^{ANSWERS}[ \t]*$", body, flags=re.MULTILINE)
    if len(parts) != 2:
        raise ValueError(f"it has {len(parts) - 1} lines {ANSWERS!r}; give one, between the knowledge and the answers.")
    passages = tuple(text.strip() for text in re.split(rf"^{PASSAGE}[ \t]*$", parts[0], flags=re.MULTILINE))
    if not all(passages):
        raise ValueError("a passage of the knowledge is empty.")
    answers = tuple(_read_answers(parts[1]))
    if not answers:
        raise ValueError("it has no answer; begin one with 'A: '.")
    return Document(title, passages, answers)


def _read_answers(text: str) -> Iterator[WrittenAnswer]:
    pieces = TURN.split(text)
    if pieces[0].strip():
        raise ValueError(f"{pieces[0].strip()[:40]!r} is before the first turn; turns begin with H:, Q:, A: or N:.")
    history: list[str] = []
    for kind, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        turn = WRAPPED.sub(" ", piece.strip())
        if not turn:
            raise ValueError(f"a turn {kind}: is empty.")
        if kind == "H" or kind == "Q":
            history.append(turn)
            continue
        yield parse_answer(turn, tuple(history), kind == "N")
        history = []


def parse_answer(text: str, history: tuple[str, ...], states_nothing: bool) -> WrittenAnswer:
    """Parse an answer; ValueError says what is wrong with a slot of it."""
    texts, slots, end = [], [], 0
    matches = list(SLOT.finditer(text))
    groups = Counter(match[1] for match in matches if not _has_times(match))
    for match in matches:
        group, (supported, *unsupported) = match[1] or "", match[2].split(SEPARATOR)
        if _has_times(match) or (_TIME.match(f"{group}:{supported}") and groups[group] == 1):
            group, supported = "", f"{group}:{supported}"
        if not unsupported or not all(wording.strip() for wording in unsupported):
            raise ValueError(f"{match[0]!r} has no unsupported wording, or an empty one.")
        if supported.strip() in {wording.strip() for wording in unsupported}:
            raise ValueError(f"{match[0]!r} has the supported wording twice.")
        texts.append(text[end : match.start()])
        slots.append(WordingSlot(supported, tuple(unsupported), group))
        end = match.end()
    texts.append(text[end:])
    if any("<<" in part or ">>" in part for part in texts):
        raise ValueError(f"a slot of {text[:60]!r} is not closed or not opened.")
    if states_nothing and slots:
        raise ValueError(f"{text[:60]!r} states nothing, so it has no slots; begin it with 'A: '.")
    if not states_nothing and not slots:
        raise ValueError(f"{text[:60]!r} has no slot; give one at least.")
    return WrittenAnswer(history, tuple(texts), tuple(slots), states_nothing)


def _has_times(match: re.Match[str]) -> bool:
    """Whether what looks like a group is the hour of a time: another wording of the slot is a time too."""
    supported, *unsupported = match[2].split(SEPARATOR)
    return _TIME.match(f"{match[1] or ''}:{supported}") is not None and any(map(_TIME.match, unsupported))


if __name__ == "__main__":
    import sys

    for name in sys.argv[1:]:
        documents = list(read_documents(Path(name)))
        answers = [answer for document in documents for answer in document.answers]
        print(name, len(documents), "documents,", len(answers), "answers,", sum(len(a.slots) for a in answers), "slots")

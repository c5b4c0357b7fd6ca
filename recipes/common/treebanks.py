"""Treebanks and name corpora as sentences of one form.

Names have four types: PERSON, ORG, LOC (places, countries, buildings) and MISC (works, events, products, peoples), the
types that all corpora can be mapped to. Where a corpus leaves a type out, the words that may belong to it are marked
unknown (``-``) instead of "no name", so that one corpus does not contradict another.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

NAMES = ("PERSON", "ORG", "LOC", "MISC")

_TYPES = {
    "PERSON": "per person researcher writer musicalartist politician scientist",
    "ORG": "org organisation organization university band politicalparty corporation group",
    "LOC": "loc location country place",
    "MISC": "misc event election conference book poem album song magazine academicjournal award product programlang "
    "creative-work astronomicalobject",
}
_LABELS = {name: label for label, names in _TYPES.items() for name in names.split()}
# Terms (algorithms, genres, compounds) are mostly common nouns, which noun chunks find: names only when capitalised.
_GUM_LABELS = {"person": "PERSON", "organization": "ORG", "place": "LOC", "time": ""}
_NO_SPACE_BEFORE = re.compile(r"[.,;:!?%)\]}]|n't|'(s|m|d|ll|re|ve)?|’(s|m|d|ll|re|ve)?", re.IGNORECASE)
_NO_SPACE_AFTER = set("([{$£€#")
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "``": '"', "''": '"'}


@dataclass(frozen=True, slots=True)
class DependencyParse:
    """Universal part of speech, head (index; a root heads itself) and relation of every word."""

    pos: tuple[str, ...]
    heads: tuple[int, ...]
    deps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnnotatedSentence:
    """Words, the spaces after them, and what is known about them.

    ``names`` are BILUO tags, ``-`` where unknown. Sentences of one ``document`` may be joined; ``key`` is
    the id of a treebank's sentence.
    """

    words: tuple[str, ...]
    spaces: tuple[bool, ...]
    names: tuple[str, ...]
    parse: DependencyParse | None = None
    document: str = ""
    key: str = ""

    @property
    def text(self) -> str:
        """The sentence as it is written."""
        return "".join(word + " " * space for word, space in zip(self.words, self.spaces, strict=True)).rstrip()


def read_treebank(path: Path) -> list[AnnotatedSentence]:
    """The sentences of a CoNLL-U file, with the names that GUM's entity brackets give; unknown names elsewhere."""
    sentences, document = [], path.name
    for lines in _blocks(path):
        document = _comment(lines, "newdoc id") or document
        rows = [line.split("\t") for line in lines if not line.startswith("#")]
        glued = _last_of_joined(rows)
        rows = [row for row in rows if row[0].isdigit()]
        heads = [int(row[6]) for row in rows]
        parse = DependencyParse(
            pos=tuple(row[3] for row in rows),
            heads=tuple(head - 1 if head else index for index, head in enumerate(heads)),
            deps=tuple("ROOT" if row[7] == "root" else row[7] for row in rows),
        )
        sentence = AnnotatedSentence(
            words=tuple(row[1].replace(" ", "") for row in rows),
            spaces=tuple("SpaceAfter=No" not in row[9] and int(row[0]) not in glued for row in rows),
            names=("-",) * len(rows),
            parse=parse,
            document=document,
            key=_comment(lines, "sent_id"),
        )
        if any("Entity=" in line for line in lines) or path.name.startswith("gum"):
            sentence = replace(sentence, names=mark_unknown(sentence, _gum_names([row[9] for row in rows], parse)))
        sentences.append(sentence)
    return sentences


def read_columns(path: Path, word: int, tag: int) -> Iterator[AnnotatedSentence]:
    """The sentences of a column file with IOB tags of any corpus's types."""
    for lines in _blocks(path):
        rows = [line.split() for line in lines if not line.startswith("# ")]
        rows = [row for row in rows if len(row) > 1]
        if not rows:
            continue
        words = tuple(_ESCAPED.get(row[word], row[word]) for row in rows)
        yield AnnotatedSentence(
            words,
            _spaces(words),
            _biluo([row[tag] for row in rows], words),
            None,
            path.name,
            _comment(lines, "sent_id"),
        )


def _comment(lines: list[str], name: str) -> str:
    return next((line.split(" = ", 1)[1] for line in lines if line.startswith(f"# {name} = ")), "")


def _blocks(path: Path) -> Iterator[list[str]]:
    block: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                block.append(line.rstrip("\n"))
            elif block:
                yield block
                block = []
    if block:
        yield block


def _last_of_joined(rows: list[list[str]]) -> set[int]:
    """Ids of words with no space after them because they are part of a contraction, or end one without a space."""
    glued: set[int] = set()
    for row in rows:
        if "-" in row[0]:
            first, last = map(int, row[0].split("-"))
            glued.update(range(first, last + ("SpaceAfter=No" in row[9])))
    return glued


def list_names(sentence: AnnotatedSentence) -> Iterator[tuple[int, int, str]]:
    """First word, one past the last word, and type of every name."""
    start = 0
    for index, name in enumerate(sentence.names):
        if name[0] in "BU":
            start = index
        if name[0] in "LU":
            yield start, index + 1, name[2:]


def mark_unknown(sentence: AnnotatedSentence, names: tuple[str, ...]) -> tuple[str, ...]:
    """``names`` with ``-`` for the words outside a name that are proper nouns by tag, or lie between such."""
    if sentence.parse is None:
        return names
    pos = sentence.parse.pos
    proper = [
        p == "PROPN" or (i > 0 and p in ("ADJ", "X") and word[:1].isupper())
        for i, (p, word) in enumerate(zip(pos, sentence.words, strict=True))
    ]
    inner = {"ADP", "DET", "CCONJ", "PUNCT", "NUM", "PART"}

    def unknown(i: int) -> bool:
        before, after = i > 0 and proper[i - 1], i + 1 < len(pos) and proper[i + 1]
        return proper[i] or (pos[i] == "NUM" and (before or after)) or (pos[i] in inner and before and after)

    return tuple("-" if name == "O" and unknown(i) else name for i, name in enumerate(names))


_OPEN = re.compile(r"\((\d+)-(\w+)-[^()-]*-[^()-]*-[^()-]*-([\d,]+)-[^()]*")


def _gum_names(misc: list[str], parse: DependencyParse) -> tuple[str, ...]:
    """BILUO tags of the outermost mentions whose minimal span is a proper name."""
    names = ["O"] * len(misc)
    for index, fields in enumerate(misc):
        entity = next((f[len("Entity=") :] for f in fields.split("|") if f.startswith("Entity=")), "")
        for match in _OPEN.finditer(entity):
            label = _GUM_LABELS.get(match[2], "MISC")
            words = [index + int(number) - 1 for number in match[3].split(",")]
            inside = range(words[0], words[-1] + 1)
            if not label or words[-1] >= len(misc) or any(names[i] != "O" for i in inside):
                continue
            if all(parse.pos[i] in ("PROPN", "NUM", "PUNCT") for i in words) and parse.pos[words[0]] == "PROPN":
                _fill(names, words[0], words[-1] + 1, label)
    return tuple(names)


def _fill(names: list[str], start: int, end: int, label: str) -> None:
    if end - start == 1:
        names[start] = f"U-{label}"
    else:
        names[start:end] = [f"B-{label}", *[f"I-{label}"] * (end - start - 2), f"L-{label}"]


def _biluo(tags: list[str], words: tuple[str, ...]) -> tuple[str, ...]:
    names = ["O"] * len(tags)
    start = 0
    while start < len(tags):
        kind, end = tags[start][2:].lower(), start + 1
        while kind and end < len(tags) and tags[end][:1] == "I" and tags[end][2:].lower() == kind:
            end += 1
        term = kind and kind not in _LABELS
        if kind and not (term and " ".join(words[start:end]).islower()):
            _fill(names, start, end, _LABELS.get(kind, "MISC"))
        start = end
    return tuple(names)


def _spaces(words: tuple[str, ...]) -> tuple[bool, ...]:
    """The spaces an edited text has between these words."""
    spaces = []
    quoted = False
    for word, following in zip(words, (*words[1:], "."), strict=True):
        opens = word == '"' and not quoted
        quoted = quoted != (word == '"')
        closes = following == '"' and quoted
        spaces.append(not (opens or closes or word in _NO_SPACE_AFTER or _NO_SPACE_BEFORE.fullmatch(following)))
    return tuple(spaces)

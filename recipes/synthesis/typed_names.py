"""Finds names in edited English text by their capitals and says which type each has, without a model.

The type comes from lists (``common.name_lists``), from a word of the name ("River", "University"), or from a known
first name. Names are needed by the million here, and a wrong type costs little: a person's name replaced by a city's
is unsupported as well, only easier to find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..common.name_lists import collect_names
from ..common.treebanks import read_columns

_DATES_TEXT = """
january february march april may june july august september october november december monday tuesday wednesday
thursday friday saturday sunday spring summer autumn winter christmas easter
"""
_DATES = frozenset(_DATES_TEXT.split())
_PEOPLES_TEXT = """
american british english scottish welsh irish french german italian spanish portuguese dutch belgian swiss
austrian swedish norwegian danish finnish polish czech hungarian romanian bulgarian greek turkish russian
ukrainian soviet chinese japanese korean indian pakistani iranian iraqi israeli egyptian african asian
european australian canadian mexican brazilian argentine cuban roman persian arab jewish christian catholic
protestant muslim hindu buddhist latin
"""
_PEOPLES = frozenset(_PEOPLES_TEXT.split())
_ENDINGS = {
    "ORG": "university college school institute company corporation inc ltd records party league union association "
    "committee council commission agency bank army navy club orchestra band society foundation museum ministry "
    "department airlines studios press church team",
    "LOC": "river lake sea ocean bay island islands mountain mountains valley county city town state province region "
    "district street road avenue square park bridge airport station castle palace desert forest coast peninsula "
    "republic kingdom empire",
    "MISC": "war battle treaty act prize award awards cup championship championships olympics festival revolution",
}
_TYPE_OF_ENDING = {word: label for label, words in _ENDINGS.items() for word in words.split()}
_NOT_FIRST_TEXT = """
the a an in on at by for from to of and but or as if it its he she they we i you his her their our this that
these those there here when where while who which what how although though after before since during until
with without within under over between among through however also both all some many most several each every
other another one two three first second not no only then thus according because despite later early today
such unlike like once his upon about around along
"""
_NOT_FIRST = frozenset(_NOT_FIRST_TEXT.split())
_PIECE = r"[A-Z][\w'’-]*"
_NAME = re.compile(rf"(?<![\w'’-]){_PIECE}(?:(?: of| of the| de| von| van)? {_PIECE}|(?<= [A-Z])\. {_PIECE})*")


@dataclass(frozen=True, slots=True)
class TypedName:
    """A name in a text and its type: PERSON, ORG, LOC, MISC, ``people`` ("French") or ``other``."""

    start: int
    end: int
    text: str
    type: str


class NameTypes:
    """Finds names and their types."""

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        """``names`` are lists of names by type; they may be empty."""
        self._types: dict[str, str] = {}
        first_names: set[str] = set()
        for label in sorted(names, key=("MISC", "ORG", "PERSON", "LOC").index):
            for name in names[label]:
                words = name.split()
                if name[:1].isupper() and name.lower() not in _DATES | _PEOPLES:
                    self._types[name] = label
                if label == "PERSON" and 2 <= len(words) <= 3 and words[0].isalpha() and words[0][:1].isupper():
                    first_names.add(words[0])
        self._first_names = first_names - self._types.keys()

    @classmethod
    def read(cls, data: Path) -> NameTypes:
        """From the name corpora in ``data/ner``, as far as they are there, and FB15k-237."""
        return cls(read_names(data))

    def find(self, text: str) -> list[TypedName]:
        """The names of ``text`` in order; a capital that only begins a sentence is none."""
        out = []
        for match in _NAME.finditer(text):
            start, name = match.span()[0], match.group()
            initial = not re.search(r"[\w,;:(]\s$|[(\"“]$", text[max(0, start - 2) : start]) or start == 0
            while initial and (first := name.split(" ", 1))[0].lower() in _NOT_FIRST:
                if len(first) == 1:
                    name = ""
                    break
                start, name, initial = start + len(first[0]) + 1, first[1], False
                if not name[:1].isupper():
                    skip = re.match(r"(?:of the |of |de |von |van )", name)
                    start, name = (start + skip.end(), name[skip.end() :]) if skip else (start, "")
            name = re.sub(r"['’]s?$", "", name)
            label = self.classify(name) if len(name) > 1 else None
            # One capitalised word that begins a sentence is a name only if a list has it.
            if label is None or (initial and label == "other" and " " not in name):
                continue
            out.append(TypedName(start, start + len(name), name, label))
        return out

    def classify(self, name: str) -> str | None:
        """The type of a name; None for a date, which is not a name."""
        words = name.split()
        lowered = [word.lower() for word in words]
        if not words or lowered[0] in _DATES or (len(words) == 1 and name.isdigit()):
            return None
        if len(words) == 1 and lowered[0] in _PEOPLES:
            return "people"
        if name in self._types:
            return self._types[name]
        if lowered[-1] in _TYPE_OF_ENDING or lowered[0] in _TYPE_OF_ENDING:
            return _TYPE_OF_ENDING.get(lowered[-1]) or _TYPE_OF_ENDING[lowered[0]]
        if 2 <= len(words) <= 4 and words[0] in self._first_names:
            return "PERSON"
        return "other"


def read_names(data: Path) -> dict[str, list[str]]:
    """Lists of names by type (PERSON, LOC, ORG, MISC) from what ``NameTypes.read`` reads; {} without triples."""
    triples = data / "fb15k237_train.jsonl.gz"
    if not triples.is_file():
        return {}
    ner = data / "ner"
    paths = [*sorted(ner.glob("crossner_*.txt.gz")), *ner.glob("wikigold_wikigold.conll.txt.gz")]
    sentences = (sentence for path in paths for sentence in read_columns(path, word=0, tag=-1))
    return collect_names(sentences, triples)

"""Lists of names by type, from annotated sentences and from the subjects of a knowledge graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from .corpus import read_triple_rows
from .treebanks import NAMES, AnnotatedSentence, list_names

_FB_TYPES: dict[str, Callable[[str], bool]] = {
    "PERSON": lambda relation: relation.startswith("/people/person/"),
    "LOC": lambda relation: relation.startswith(("/location/location/", "/location/country/")),
    "MISC": lambda relation: relation.startswith(("/film/film/", "/tv/tv_program/")),
    "ORG": lambda relation: relation.startswith(("/education/educational_institution/", "/music/record_label/")),
}


def collect_names(sentences: Iterable[AnnotatedSentence], triples: Path) -> dict[str, list[str]]:
    """The names of the sentences and the subjects of FB15k-237 whose relations show their type, sorted, by type."""
    pools: dict[str, set[str]] = {label: set() for label in NAMES}
    for sentence in sentences:
        for start, end, label in list_names(sentence):
            pools[label].add(" ".join(sentence.words[start:end]))
    for subject, relation, _ in read_triple_rows(triples):
        for label, holds in _FB_TYPES.items():
            if holds(relation) and len(subject.split()) <= 6:
                pools[label].add(subject)
    return {label: sorted(pool) for label, pool in pools.items()}

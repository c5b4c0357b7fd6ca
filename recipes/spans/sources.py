"""Selects the corpora of the span finder's pipeline: to train on, to hold out, and to draw names from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.training import Example

from ..common.name_lists import collect_names
from ..common.treebanks import AnnotatedSentence, mark_unknown, read_columns, read_treebank


@dataclass(frozen=True)
class SpanSources:
    """All sentences, split; ``swaps`` maps a name type to names that may replace one another."""

    treebanks: list[AnnotatedSentence]
    names: list[AnnotatedSentence]
    dev: list[AnnotatedSentence]
    test: list[AnnotatedSentence]
    held_out: list[AnnotatedSentence]
    swaps: dict[str, list[str]]


def read_sources(data: Path) -> SpanSources:
    """Read the training sets: EWT and GUM; UNER, Wikigold, CrossNER and WNUT 17; FB15k-237 for names to swap in.

    Held out are EWT's development and test sentences (of the former only the names are trained on), WNUT's test set,
    and the last tenth of Wikigold and of every CrossNER file.
    """
    ner = data / "ner"
    dev = _add_names(
        read_treebank(data / "ud_ewt_dev.conllu.gz"), read_columns(ner / "uner_ewt_dev.iob2.gz", word=1, tag=2)
    )
    test = _add_names(
        read_treebank(data / "ud_ewt_test.conllu.gz"), read_columns(ner / "uner_ewt_test.iob2.gz", word=1, tag=2)
    )
    train = read_treebank(data / "ud_ewt_train.conllu.gz")
    trees = [replace(s, names=mark_unknown(s, ("O",) * len(s.words))) for s in train]
    trees += read_treebank(data / "gum.conllu.gz")
    names = [replace(s, parse=None) for s in dev]
    held_out: list[AnnotatedSentence] = []
    for path in [*sorted(ner.glob("crossner_*.txt.gz")), ner / "wikigold_wikigold.conll.txt.gz"]:
        rows = list(read_columns(path, word=0, tag=-1))
        cut = len(rows) - len(rows) // 10
        names += rows[:cut]
        held_out += rows[cut:]
    names += [*read_columns(ner / "wnut17_train.conll.gz", 0, -1), *read_columns(ner / "wnut17_dev.conll.gz", 0, -1)]
    held_out += read_columns(ner / "wnut17_test.conll.gz", 0, -1)
    return SpanSources(trees, names, dev, test, held_out, collect_names(names, data / "fb15k237_train.jsonl.gz"))


def make_spacy_example(nlp: Language, sentence: AnnotatedSentence) -> Example:
    """The sentence as a training example of spaCy: tokenized by spaCy, annotated on the corpus's own words."""
    annotation: dict[str, Any] = {"words": list(sentence.words), "entities": list(sentence.names)}
    annotation["spaces"] = list(sentence.spaces)
    if sentence.parse is not None:
        parse = sentence.parse
        annotation |= {"pos": list(parse.pos), "heads": list(parse.heads), "deps": list(parse.deps)}
    return Example.from_dict(nlp.make_doc(sentence.text), annotation)


def _add_names(trees: list[AnnotatedSentence], named: Iterable[AnnotatedSentence]) -> list[AnnotatedSentence]:
    """The trees with the names of the same sentences in ``named``; of another release, some words may differ."""
    names = {(other.key, other.words): other.names for other in named}
    return [replace(tree, names=mark_unknown(tree, names.get((tree.key, tree.words), tree.names))) for tree in trees]

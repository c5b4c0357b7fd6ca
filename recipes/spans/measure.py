"""Measures a trained pipeline: parse, names and spans, on edited text and on its lower-cased copy."""

from __future__ import annotations

import re
import statistics
import string
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from groundwire.runtime.models.span_finder import SpanFinder, universal_noun_chunks

from ..common.treebanks import NAMES, AnnotatedSentence, list_names
from .augment import lower_sentence
from .sources import SpanSources, make_spacy_example

_ARTICLES = re.compile(r"\b(a|an|the|in|our)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
Spans = Iterable[tuple[Any, ...]]


def measure_pipeline(directory: Path, sources: SpanSources) -> dict[str, Any]:
    """Measurements of the pipeline saved in ``directory``; scores are percentages.

    ``spans`` compares the span finder's spans with the names and noun chunks of the gold annotation, without numbers
    and dates, which EWT does not mark, and without MISC, which UNER does not. ``names_given`` is the share of gold
    names that the finder returns as a span of any type: all that Q² needs.
    """
    nlp = spacy.load(directory)
    finder = SpanFinder.load(directory)
    forms: dict[str, Callable[[AnnotatedSentence], AnnotatedSentence]] = {"cased": lambda s: s, "lower": lower_sentence}
    report: dict[str, Any] = {}
    for form, shaped in forms.items():
        test, held_out = [shaped(s) for s in sources.test], [shaped(s) for s in sources.held_out]
        report[form] = {
            "dev": _score_parse(nlp, [shaped(s) for s in sources.dev]),
            "test": _score_parse(nlp, test),
            "names_uner_test": _score_names(nlp, test, NAMES[:3]),
            "names_held_out": _score_names(nlp, held_out, NAMES),
            "names_wnut17": _score_names(nlp, [s for s in held_out if s.document.startswith("wnut17")], NAMES),
            "spans": _score_spans(nlp, finder, test),
            "names_given": _share_of_names_given(finder, test),
        }
    files = [path for path in directory.rglob("*") if path.is_file() and path.name not in ("log.jsonl", "report.json")]
    report["cpu_ms_per_text"] = _measure_cpu_ms(finder, sources.test)
    report["bytes"] = sum(path.stat().st_size for path in files)
    report["labels"] = {name: list(nlp.get_pipe(name).labels) for name in ("morphologizer", "parser", "ner")}
    return report


def _score_parse(nlp: Language, sentences: list[AnnotatedSentence]) -> dict[str, float]:
    """Accuracy of parts of speech and of attachment, without punctuation, with spaCy's own tokens."""
    scores = nlp.evaluate([make_spacy_example(nlp, sentence) for sentence in sentences])
    return {name: _percent(scores[key]) for name, key in (("pos", "pos_acc"), ("uas", "dep_uas"), ("las", "dep_las"))}


def _score_names(nlp: Language, sentences: list[AnnotatedSentence], labels: tuple[str, ...]) -> dict[str, float]:
    """Precision, recall and F1 of names of these types: same characters, same type."""

    def predict_names(sentence: AnnotatedSentence) -> Spans:
        for entity in nlp(sentence.text).ents:
            yield entity.start_char, entity.end_char, entity.label_

    return _score_f1(
        (_select_labels(predict_names(s), labels), _select_labels(_list_gold_names(s), labels)) for s in sentences
    )


def _share_of_names_given(finder: SpanFinder, sentences: list[AnnotatedSentence]) -> float:
    covered = total = 0
    for sentence in sentences:
        gold = {(start, end) for start, end, _ in _list_gold_names(sentence)}
        total += len(gold)
        covered += len(gold & {(span.start, span.end) for span in finder.find(sentence.text)}) if gold else 0
    return _percent(covered / max(1, total))


def _list_gold_names(sentence: AnnotatedSentence) -> Spans:
    """First character, one past the last, and type of every name."""
    ranges, offset = [], 0
    for word, space in zip(sentence.words, sentence.spaces, strict=True):
        ranges.append((offset, offset + len(word)))
        offset += len(word) + space
    return [(ranges[start][0], ranges[end - 1][1], label) for start, end, label in list_names(sentence)]


def _score_spans(nlp: Language, finder: SpanFinder, sentences: list[AnnotatedSentence]) -> dict[str, float]:
    """Precision, recall and F1 of spans; two are equal when their normalised texts are."""

    def predict_spans(sentence: AnnotatedSentence) -> Spans:
        kinds = {"noun_chunk", *(f"ent:{label}" for label in NAMES[:3])}
        return [(_normalise_answer(span.text),) for span in finder.find(sentence.text) if span.kind in kinds]

    def list_gold_spans(sentence: AnnotatedSentence) -> Spans:
        assert sentence.parse is not None
        parse = sentence.parse
        names = [(start, end) for start, end, _ in list_names(sentence)]
        doc = Doc(
            nlp.vocab,
            words=list(sentence.words),
            spaces=list(sentence.spaces),
            pos=list(parse.pos),
            heads=list(parse.heads),
            deps=list(parse.deps),
        )
        spans = [doc[start:end] for start, end in names] + list(universal_noun_chunks(doc))
        return {(_normalise_answer(span.text),) for span in spans if span.text.lower() != "i"}

    return _score_f1((set(predict_spans(s)), set(list_gold_spans(s))) for s in sentences)


def _select_labels(spans: Spans, labels: tuple[str, ...]) -> set[tuple[Any, ...]]:
    return {item for item in spans if item[-1] in labels}


def _score_f1(pairs: Iterable[tuple[set[Any], set[Any]]]) -> dict[str, float]:
    counts: Counter[str] = Counter()
    for predicted, gold in pairs:
        counts.update(both=len(predicted & gold), found=len(predicted), gold=len(gold))
    precision, recall = counts["both"] / max(1, counts["found"]), counts["both"] / max(1, counts["gold"])
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    return {"precision": _percent(precision), "recall": _percent(recall), "f1": _percent(f1)}


def _normalise_answer(text: str) -> str:
    """Q²'s comparison form of an answer (the runtime has the fast one)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def _measure_cpu_ms(finder: SpanFinder, sentences: list[AnnotatedSentence]) -> float:
    """Median CPU milliseconds of a call on the 200 texts nearest to 20 words."""
    times = []
    for text in [s.text for s in sorted(sentences, key=lambda s: abs(len(s.words) - 20))[:200]]:
        started = time.thread_time()
        finder.find(text)
        times.append(time.thread_time() - started)
    return round(1000 * statistics.median(times), 2)


def _percent(share: float) -> float:
    return round(100 * share, 2)

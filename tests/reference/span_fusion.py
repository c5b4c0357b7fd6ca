"""Fusion of unsupported spans in which each word looks at all evidence and at all other words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from groundwire.engine import MetricResult, UnsupportedSpan
from groundwire.engine.metrics import find
from groundwire.engine.text.words import WORD, words
from groundwire.engine.verdict.spans import MARKED, SILENT, Evidence, MarkedWord, mark_word, rank_evidence, weigh


def fuse_spans(response: str, results: Iterable[MetricResult]) -> tuple[UnsupportedSpan, ...]:
    """Return what ``groundwire.engine.verdict.spans.fuse_spans`` returns."""
    metrics = [(result, find(result.name)) for result in results if result.status == "scored"]
    evidence = [
        weigh(span, metric) for result, metric in metrics if metric is not None for span in metric.list_spans(result)
    ]
    alone = len({metric.family for _, metric in metrics if metric is not None}) == 1
    if not alone:
        spoken = [{word.lower() for word in WORD.findall(response[item.start : item.end])} for item in evidence]
        evidence = [item for item, said in zip(evidence, spoken, strict=True) if said - SILENT]
    evidence.sort(key=rank_evidence)
    all_words = _mark_words(response, evidence)
    marked = [word for word in all_words if word.evidence and (alone or word.marked)]
    kept = [word for word in marked if not _has_more_precise_neighbour(word, marked)]
    if not alone:
        sentences = [word.evidence[0] for word in kept if word.precision == 0]
        stop_words = [
            word
            for word in all_words
            if not word.content and word.weight >= MARKED and word.evidence[0] in sentences and word not in kept
        ]
        kept = sorted((*kept, *stop_words), key=lambda word: word.start)
    return tuple(_merge(response, all_words, kept))


def _mark_words(response: str, evidence: Sequence[Evidence]) -> list[MarkedWord]:
    content = [word for word in words(response) if word.content]
    return [
        mark_word(
            match.span(),
            any(word.start < match.end() and match.start() < word.end for word in content),
            tuple(item for item in evidence if item.span.start < match.end() and match.start() < item.span.end),
        )
        for match in WORD.finditer(response)
    ]


def _has_more_precise_neighbour(word: MarkedWord, marked: Sequence[MarkedWord]) -> bool:
    return any(
        other.precision > word.precision
        and any(item.span.start <= other.start < item.span.end for item in word.evidence)
        for other in marked
    )


def _merge(response: str, all_words: Sequence[MarkedWord], kept: Sequence[MarkedWord]) -> list[UnsupportedSpan]:
    groups: list[list[MarkedWord]] = []
    for word in kept:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and all_words.index(word) == all_words.index(last) + 1
            and _agree(word.evidence[0].span, last.evidence[0].span)
        ):
            groups[-1].append(word)
        else:
            groups.append([word])
    merged: list[UnsupportedSpan] = []
    for group in groups:
        top, start, end = group[0].evidence[0].span, group[0].start, group[-1].end
        covered = [word for word in all_words if word.start < top.end and top.start < word.end]
        if covered == group and all(word.evidence[0].span == top for word in group):
            start, end = max(min(start, top.start), merged[-1].end if merged else 0), max(end, top.end)
        metrics = tuple(dict.fromkeys(item.span.metric for word in group for item in word.evidence))
        merged.append(msgspec.structs.replace(top, text=response[start:end], start=start, end=end, metrics=metrics))
    return merged


def _agree(span: UnsupportedSpan, other: UnsupportedSpan) -> bool:
    about_words = span.reason in ("not_in_knowledge", "less_likely")
    return span == other or (about_words and (span.metric, span.reason) == (other.metric, other.reason))

"""Dialogue NLI (Welleck et al. 2019): ``dialogue_nli_*.jsonl``, which hold one JSON array in spite of their name.

``sentence1`` is an utterance and ``sentence2`` a persona sentence (its ``dtype`` ends in ``_up``) or another sentence
of the kind, so the first is the response and the second its knowledge. Only "positive" is consistent: the Q² paper (its
§5.3) takes neutral pairs as inconsistent. It does not say which sentence it asks about; this order follows the data.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.datasets.source import (
    Format,
    Items,
    Source,
    convert_entries,
    convert_record,
    parse_choice,
    strip_texts,
)

LABELS = {"positive": 1, "neutral": 0, "negative": 0}


class _Pair(msgspec.Struct, frozen=True):
    label: str
    sentence1: str
    sentence2: str
    dtype: str = ""
    id: str | None = None


def _sniff(source: Source) -> bool:
    return {"sentence1", "sentence2", "label"} <= set(source.first)


def _read(source: Source) -> Items:
    return convert_entries(source.entries(), lambda number, entry: _build_example(number, convert_record(_Pair, entry)))


def _build_example(number: int, pair: _Pair) -> Iterator[Example]:
    yield Example(
        id=pair.id or str(number),
        response=pair.sentence1,
        knowledge=strip_texts(pair.sentence2),
        label=parse_choice("label", pair.label, LABELS),
        source=pair.dtype,
    )


DNLI = Format("JSON of Dialogue NLI: dialogue_nli_verified_test.jsonl, …", _sniff, _read)

"""The tab-separated files of BEGIN (google/BEGIN-dataset), of 2022 and of the first release in 2021.

Only "Fully attributable" (2021: "entailment") is consistent, as PMI-Faith reads it (its §5.1). "Generic" is
therefore inconsistent, and labelled as stating nothing that can be verified. Cells are not quoted in these files.
"""

from __future__ import annotations

from collections.abc import Iterator

from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.datasets.source import Format, Items, Source, convert_entries, parse_choice, strip_texts

SECOND = ("model_name", "data_source", "knowledge", "message", "response", "begin_label")
FIRST = ("evidence", "previous turn", "response", "gold label")
LABELS = {
    "fully attributable": 1,
    "not fully attributable": 0,
    "entailment": 1,
    "hallucination": 0,
    "contradiction": 0,
    "off-topic": 0,
    "generic": 0,
}
TAB = "\t"


def _sniff(source: Source) -> bool:
    return source.has(SECOND, TAB) or source.has(FIRST, TAB)


def _read(source: Source) -> Items:
    first = source.has(FIRST, TAB)
    return convert_entries(source.table(FIRST if first else SECOND, TAB), _read_first if first else _read_second)


def _read_second(number: int, cells: dict[str, str]) -> Iterator[Example]:
    yield _build_example(
        number, cells["knowledge"], cells["message"], cells["response"], cells["begin_label"],
        cells["model_name"], cells["data_source"],
    )  # fmt: skip


def _read_first(number: int, cells: dict[str, str]) -> Iterator[Example]:
    yield _build_example(
        number, cells["evidence"], cells["previous turn"], cells["response"], cells["gold label"], "", "wow"
    )


def _build_example(
    number: int, knowledge: str, message: str, response: str, label: str, system: str, source: str
) -> Example:
    return Example(
        id=str(number),
        response=response,
        knowledge=strip_texts(knowledge),
        history=strip_texts(message),
        label=parse_choice("the label", label, LABELS),
        verifiable=False if label.strip().lower() == "generic" else None,
        system=system,
        source=source,
    )


BEGIN = Format("TSV of BEGIN: begin_dev_wow.tsv, begin_test_wow.tsv, …", _sniff, _read)

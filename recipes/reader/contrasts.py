"""Public sets in which rows differ in little: one claim and two revisions of its evidence, or one text and two claims.

Only sets whose licence allows to ship weights are here: VitaminC (CC BY-SA 3.0; its official test split, so no score
on it is quoted), InfoTabS in prose (MIT) and ARES' synthetic answers (Apache-2.0; weak labels).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.corpus import read_rows
from ..compact.multitask_examples import MultitaskExample
from ..compact.multitask_model import HEADS
from ..compact.public_pairs import ENTAILMENT
from .rows import AnswerRow, label_ranges

TITLED = 0.5
"""Share of the groups of titled evidence whose title is before it."""
CONTRASTED = 0.9
"""Share of the groups that are contrasts, where a set has others."""


@dataclass(frozen=True, slots=True)
class ContrastSet:
    """A file of labelled rows, and what the rows of a group share."""

    file: str
    share: float
    """Share of all groups."""
    keys: tuple[tuple[str, ...], ...]
    """The fields that a group shares, for each kind of group."""
    weights: tuple[float, ...]
    """Weights of the kinds of groups."""
    tokens: bool = False
    """Whether all words of the supported answers are supported, as the token head's label."""


_REVISIONS = (("case", "hypothesis"), ("premise",))
SETS = {
    "vitaminc": ContrastSet("more/nli_vitaminc.jsonl.gz", 0.12, _REVISIONS, (0.7, 0.3)),
    "vitaminc_synthetic": ContrastSet("more/nli_vitaminc_synthetic.jsonl.gz", 0.05, _REVISIONS, (0.7, 0.3)),
    "infotabs": ContrastSet("more/nli_infotabs_prose.jsonl.gz", 0.04, (("premise",),), (1.0,), tokens=True),
    "ares": ContrastSet("more/faith_ares_synthetic.jsonl.gz", 0.01, (("knowledge",),), (1.0,)),
}


class ContrastRows:
    """The rows of a set in groups."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], definition: ContrastSet) -> None:
        """ValueError for no rows."""
        if not rows:
            raise ValueError(f"{definition.file} has no rows; give at least one.")
        self._rows = rows
        self._set = definition
        self._groups = [_group(rows, keys) for keys in definition.keys]

    def draw(self, rng: random.Random) -> tuple[AnswerRow, AnswerRow]:
        """Draw two rows of a group with different labels, or any two where the set has no such group."""
        groups = rng.choices(self._groups, self._set.weights)[0]
        if groups and rng.random() < CONTRASTED:
            group = rng.choice(groups)
            first = rng.choice(group)
            second = rng.choice([row for row in group if row["label"] != first["label"]])
        else:
            first, second = rng.choice(self._rows), rng.choice(self._rows)
        titled = rng.random() < TITLED
        return self._make(first, titled), self._make(second, titled)

    def _make(self, row: Mapping[str, Any], titled: bool) -> AnswerRow:
        example = make_example(row, titled, self._set.tokens)
        return AnswerRow(example, label_ranges(example), tuple(row.get("history", ()))[-1:])


def make_example(row: Mapping[str, Any], titled: bool, tokens: bool) -> MultitaskExample:
    """The example of a row of inference or of faithfulness; ``tokens`` labels the words of supported answers."""
    if "premise" in row:
        entailed, labels = row["label"] == ENTAILMENT, {"nli": row["label"]}
        first, second = row["premise"], row["hypothesis"]
    else:
        entailed, labels = row["label"] == 1, {}
        first, second = row["knowledge"], row["response"]
    if titled and (title := clean_title(row.get("title", ""))):
        first = f"{title}: {first}"
    labels["consistency"] = HEADS["consistency"][not entailed]
    return MultitaskExample(first, second, row.get("source", ""), labels, () if tokens and entailed else None)


def clean_title(title: str) -> str:
    """The title of a page in Wikipedia's dump, as it is printed."""
    for coded, plain in (("-LRB-", "("), ("-RRB-", ")"), ("-COLON-", ":"), ("_", " ")):
        title = title.replace(coded, plain)
    return " ".join(title.replace("( ", "(").replace(" )", ")").split())


def read_contrasts(data: Path) -> dict[str, ContrastRows]:
    """The sets in ``data``, as far as they are there."""
    paths = {name: data / definition.file for name, definition in SETS.items()}
    return {name: ContrastRows(list(_read(path)), SETS[name]) for name, path in paths.items() if path.is_file()}


def _read(path: Path) -> Iterator[dict[str, Any]]:
    for row in read_rows(path):
        answer = row.get("response", row.get("hypothesis", ""))
        if answer.strip():
            yield row


def _group(rows: Sequence[Mapping[str, Any]], keys: tuple[str, ...]) -> list[list[Mapping[str, Any]]]:
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [group for group in groups.values() if len({row["label"] for row in group}) > 1]

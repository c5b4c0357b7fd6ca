"""Which labelled rows a bundle is fitted to, and how they are divided: what is alike stays in one part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold

from groundwire.engine import Score
from groundwire.engine.schema.base import Record
from groundwire.runtime.errors import InvalidRequest

from ..calibration.fusion import MIN_CLASS
from ..datasets.examples import Example

FOLDS = 5
"""Parts of the rows; each is held out once."""
MIN_ROWS = 40
"""Rows of each label that are needed: a fit without one fold needs ``fusion.MIN_CLASS`` of each."""


class RowCounts(Record, frozen=True):
    """What became of the rows."""

    total: int
    unlabelled: int
    """Without a label consistent or inconsistent."""
    repeated: int
    """With the knowledge and the response of an earlier row, and its label."""
    contradictory: int
    """With the knowledge and the response of another row, and another label; all of them are left out."""
    unscored: int
    """That the detector could not score, as texts that are too long."""
    consistent: int
    """Used rows with this label."""
    inconsistent: int
    groups: int
    """Used rows that share a passage of knowledge are one group."""


class LabelledRow(NamedTuple):
    """A row that is used."""

    set: str
    example: Example
    score: Score
    group: int


def check_labels(sets: Mapping[str, Sequence[Example]]) -> None:
    """Raise InvalidRequest, before anything is scored, when a label has fewer than ``MIN_ROWS`` rows."""
    labels = Counter(example.label for examples in sets.values() for example in examples)
    _check_labels(RowCounts(labels.total(), labels[None], 0, 0, 0, labels[1], labels[0], 0), {})


def select_rows(
    sets: Mapping[str, Sequence[Example]], scores: Mapping[str, Sequence[Score]], role: str
) -> tuple[list[LabelledRow], RowCounts]:
    """The labelled rows that ``role`` scored, each text once, and the counts of all.

    InvalidRequest when fewer than ``MIN_ROWS`` rows of a label are left, or when they are about fewer than ``FOLDS``
    different knowledge texts.
    """
    pairs = [
        (name, example, score)
        for name in sets
        for example, score in zip(sets[name], scores[name], strict=True)
        if example.label is not None
    ]
    labels: dict[object, set[int | None]] = {}
    for _, example, _ in pairs:
        labels.setdefault(_identify(example), set()).add(example.label)
    seen: set[object] = set()
    used: list[tuple[str, Example, Score]] = []
    repeated = contradictory = 0
    unscored: Counter[str] = Counter()
    for name, example, score in pairs:
        identity = _identify(example)
        if len(labels[identity]) > 1:
            contradictory += 1
        elif identity in seen:
            repeated += 1
        elif (result := score.metrics.get(role)) is None or result.status != "scored":
            unscored["not computed" if result is None else result.status] += 1
        else:
            used.append((name, example, score))
        seen.add(identity)
    groups = group_by_passage([example for _, example, _ in used])
    rows = [LabelledRow(*pair, group) for pair, group in zip(used, groups, strict=True)]
    total = sum(map(len, sets.values()))
    counts = RowCounts(
        total=total,
        unlabelled=total - len(pairs),
        repeated=repeated,
        contradictory=contradictory,
        unscored=unscored.total(),
        consistent=sum(row.example.label == 1 for row in rows),
        inconsistent=sum(row.example.label == 0 for row in rows),
        groups=len(set(groups)),
    )
    _check_labels(counts, unscored)
    _check_groups(rows)
    return rows, counts


def _check_labels(counts: RowCounts, unscored: Mapping[str, int]) -> None:
    left_out = {
        "have no label": counts.unlabelled,
        "repeat another row": counts.repeated,
        "have two labels": counts.contradictory,
        f"have no score ({', '.join(unscored)})": counts.unscored,
    }
    reasons = "; ".join(f"{count} {reason}" for reason, count in left_out.items() if count)
    without = f" Left out: {reasons}." if reasons else ""
    by_label = {"consistent": counts.consistent, "inconsistent": counts.inconsistent}
    if not all(by_label.values()):
        only = next((name for name, count in by_label.items() if count), None)
        what = f"are all {only}" if only else "have no label that can be used"
        raise InvalidRequest(
            f"The {counts.total} rows {what}; a fit needs rows of both labels, at least {MIN_ROWS} of each.{without}"
        )
    if min(by_label.values()) < MIN_ROWS:
        lacking = [f"{MIN_ROWS - count} more {name}" for name, count in by_label.items() if count < MIN_ROWS]
        raise InvalidRequest(
            f"There are {counts.consistent} consistent and {counts.inconsistent} inconsistent rows; at least "
            f"{MIN_ROWS} of each are needed, a few hundred are a good start. Label {' and '.join(lacking)}.{without}"
        )


def _check_groups(rows: Sequence[LabelledRow]) -> None:
    for label, name in ((1, "consistent"), (0, "inconsistent")):
        groups = [row.group for row in rows if row.example.label == label]
        about = len(set(groups))
        if about < FOLDS:
            raise InvalidRequest(
                f"The {len(groups)} {name} rows are about {about} different knowledge texts (rows that share a "
                f"passage count as one); at least {FOLDS} are needed, so that rows can be held out whose knowledge was "
                "not seen."
            )


def split_folds(rows: Sequence[LabelledRow], seed: int) -> NDArray[np.int64]:
    """The fold, 0 to ``FOLDS`` - 1, of each row; rows of a group share one, and folds have alike shares of the labels.

    InvalidRequest when a label is so unevenly distributed over the groups that a fold has all of it, or nearly.
    """
    strata = [f"{row.set}/{row.example.label}" for row in rows]
    splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    folds = np.zeros(len(rows), dtype=np.int64)
    for number, (_, part) in enumerate(splitter.split(np.zeros(len(rows)), strata, [row.group for row in rows])):
        folds[part] = number
    labels = np.array([row.example.label for row in rows])
    for fold in range(FOLDS):
        outside = labels[folds != fold]
        if min((outside == 1).sum(), (outside == 0).sum()) < MIN_CLASS or not (folds == fold).any():
            raise InvalidRequest(
                "Too many rows share their knowledge, so most rows of a label would be held out at once. Label "
                "responses to more pieces of knowledge."
            )
    return folds


def group_by_passage(examples: Sequence[Example]) -> list[int]:
    """A number for each example; examples that share a passage, directly or through others, have the same.

    Case and spaces are ignored.
    """
    parents = list(range(len(examples)))

    def find(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    first: dict[str, int] = {}
    for index, example in enumerate(examples):
        for passage in example.knowledge:
            other = first.setdefault(_normalize(passage), index)
            parents[find(index)] = find(other)
    return [find(index) for index in range(len(examples))]


def _identify(example: Example) -> tuple[tuple[str, ...], str]:
    return tuple(map(_normalize, example.knowledge)), _normalize(example.response)


def _normalize(text: str) -> str:
    return " ".join(text.lower().split())

"""Public labelled pairs for the multi-task NLI model: which sets, how often, and which heads each trains.

Only sets whose licence allows to ship weights are here. A pair is drawn together with another of the same premise and
another label, where the set has one: what differs between them is what the model should learn.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.corpus import read_rows
from ..synthesis.qa_to_statement import declare

ENTAILMENT, NOT_ENTAILMENT = "entailment", "not_entailment"


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A knowledge and a response with the inference label between them."""

    premise: str
    hypothesis: str
    label: str
    """entailment, neutral, contradiction, or not_entailment where the set does not say which of the two."""


@dataclass(frozen=True, slots=True)
class PublicSet:
    """A file of pairs in the directory of training sets."""

    file: str
    share: float
    """Share of the public pairs."""
    consistency: bool = True
    """Whether its pairs train consistency too: an entailed response is consistent, any other is not."""
    tokens: bool = True
    """Whether all words of its entailed responses are supported, as the token head's label."""


SETS = {
    "nli_train": PublicSet("nli_train.jsonl.gz", 0.12),
    "snli_mnli": PublicSet("more/nli_snli_mnli_dev.jsonl.gz", 0.34),
    "fever": PublicSet("more/nli_fever.jsonl.gz", 0.2, tokens=False),
    "fm2": PublicSet("more/nli_fm2.jsonl.gz", 0.07, tokens=False),
    "negation": PublicSet("more/nli_negation.jsonl.gz", 0.04),
    "curriculum": PublicSet("more/nli_curriculum_drop_help_cosmos.jsonl.gz", 0.05, consistency=False, tokens=False),
    "ambient": PublicSet("more/nli_ambient.jsonl.gz", 0.02, consistency=False, tokens=False),
    "folio": PublicSet("more/nli_folio.jsonl.gz", 0.01, consistency=False, tokens=False),
    "conflictqa": PublicSet("more/faith_conflictqa.jsonl.gz", 0.07, tokens=False),
    "halueval": PublicSet("more/faith_halueval_qa_part.jsonl.gz", 0.01),
    "wikisplit": PublicSet("more/nli_wikisplit.jsonl.gz", 0.07),
}
"""The sets. Evidence of FEVER and Fool Me Twice often names its subject by a pronoun, so tokens are not labelled there;
labels of the mined sets are not trusted with consistency."""
LONGEST = 900
"""Characters of a pair; longer ones do not fit the window."""


class PublicPairs:
    """Draws two pairs of one set."""

    def __init__(self, sets: Mapping[str, list[LabelledPair]]) -> None:
        """``sets`` are pairs by the name of their set in ``SETS``; empty ones are left out. ValueError for none."""
        filled = {name: pairs for name, pairs in sets.items() if pairs}
        if not filled:
            raise ValueError(f"There are no public pairs; give at least one of {', '.join(SETS)}.")
        self._sets = {name: _Grouped(pairs) for name, pairs in filled.items()}
        self._shares = [SETS[name].share for name in self._sets]

    @classmethod
    def read(cls, data: Path, split: str = "train") -> PublicPairs:
        """The sets in ``data``, as far as they are there; ``split`` dev has only the development pairs of nli_train."""
        if split != "train":
            return cls({"nli_train": list(_read(data / f"nli_{split}.jsonl.gz", "nli_train"))})
        paths = {name: data / public.file for name, public in SETS.items()}
        return cls({name: list(_read(path, name)) for name, path in paths.items() if path.is_file()})

    def draw(self, rng: random.Random) -> tuple[str, tuple[LabelledPair, LabelledPair]]:
        """Draw a set and two of its pairs, with different labels where it has them."""
        name = rng.choices(list(self._sets), self._shares)[0]
        return name, self._sets[name].draw(rng)


class _Grouped:
    """The pairs of a set by label, and the pairs whose premises have several labels."""

    def __init__(self, pairs: list[LabelledPair]) -> None:
        self._by_label: dict[str, list[LabelledPair]] = {}
        by_premise: dict[str, list[LabelledPair]] = {}
        for pair in pairs:
            self._by_label.setdefault(pair.label, []).append(pair)
            by_premise.setdefault(pair.premise, []).append(pair)
        self._contrasts = [group for group in by_premise.values() if len({pair.label for pair in group}) > 1]

    def draw(self, rng: random.Random) -> tuple[LabelledPair, LabelledPair]:
        if self._contrasts and rng.random() < 0.7:
            group = rng.choice(self._contrasts)
            first = rng.choice(group)
            return first, rng.choice([pair for pair in group if pair.label != first.label])
        labels = list(self._by_label)
        one_label, other_label = rng.sample(labels, 2) if len(labels) > 1 else labels * 2
        return rng.choice(self._by_label[one_label]), rng.choice(self._by_label[other_label])


def _read(path: Path, name: str) -> Iterator[LabelledPair]:
    for row in read_rows(path):
        pair = _make_pair(row, name)
        if pair is not None and len(pair.premise) + len(pair.hypothesis) <= LONGEST:
            yield pair


def _make_pair(row: dict[str, Any], name: str) -> LabelledPair | None:
    """The pair of a row; None for rows that are left out."""
    match name:
        case "conflictqa":
            return LabelledPair(row["knowledge"], row["response"], ENTAILMENT if row["label"] else "contradiction")
        case "halueval":
            return _make_halueval_pair(row)
        case "wikisplit" if row["label"] != ENTAILMENT:
            # A half does not entail the whole, but its length alone says so.
            return None
    return LabelledPair(row["premise"], row["hypothesis"], row["label"])


def _make_halueval_pair(row: dict[str, Any]) -> LabelledPair | None:
    """The right answers as statements, because wrong ones are whole sentences; None where no rule makes one."""
    response = row["response"]
    if not row["label"]:
        return LabelledPair(row["knowledge"], response, NOT_ENTAILMENT) if len(response.split()) >= 5 else None
    question = " ".join(row["history"][-1].split()).rstrip(" ?.")
    words = set(re.findall(r"[\w'’-]+", row["knowledge"].lower()))
    statement = response if len(response.split()) >= 5 else declare(question, response.rstrip("."), "", words)
    return LabelledPair(row["knowledge"], f"{statement.rstrip('.')}.", ENTAILMENT) if statement else None

"""What a table is measured on, and why none of its cells could be: what metrics or kind of set the runs lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from . import conv_fever, pmi_faith, q2, ratings
from .runs import ScoredRun


class Needs(NamedTuple):
    """What at least one cell of a table needs."""

    examples: str
    """The kind of examples, and the authors' files that have them."""
    metrics: tuple[str, ...] = ()
    """One of them at least; empty where the table needs no run of ``groundwire evaluate``."""
    options: tuple[str, ...] = ()
    """Options of ``groundwire tables`` that name the scored examples."""


DATA, DEV = "--data", "--dev"
_Q2 = tuple(q2.BASELINES.values())
_PMI = tuple(pmi_faith.METRICS.values())
_PARTS = (
    f"{q2.PART_EXAMPLES} responses of each of dodeca and MemNet with each label (dodeca_consistent.csv, "
    "dodeca_inconsistent.csv, memnet_consistent.csv, memnet_inconsistent.csv)"
)
_PAIRS = (
    "sets with two or more contexts of exactly two responses, one consistent and one inconsistent, that both have a "
    "value: cross_annotation.csv, or rows with `context`"
)
_BEGIN = f"responses of BEGIN, whose source is one of {', '.join(pmi_faith.SOURCES.values())} (begin_*.tsv)"
_DECODED = "reports of `python -m groundwire.recipes decoding-table`"
_CROWD = "labelled responses with the retriever, model and decoding that gave them (gt.csv, knn.csv, dpr.csv)"

NEEDS: Mapping[str, Needs] = MappingProxyType(
    {
        "q2-2": Needs(_PARTS, _Q2, (DATA,)),
        "q2-3": Needs(_PARTS, ("q2", "q2_no_nli", "nli"), (DATA,)),
        "q2-4": Needs(_PAIRS, _Q2),
        "q2-5": Needs("graded responses of USR's systems (tc_usr_data.json)", ("q2", "q2_no_nli"), (DATA,)),
        "q2-6": Needs("examples of Dialogue NLI (dialogue_nli_verified_test.jsonl)", ("q2", "nli"), (DATA,)),
        "q2-7": Needs(_PAIRS, ("q2",)),
        "q2-8": Needs(_PARTS, ("q2", "q2_no_nli"), (DATA,)),
        "q2-9": Needs(_PARTS, ("q2",), (DATA,)),
        "q2-10": Needs("responses for which Q² kept a question", ("q2",), (DATA,)),
        "q2-11": Needs(_PARTS, (), (DATA,)),
        "pmi-1": Needs(_BEGIN, _PMI, (DATA, DEV)),
        "pmi-2": Needs(_BEGIN, _PMI, (DATA, DEV)),
        "pmi-3": Needs(_BEGIN, _PMI, (DATA,)),
        "pmi-4": Needs(_DECODED),
        "pmi-5": Needs(_DECODED),
        "pmi-9": Needs(_BEGIN, _PMI, (DEV,)),
        "conv-fever-2": Needs(_CROWD, (), (DATA,)),
        "conv-fever-5": Needs(
            "responses that experts labelled (factual_dataset_expert.csv)", tuple(conv_fever.EXPERT.values()), (DATA,)
        ),
        "conv-fever-7": Needs(_CROWD, (), (DATA,)),
        **{
            f"conv-fever-{number}": Needs(_CROWD, (detector,), (DATA,)) for number, detector in conv_fever.CROWD.items()
        },
        "nph-3": Needs("files of `groundwire refine --feqa --json`"),
        "nph-4": Needs("reports of `python -m groundwire.recipes measure-retriever`"),
        "nph-5": Needs("reports of `python -m groundwire.recipes measure-critic`"),
        **{
            table: Needs('files of ratings, `{"system": ROW, "ratings": [COLUMN, …]}` per line')
            for table in ratings.RATED
        },
    }
)
"""What each table needs."""


def explain_empty(table: str, runs: Sequence[ScoredRun]) -> str:
    """Say in a sentence or two why no cell of ``table`` could be measured on ``runs``."""
    needs = NEEDS[table]
    metrics = sorted({name for run in runs if run.results for figures in run.results.sets for name in figures.metrics})
    absent = [
        option
        for option, sets in ((DATA, [run.sets for run in runs]), (DEV, [run.development for run in runs]))
        if option in needs.options and not any(sets)
    ]
    reasons = []
    if needs.metrics and not set(needs.metrics) & set(metrics):
        wanted = f"one of the metrics {', '.join(needs.metrics)}" if len(needs.metrics) > 1 else needs.metrics[0]
        reasons.append(f"needs {wanted}; the runs have {', '.join(metrics) or 'no metric'}")
    if absent:
        reasons.append(f"needs the scored examples: give their files with {' and '.join(absent)}")
    if not reasons:
        reasons.append("finds none of the examples that it is about")
    return f"No figure of {table} was measured. The table {', and '.join(reasons)}. It is measured on {needs.examples}."

"""Tables 3 to 5 of the Neural Path Hunter paper: refinement, the retriever and the critic.

They are measured on files: what ``groundwire refine --feqa --json`` prints (table 3), and the reports of
``groundwire.recipes measure-retriever`` and ``measure-critic`` (4 and 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from groundwire.repair import Refinement
from groundwire.runtime.errors import InvalidRequest

from .published import TABLES
from .runs import Measured, ScoredRun, match_variants

REFINED = " + NPH"
"""Follows the name of the generator in the rows of table 3 after refinement."""
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "nph-3": tuple(row.name for row in TABLES["nph-3"].rows if REFINED in row.name),
    "nph-4": tuple(row.name for row in TABLES["nph-4"].rows),
    "nph-5": ("RoBERTa-Intrin-Extrin", "RoBERTa-Extrin", "RoBERTa-Intrin"),
}
"""The rows that a file may be, by table; the first one may be left out."""
GIVE_REFINED = "Give a file of `groundwire refine --feqa --json`."
HELD_OUT = "opendialkg_test"
"""The paper's test part in the reports."""


class _FeqaScores(msgspec.Struct, frozen=True):
    before: float | None
    after: float | None


class _RefinementLine(msgspec.Struct, frozen=True):
    """A line of ``groundwire refine --json``."""

    refinement: Refinement
    feqa: _FeqaScores | None = None


def measure_nph_table_3(runs: Sequence[ScoredRun]) -> Measured:
    """Mean FeQA, 0–100, and the share of hallucinated responses, in per cent, before and after refinement."""
    measured = Measured()
    for variant, run in match_variants(runs, VARIANTS["nph-3"]):
        lines = _read_refinements(run)
        critiques = [
            (line.refinement.before.hallucinated, (line.refinement.after or line.refinement.before).hallucinated)
            for line in lines
        ]
        checked = [(before, after) for before, after in critiques if before is not None and after is not None]
        if lines and len(checked) < len(lines):
            measured.note(f"{variant}: the critic read {len(checked)} of {len(lines)} responses.")
        scores = [
            (line.feqa.before, line.feqa.after)
            for line in lines
            if line.feqa is not None and line.feqa.before is not None and line.feqa.after is not None
        ]
        if scores and len(scores) < len(lines):
            measured.note(f"{variant}: FeQA scored {len(scores)} of {len(lines)} responses.")
        for index, row in enumerate((variant.partition(REFINED)[0], variant)):
            measured.put(row, "FeQA", _mean_percent([pair[index] for pair in scores]))
            measured.put(row, "Critic", _mean_percent([pair[index] for pair in checked]))
    return measured


def measure_nph_table_4(runs: Sequence[ScoredRun]) -> Measured:
    """Perplexity of the language model, hits@k, mean rank and mean reciprocal rank on gold responses."""
    measured = Measured()
    for variant, run in match_variants(runs, VARIANTS["nph-4"]):
        figures = _read_report(run, measured, "measure-retriever", "gold")
        measured.put(variant, "PPL", figures.get("ppl"))
        ranks = figures.get("retriever", {})
        for column in ("Hits@1", "Hits@3", "Hits@10", "MR", "MRR"):
            measured.put(variant, column, ranks.get(column.lower()))
    return measured


def measure_nph_table_5(runs: Sequence[ScoredRun]) -> Measured:
    """Precision, recall and F1 of the critic's entities, in per cent."""
    measured = Measured()
    for variant, run in match_variants(runs, VARIANTS["nph-5"]):
        figures = _read_report(run, measured, "measure-critic", "critic").get("entity", {})
        for column in ("Precision", "Recall", "F1"):
            if column.lower() in figures:
                measured.put(variant, column, 100 * figures[column.lower()])
    return measured


def _read_refinements(run: ScoredRun) -> list[_RefinementLine]:
    if run.file is None:
        return []
    try:
        lines = msgspec.json.Decoder(_RefinementLine).decode_lines(run.file.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"{run.file} cannot be read: {error}. {GIVE_REFINED}") from error
    if not lines:
        raise InvalidRequest(f"{run.file} is empty. {GIVE_REFINED}")
    return lines


def _read_report(run: ScoredRun, measured: Measured, command: str, part: str) -> dict[str, Any]:
    """The figures of ``part`` on OpenDialKG's test part, else on the first set of the report."""
    if run.file is None:
        return {}
    try:
        report = msgspec.json.decode(run.file.read_bytes(), type=dict[str, dict[str, dict[str, Any]]])
        name = HELD_OUT if HELD_OUT in report else next(iter(report))
        figures = report[name][part]
    except (OSError, msgspec.MsgspecError, KeyError, StopIteration) as error:
        raise InvalidRequest(
            f"{run.file} has no figures of {part!r}. Give what `python -m groundwire.recipes {command}` printed."
        ) from error
    measured.note(f"{Path(run.file).name}: {figures.get('responses', 0)} responses of {name}.")
    return figures


def _mean_percent(values: Sequence[float]) -> float | None:
    return 100 * sum(values) / len(values) if values else None

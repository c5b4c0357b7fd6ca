"""Tables 4 and 5 of PMI-Faith: PMI-Decode by data set and method, and by its two settings.

They are measured on reports of ``groundwire.recipes decoding-table``, in which 0 is the weight of plain decoding.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from groundwire.runtime.errors import InvalidRequest

from .runs import Measured, ScoredRun, match_variants

DATASETS = ("MultiDoc2Dial", "TopicalChat", "FaithDial")
"""Variants of table 4."""
METHODS = {"beam": "Beam Search", "beam_sampling": "Beam Sampling"}


class _Mean(msgspec.Struct, frozen=True):
    value: float | None


class _Cell(msgspec.Struct, frozen=True):
    alpha: float
    pmi_top_p: float
    pmi_normalised: float | None
    rouge_l: _Mean
    q2: _Mean | None = None
    """None, like ``bleu``, in reports of older versions."""
    bleu: float | None = None

    @property
    def trade(self) -> float:
        """What the paper chooses the settings by: faithfulness plus relevance."""
        return (self.pmi_normalised or 0.0) + (self.rouge_l.value or 0.0)


class _Setup(msgspec.Struct, frozen=True):
    method: str
    rows: str
    generator: str


class _Report(msgspec.Struct, frozen=True):
    setup: _Setup
    cells: tuple[_Cell, ...]


def measure_pmi_table_4(runs: Sequence[ScoredRun]) -> Measured:
    """Plain decoding beside PMI-Decode at the report's best settings."""
    measured = Measured()
    for dataset, run in match_variants(runs, DATASETS):
        report = _read_report(run, measured)
        if report is None or report.setup.method not in METHODS:
            continue
        plain = [cell for cell in report.cells if cell.alpha == 0]
        decoded = [cell for cell in report.cells if cell.alpha > 0]
        row = f"{dataset} {METHODS[report.setup.method]}"
        if plain:
            _put_figures(measured, f"{row} Stand.", max(plain, key=lambda cell: cell.pmi_top_p))
        if decoded:
            best = max(decoded, key=lambda cell: cell.trade)
            measured.note(f"{row} PMI-D: α {best.alpha:g}, top-p {best.pmi_top_p:g}, chosen on the same responses.")
            _put_figures(measured, f"{row} PMI-D", best)
    return measured


def measure_pmi_table_5(runs: Sequence[ScoredRun]) -> Measured:
    """Normalised PMI-Faith and ROUGE-L at every α and top-p."""
    measured = Measured()
    for run in runs:
        report = _read_report(run, measured)
        for cell in report.cells if report else ():
            row = f"p = {cell.pmi_top_p:g}"
            measured.put(row, f"PMIF α={cell.alpha:g}", cell.pmi_normalised)
            measured.put(row, f"RougeL α={cell.alpha:g}", cell.rouge_l.value)
    return measured


def _put_figures(measured: Measured, row: str, cell: _Cell) -> None:
    measured.put(row, "PMI-F", cell.pmi_normalised)
    measured.put(row, "Q²", cell.q2.value if cell.q2 else None)
    measured.put(row, "BLEU", cell.bleu)
    measured.put(row, "RougeL", cell.rouge_l.value)


def _read_report(run: ScoredRun, measured: Measured) -> _Report | None:
    if run.file is None:
        return None
    try:
        report = msgspec.json.decode(run.file.read_bytes(), type=_Report)
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRequest(
            f"{run.file} cannot be read: {error}. Give what `python -m groundwire.recipes decoding-table` wrote."
        ) from error
    measured.note(f"{run.file.name}: {report.setup.generator} on {report.setup.rows}.")
    return report

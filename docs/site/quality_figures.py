"""Looks up figures in the pages of quality, for the pages that quote them."""

from __future__ import annotations

from markdown_tables import format_table, split_row
from repository_files import DOCS

QUALITY_PAGES = ("quality_default.md", "quality.md")
"""Where figures are looked up, in this order: the default verdict's page, and the page of all metrics."""


def read_quality(metric: str) -> dict[str, str]:
    """Return a metric's ROC-AUC of every labelled set, from the first page whose table has it; empty without one."""
    for page in QUALITY_PAGES:
        lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
        header = next(i for i, line in enumerate(lines) if line.startswith("| metric |"))
        for line in lines[header + 2 :]:
            if not line.startswith("|"):
                break
            cells = split_row(line)
            if cells[0] == f"`{metric}`":
                return dict(zip(split_row(lines[header])[1:], (cell.strip("*") for cell in cells[1:]), strict=True))
    return {}


def write_quality_table(metrics: str) -> str:
    """Return a table of ROC-AUC: a row for each labelled set, a column for each metric, the verdict's last."""
    names = [*metrics.split(), "verdict"]
    figures = {name: read_quality(name) for name in names}
    missing = [name for name, by_set in figures.items() if not by_set]
    if missing:
        raise ValueError(f"No page of quality has a row for {', '.join(missing)}.")
    titles = ["the verdict" if name == "verdict" else f"`{name}`" for name in names]
    sets = [name for name in figures["verdict"] if all(name in by_set for by_set in figures.values())]
    rows = [[labelled_set, *(figures[name][labelled_set] for name in names)] for labelled_set in sets]
    return format_table(["ROC-AUC", *titles], rows)


def read_figure(cells: str) -> str:
    """Return the last cell of the first row of a page of quality that begins with ``cells``, parted by semicolons."""
    begin = [cell.strip() for cell in cells.split(";")]
    for page in QUALITY_PAGES:
        for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
            row = split_row(line)
            if line.startswith("|") and row[: len(begin)] == begin:
                return row[-1]
    raise ValueError(f"No page of quality has a row that begins with {' | '.join(begin)}.")


DOMAINS = {
    "answers about articles of Wikipedia": ("q2_wow", "begin_wow_test"),
    "chat about films": ("begin_cmu_dev",),
    "chat about news and trivia": ("begin_tc_dev",),
    "answers with knowledge that a search found": ("factual_crowd_knn", "factual_crowd_dpr"),
    "answers with the right knowledge, by crowd workers": ("factual_crowd_gt",),
    "claims and one sentence of evidence": ("fever_symmetric_test",),
    "inference between turns of a dialogue": ("clasp_dnli_test",),
    "summaries of news, a sentence each": ("falke2019_pairs",),
    "true sentences, one name, number or word edited": ("edits",),
}
"""Kinds of text, and the labelled sets of them."""


def read_decisions() -> dict[str, dict[str, str]]:
    """Return the row of every labelled set in the table of the default verdict's decisions, by column."""
    lines = (DOCS / QUALITY_PAGES[0]).read_text(encoding="utf-8").splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("| set | examples |"))
    titles, rows = split_row(lines[header]), {}
    for line in lines[header + 2 :]:
        if not line.startswith("|"):
            break
        cells = split_row(line)
        rows[cells[0]] = dict(zip(titles, cells, strict=True))
    return rows


def write_domains() -> str:
    """Return what the default verdict does to each kind of text: a row for each labelled set."""
    decisions = read_decisions()
    titles = ("ROC-AUC", "false positive rate", "false negative rate")
    rows = [
        [domain, f"`{name}`", *(decisions[name][title] for title in titles)]
        for domain, names in DOMAINS.items()
        for name in names
    ]
    return format_table(["kind of text", "labelled set", *titles], rows)


def write_range(title: str) -> str:
    """Return the lowest and the highest of a rate over the labelled sets, as whole percents."""
    rates = [float(row[title].partition("%")[0]) for row in read_decisions().values()]
    return f"{min(rates):.0f} % and {max(rates):.0f} %"

"""Expands the marks of a page, each written ``{{ name argument }}``, and writes the note for readers of its source.

- ``{{ code PATH }}`` is replaced by a Python file.
- ``{{ include PATH }}`` is replaced by a Markdown file outside ``docs/``, its links rewritten.
- ``{{ quality METRICS }}`` is replaced by the metrics' ROC-AUC, from the pages of quality.
- ``{{ facts METRICS }}`` is replaced by table rows from the metrics' records.
- ``{{ figure CELLS }}`` is replaced by the last cell of the row of a page of quality that begins with these cells.
- ``{{ domains }}`` and ``{{ range RATE }}`` are replaced by figures of the default verdict (quality_default.md).
- ``{{ cost ROLES }}`` and the other names in ``TABLES`` are replaced by figures from bench/results.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

import benchmark_tables
import metric_facts
import profile_rates
import quality_figures
import repository_files

TABLES: dict[str, Callable[..., str]] = {
    "code": repository_files.include_code,
    "cost": metric_facts.write_role_cost,
    "domains": quality_figures.write_domains,
    "facts": metric_facts.write_facts,
    "figure": quality_figures.read_figure,
    "growth": benchmark_tables.write_growth,
    "host": benchmark_tables.write_host,
    "include": repository_files.include,
    "latency": benchmark_tables.write_latency,
    "nph": benchmark_tables.write_nph_times,
    "padding": benchmark_tables.write_padding,
    "paper_sizes": benchmark_tables.write_paper_sizes,
    "peers": benchmark_tables.write_peers,
    "processes": benchmark_tables.write_processes,
    "profiles": profile_rates.write_profiles,
    "q2_time": metric_facts.write_q2_time,
    "quality": quality_figures.write_quality_table,
    "range": quality_figures.write_range,
    "roles": metric_facts.write_role_times,
    "scaling": benchmark_tables.write_scaling,
    "serving": benchmark_tables.write_serving,
    "start": benchmark_tables.write_start,
    "stopped": profile_rates.write_stopped,
    "targets": benchmark_tables.write_targets,
    "tiers": benchmark_tables.write_tiers,
    "values_cost": metric_facts.write_values_cost,
}
QUALITY_PATHS = tuple(f"docs/{page}" for page in quality_figures.QUALITY_PAGES)
SOURCES = {
    "domains": QUALITY_PATHS[:1],
    "facts": ("engine/metrics",),
    "figure": QUALITY_PATHS,
    "quality": QUALITY_PATHS,
    "range": QUALITY_PATHS[:1],
}
"""What the text of a mark is made from; of ``FILE_MARKS`` it is the argument, and of all others ``bench/results``."""
FILE_MARKS = ("code", "include")
MARK = re.compile(r"\{\{ (\w+)(?: ([^}]+?))? \}\}")
NOTE = re.compile(r"^> \*\*This is the source of a page\.\*\* .*\n\n", re.MULTILINE)
"""The note of a page with marks, which the site leaves out."""


def expand(markdown: str) -> str:
    """Replace every ``{{ name argument }}`` of a page by what ``TABLES`` makes of it, and remove the note."""
    return MARK.sub(lambda mark: TABLES[mark[1]](*([mark[2]] if mark[2] else [])), NOTE.sub("", markdown))


def write_note(path: str, markdown: str) -> str:
    """Return the note that a page of ``docs/`` has below its title, for readers of its source; empty without a mark."""
    sources: set[str] = set()
    for name, argument in MARK.findall(markdown):
        sources.update([argument] if name in FILE_MARKS else SOURCES.get(name, ("bench/results",)))
    if not sources:
        return ""
    folder = posixpath.dirname(f"docs/{path}")
    links = ", ".join(f"[{source}]({posixpath.relpath(source, folder)})" for source in sorted(sources))
    return (
        f"> **This is the source of a page.** The site replaces each `{{{{ … }}}}` by text or a table, from {links}. "
        "To see the page, run `pip install '.[docs]'` and `mkdocs serve`.\n\n"
    )

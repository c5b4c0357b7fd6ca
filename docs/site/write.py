"""Writes the generated parts of the pages: ``python docs/site/write.py``; with ``--check`` it only compares.

A generated part is between two comments, which neither a forge nor the site shows::

    <!-- begin: stopped default strict -->28 of the 50 wrong answers …<!-- end -->

``begin`` is followed by the name of a function in ``PARTS`` and its arguments. A part that begins on the line after its
comment is a block (a table, code) and keeps an empty line on both sides.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from devices import HEADER, describe_agreement, digest_models, list_devices, read_reports
from field_docs import write_field_docs

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FIELD_DOCS = ROOT / "interfaces" / "service" / "fields.json"
"""What help and OpenAPI say about fields, from the strings below them in the source."""
PAGES = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
PART = re.compile(r"<!-- begin: (\w+)((?: [\w./]+)*) -->(\n?)(.*?)<!-- end -->", re.DOTALL)

DOMAINS = {
    "q2_wow": "answers about articles of Wikipedia",
    "begin_wow_test": "answers about articles of Wikipedia",
    "begin_cmu_dev": "chat about films",
    "begin_tc_dev": "chat about news and trivia",
    "factual_crowd_knn": "answers with knowledge that a search found",
    "factual_crowd_dpr": "answers with knowledge that a search found",
    "factual_crowd_gt": "answers with the right knowledge, by crowd workers",
    "fever_symmetric_test": "claims and one sentence of evidence",
    "clasp_dnli_test": "inference between turns of a dialogue",
    "falke2019_pairs": "summaries of news, a sentence each",
    "edits": "true sentences, one name, number or word edited",
}
"""The labelled sets, and the kind of text in each."""
PROFILES = ("strict", "balanced", "lenient")
ANSWERS, WRONG_ANSWERS = 1000, 50
"""The example in which rates are counted: 1,000 answers, 50 of them wrong."""


def load_results(name: str) -> Any:
    """Return a benchmark's results."""
    return json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def format_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *rows))


def format_ms(value: float) -> str:
    """Return milliseconds as a table shows them: one decimal below 10."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def read_decisions() -> dict[str, dict[str, str]]:
    """Return the row of every labelled set in the table of the default verdict's decisions, by column."""
    lines = (DOCS / "quality_default.md").read_text(encoding="utf-8").splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("| set | examples |"))
    rows: dict[str, dict[str, str]] = {}
    titles = [cell.strip() for cell in lines[header].strip("|").split("|")]
    for line in lines[header + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows[cells[0]] = dict(zip(titles, cells, strict=True))
    return rows


def read_rates(title: str) -> list[float]:
    """Return an error rate of every labelled set, in percent."""
    return [float(row[title].partition("%")[0]) for row in read_decisions().values()]


def write_range(*words: str) -> str:
    """Return the lowest and the highest of a rate over the labelled sets."""
    rates = read_rates(" ".join(words))
    return f"{min(rates):.0f} % and {max(rates):.0f} %"


def write_median(*words: str) -> str:
    """Return the median of a rate over the labelled sets."""
    return f"{statistics.median(read_rates(' '.join(words))):.0f} %"


def write_domains() -> str:
    """Return what the default verdict does to each kind of text: a row for each labelled set."""
    decisions = read_decisions()
    titles = ("ROC-AUC", "false positive rate", "false negative rate")
    rows = [[domain, f"`{name}`", *(decisions[name][title] for title in titles)] for name, domain in DOMAINS.items()]
    return format_table(["kind of text", "labelled set", *titles], rows)


def count_stopped() -> dict[tuple[str, str], tuple[float, float]]:
    """Return the shares of wrong and of right answers that are called inconsistent, by metrics and profile."""

    def share(counts: dict[str, int]) -> float:
        return counts.get("inconsistent", 0) / sum(counts.values())

    return {
        (run["metrics"], profile["profile"]): (
            share(profile["labels"]["inconsistent"]),
            share(profile["labels"]["consistent"]),
        )
        for run in load_results("profiles")["runs"]
        for profile in run["profiles"]
    }


def write_stopped(metrics: str, profile: str) -> str:
    """Return how many wrong and right answers of the example are stopped."""
    wrong, right = count_stopped()[metrics, profile]
    right_answers = ANSWERS - WRONG_ANSWERS
    return (
        f"{WRONG_ANSWERS * wrong:.0f} of the {WRONG_ANSWERS} wrong answers and {right_answers * right:.0f} "
        f"of the {right_answers} right ones"
    )


def write_balanced_accuracy(metrics: str, profile: str) -> str:
    """Return the mean of the shares of wrong answers that are stopped and of right answers that pass."""
    wrong, right = count_stopped()[metrics, profile]
    return f"{(wrong + 1 - right) / 2:.0%}".replace("%", " %")


def write_profiles() -> str:
    """Return the error rates of each profile, and what they mean for the example."""
    rows = []
    for metrics in ("default", "fast"):
        for profile in PROFILES:
            wrong, right = count_stopped()[metrics, profile]
            stopped = (WRONG_ANSWERS * wrong, (ANSWERS - WRONG_ANSWERS) * right)
            shares = (f"{100 * right:.0f} %", f"{100 - 100 * wrong:.0f} %")
            accuracy = write_balanced_accuracy(metrics, profile)
            rows.append([f"`{metrics}`", f"`{profile}`", *shares, accuracy, *(f"{count:.0f}" for count in stopped)])
    header = ["metrics", "profile", "false positive rate", "false negative rate", "balanced accuracy"]
    return format_table(
        [*header, f"of {WRONG_ANSWERS} wrong, stopped", f"of {ANSWERS - WRONG_ANSWERS} right, stopped"], rows
    )


def write_ms(name: str) -> str:
    """Return the median time of a metric or of a group's verdict."""
    rows = {row["name"]: row["wall"]["p50_ms"] for row in load_results("tiers")["results"]}
    return f"{format_ms(rows[name])} ms"


def write_tiers() -> str:
    """Return quality and time of every metric and of the groups' verdicts, from fast to slow."""
    document = load_results("tiers")
    rows = [
        [
            f"`{row['name']}`" if row["kind"] == "metric" else f"**verdict of `{row['name']}`**",
            *(format_ms(row["wall"][key]) for key in ("p50_ms", "p95_ms")),
            format_ms(row["processor_ms"]),
            f"{row['scored']:.0%}",
            f"{row['roc_auc']:.3f}",
        ]
        for row in document["results"]
    ]
    machine, settings = document["machine"], document["settings"]
    note = f"{settings['responses']} responses of {settings['sets']}; {machine['cores']} cores, {machine['processor']}."
    return format_table(["metric", "p50 ms", "p95 ms", "processor ms", "scored", "ROC-AUC"], rows) + f"\n\n{note}"


def write_serving() -> str:
    """Return what the service takes beside its engine."""
    document = load_results("serving")
    rows = [
        [
            str(level["callers"]),
            *(format_ms(level[side][key]) for side in ("engine", "service") for key in ("p50_ms", "p99_ms")),
            f"{level['engine_per_second']:.0f}",
            f"{level['service_per_second']:.0f}",
        ]
        for level in document["results"]["callers"]
    ]
    titles = [f"{side} {p} ms" for side in ("engine", "service") for p in ("p50", "p99")]
    return format_table(["callers", *titles, "engine, responses/s", "service, responses/s"], rows)


def write_peers() -> str:
    """Return the median time of each model in each runtime."""
    results = load_results("peers")["results"]
    models = list(dict.fromkeys((row["model"], row["input"]) for row in results))
    times = {(row["model"], row["input"], row["side"]): row["wall"]["p50_ms"] for row in results}

    def write_row(side: str) -> list[str]:
        title = f"**Groundwire {side}**" if side in ("int8", "float32") else side
        return [title, *(format_ms(times[(*model, side)]) if (*model, side) in times else "–" for model in models)]

    rows = [write_row(side) for side in dict.fromkeys(row["side"] for row in results)]
    return format_table(["p50 ms", *(f"{model}, {size}" for model, size in models)], rows)


def write_trusted(level: str) -> str:
    """Return what thresholds from trusted rows do, by set."""
    rows = [
        [
            outcome["set"],
            f"{outcome['false_positive_rate']:.1%}",
            f"{outcome['missed']:.0%}",
            f"{outcome['estimated']:.0%}",
            f"{min(kinds.values()):.0%} to {max(kinds.values()):.0%}",
        ]
        for outcome in load_results("trusted")
        if outcome["level"] == float(level) and (kinds := outcome["estimated_by_kind"])
    ]
    bound = f"false positives, promised ≤ {float(level):.0%}"
    return format_table(["set", bound, "missed", "missed of made errors", "by kind"], rows)


def write_trusted_summary() -> str:
    """Return on how many sets the bound is kept, and how near the estimate is."""
    lines = []
    for level in (0.05, 0.15):
        outcomes = [outcome for outcome in load_results("trusted") if outcome["level"] == level]
        kept = sum(outcome["false_positive_rate"] <= outcome["high"] for outcome in outcomes)
        near = sum(abs(outcome["estimated"] - outcome["missed"]) <= 0.1 for outcome in outcomes)
        kinds = [(outcome["missed"], outcome["estimated_by_kind"].values()) for outcome in outcomes]
        between = sum(min(rates) <= missed <= max(rates) for missed, rates in kinds)
        lines.append(
            f"- A bound of {level:.0%} is kept on {kept} of {len(outcomes)} sets. The estimate of what is missed is "
            f"within 10 points on {near}; on {between} what is missed is between the kinds."
        )
    return "\n".join(lines)


def write_code(path: str) -> str:
    """Return a Python file as a code block, which the tests run as a file."""
    return f"```python\n# doc: skip ({path})\n{(ROOT / path).read_text(encoding='utf-8').strip()}\n```"


def write_card() -> str:
    """Return the error card of the default: the two rates by kind of text, with their intervals."""
    card = load_results("card")

    def rate(row: dict[str, Any], name: str, count: str) -> str:
        value = row[name]
        if value is None:
            return "–"
        return f"{100 * value['value']:.0f} % ({100 * value['low']:.0f}–{100 * value['high']:.0f}) of {row[count]}"

    rows = [
        [
            row["kind"],
            rate(row, "false_positive_rate", "consistent"),
            rate(row, "false_negative_rate", "inconsistent"),
        ]
        for row in (*card["kinds"], card["total"])
    ]
    not_covered = "\n".join(f"- {sentence}" for sentence in card["not_covered"])
    table = format_table(["kind of text", "false positive rate", "false negative rate"], rows)
    return f"{table}\n\nNot covered:\n\n{not_covered}"


def write_agreement() -> str:
    """Return how far Arm and x86-64 agree."""
    return describe_agreement(load_results("arm64"), digest_models())


def write_devices() -> str:
    """Return what was done with Groundwire on each device."""
    return format_table(HEADER, list_devices(read_reports(), load_results("arm64")))


PARTS: dict[str, Callable[..., str]] = {
    "agreement": write_agreement,
    "balanced_accuracy": write_balanced_accuracy,
    "card": write_card,
    "code": write_code,
    "devices": write_devices,
    "domains": write_domains,
    "median": write_median,
    "ms": write_ms,
    "peers": write_peers,
    "profiles": write_profiles,
    "range": write_range,
    "serving": write_serving,
    "stopped": write_stopped,
    "tiers": write_tiers,
    "trusted": write_trusted,
    "trusted_summary": write_trusted_summary,
}


def fill(text: str) -> str:
    """Return a page with its generated parts written anew."""

    def write(part: re.Match[str]) -> str:
        name, arguments, is_block, _ = part.groups()
        written = PARTS[name](*arguments.split())
        return f"<!-- begin: {name}{arguments} -->" + (f"\n\n{written}\n\n" if is_block else written) + "<!-- end -->"

    return PART.sub(write, text)


def list_stale() -> dict[Path, str]:
    """Return the files that differ from what they are made from, with what they should be."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    written = {page: fill(text) for page, text in texts.items()}
    texts[FIELD_DOCS] = FIELD_DOCS.read_text(encoding="utf-8")
    written[FIELD_DOCS] = write_field_docs()
    return {path: text for path, text in written.items() if text != texts[path]}


if __name__ == "__main__":
    stale = list_stale()
    for path, text in stale.items():
        print(path.relative_to(ROOT))
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit("These files are out of date: run make docs-write")

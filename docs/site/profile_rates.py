"""Writes the error rates of each profile, from ``bench/results/profiles.json``."""

from __future__ import annotations

from markdown_tables import format_table
from repository_files import load_results

PROFILES = ("strict", "balanced", "lenient")
ANSWERS, WRONG_ANSWERS = 1000, 50
"""What the example of the page of questions counts."""


def read_profiles() -> dict[tuple[str, str], tuple[float, float]]:
    """Return the false positive rate and the power by metrics and profile, on answers as support bots give them."""

    def share(counts: dict[str, int]) -> float:
        return counts.get("inconsistent", 0) / sum(counts.values())

    return {
        (run["metrics"], profile["profile"]): (
            share(profile["labels"]["consistent"]),
            share(profile["labels"]["inconsistent"]),
        )
        for run in load_results("profiles")["runs"]
        for profile in run["profiles"]
    }


def write_profiles() -> str:
    """Return the error rates of each profile, and what they mean for a thousand answers."""
    rates = read_profiles()
    rows = [
        [
            f"`{metrics}`",
            f"`{profile}`",
            f"{100 * positive:.0f} %",
            f"{100 - 100 * power:.0f} %",
            *_count_stopped(positive, power),
        ]
        for metrics in dict.fromkeys(metrics for metrics, _ in rates)
        for profile in PROFILES
        for positive, power in [rates[metrics, profile]]
    ]
    header = ["metrics", "profile", "false positive rate", "false negative rate"]
    stopped = [f"of {WRONG_ANSWERS} wrong, stopped", f"of {ANSWERS - WRONG_ANSWERS} right, stopped"]
    return format_table([*header, *stopped], rows)


def _count_stopped(positive: float, power: float) -> tuple[str, str]:
    return f"{WRONG_ANSWERS * power:.0f}", f"{(ANSWERS - WRONG_ANSWERS) * positive:.0f}"


def write_stopped(choice: str) -> str:
    """Return how many wrong and right answers of a thousand are stopped, for metrics and a profile."""
    metrics, profile = choice.split()
    wrong, right = _count_stopped(*read_profiles()[metrics, profile])
    return f"{wrong} of the {WRONG_ANSWERS} wrong answers and {right} of the {ANSWERS - WRONG_ANSWERS} right ones"

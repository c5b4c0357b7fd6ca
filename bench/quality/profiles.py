"""Writes bench/results/profiles.json: how often each profile errs on the development pairs of bench/quality/production.

    python bench/quality/profiles.py fast default     the metrics, one run after another; default: of the verdict

Each pair is scored once, and its verdict is drawn again at the threshold of each profile. The tables of docs/bundles.md
and docs/faq.md are made from the file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results" / "profiles.json"
sys.path.insert(0, str(ROOT))

from bench.quality.pairs import read_pairs, score_pairs  # noqa: E402

# The folder of the pairs has the same name as the module, and mypy finds the folder.
from bench.quality.production import FOLDER, Row  # type: ignore[attr-defined]  # noqa: E402
from groundwire.engine import Engine, Score  # noqa: E402
from groundwire.engine.verdict import decide_again  # noqa: E402
from groundwire.runtime.bundles.calibration import Calibration, ProfileName  # noqa: E402

DEFAULT = "default"


def count_errors(scored: Sequence[tuple[Row, Score]], calibration: Calibration) -> Iterator[dict[str, Any]]:
    """Count, for each profile, the pairs by their label and the verdict's."""
    for profile in get_args(ProfileName):
        labels: dict[str, dict[str, int]] = {}
        for row, score in scored:
            verdict, _ = decide_again(row.request, score.metrics, calibration, profile)
            by_verdict = labels.setdefault(row.expected, {})
            by_verdict[verdict.label] = by_verdict.get(verdict.label, 0) + 1
        yield {"profile": profile, "labels": labels}


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the pairs with each choice of metrics, and write the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("metrics", nargs="+", help="names separated by commas, a group, or default")
    parser.add_argument("--bundle", default="compact", help="a bundle's name or directory")
    options = parser.parse_args(arguments)
    rows = read_pairs(FOLDER / "development.jsonl", Row)
    runs: list[dict[str, Any]] = []
    with Engine.load(options.bundle) as engine:
        calibration = engine.core.calibration
        if calibration is None:
            raise SystemExit(f"The bundle {options.bundle} has no calibration.")
        for choice in options.metrics:
            names = None if choice == DEFAULT else choice.split(",")
            scored = score_pairs(rows, engine, names)
            runs.append({"metrics": choice, "profiles": list(count_errors(scored, calibration))})
            print(choice, *runs[-1]["profiles"], sep="\n")
    when = datetime.now(UTC).isoformat(timespec="seconds")
    document = {"benchmark": "profiles", "when": when, "bundle": options.bundle, "runs": runs}
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(document)) + b"\n")


if __name__ == "__main__":
    main()

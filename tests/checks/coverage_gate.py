"""The coverage gate: the least share of lines and branches that the tests of each part must run.

``tests/checks/check.py test`` measures while the tests run and calls ``main`` afterwards; nothing is run a second time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "coverage"

MINIMUM: dict[str, float] = {
    "runtime": 90.0,
    "engine": 90.0,
    "apps": 90.0,
    "interfaces": 90.0,
    "export": 90.0,
    "evaluate": 90.0,
    "recipes": 90.0,
    "engine/scheduling": 100.0,
    "engine/verdict": 100.0,
}
"""Per folder, per cent of its lines and branches together, as Coverage.py counts them with branches."""

OF_CHECK = {"recipes": "recipes"}
"""Folders that one check alone covers; they have no minimum where it did not run."""


@dataclass(frozen=True)
class Share:
    """What the tests ran of a folder or a file: counts of lines and branches, and the lines with gaps."""

    name: str
    covered: int
    total: int
    gaps: tuple[str, ...] = ()

    @property
    def percent(self) -> float:
        """The covered lines and branches per cent; 100 where there are none."""
        return 100.0 * self.covered / self.total if self.total else 100.0


def data_file(check: str) -> Path:
    """Return the file in which a check of ``TESTS`` records what it ran; delete the records of an earlier run."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob(f"{check}.coverage*"):
        path.unlink()
    return FOLDER / f"{check}.coverage"


def read_share(name: str, file: dict[str, Any]) -> Share:
    """Return the share of one file of Coverage.py's JSON report."""
    summary = file["summary"]
    lines = {f"{number}" for number in file["missing_lines"]}
    branches = {f"{start}->{'exit' if end < 0 else end}" for start, end in file["missing_branches"]}
    ordered = sorted(lines | branches, key=lambda gap: (int(gap.partition("->")[0]), gap))
    return Share(
        name,
        summary["covered_lines"] + summary["covered_branches"],
        summary["num_statements"] + summary["num_branches"],
        tuple(ordered),
    )


def sum_shares(folder: str, files: list[Share]) -> Share:
    """Return the share of all files below a folder."""
    below = [file for file in files if file.name.startswith(f"{folder}/")]
    return Share(folder, sum(file.covered for file in below), sum(file.total for file in below))


def find_failures(files: list[Share], checks: list[str]) -> Iterator[str]:
    """Print the table; yield the folders below their minimum, each with its least covered files."""
    for folder, minimum in MINIMUM.items():
        if folder in OF_CHECK and OF_CHECK[folder] not in checks:
            continue
        share = sum_shares(folder, files)
        failed = share.total == 0 or share.percent < minimum
        print(f"{folder:<20} {share.percent:6.2f} %   at least {minimum:.0f} %{'   FAILED' if failed else ''}")
        if failed:
            below = [file for file in files if file.name.startswith(f"{folder}/") and file.covered < file.total]
            for file in sorted(below, key=lambda file: file.covered - file.total)[:10]:
                print(f"    {file.name} {file.percent:.1f} %: {', '.join(file.gaps)}")
            yield folder


def main(checks: list[str]) -> int:
    """Combine what the checks measured and print the share of each folder; 1 if a folder is below its minimum."""
    data = [str(path) for check in checks for path in sorted(FOLDER.glob(f"{check}.coverage*"))]
    if not data:
        print("Nothing was measured: name `unit` or other tests beside `coverage`, or run the set `test`.")
        return 1
    combined, report = FOLDER / "combined", FOLDER / "report.json"
    coverage = [sys.executable, "-m", "coverage"]
    for command in (
        ["combine", "--keep", "--quiet", f"--data-file={combined}", *data],
        ["json", "--quiet", f"--data-file={combined}", "-o", str(report)],
    ):
        if code := subprocess.run([*coverage, *command], cwd=ROOT, check=False).returncode:
            return code
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    shares = [read_share(Path(name).as_posix(), file) for name, file in files.items()]
    return int(bool(list(find_failures(shares, checks))))

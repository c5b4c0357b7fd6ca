"""Compares what two machines make of the same texts: labels are equal, marks and probabilities nearly so.

    python -m tests.support.agreement score --out here.json          # on each machine, with Groundwire installed
    python -m tests.support.agreement compare here.json there.json   # exits with 1 where they differ

Kernels of other instructions round the last bit of floats otherwise. So one activation in 100,000 becomes another
integer in the first layer of an int8 graph, and one in 300 in the second, each by one step of 255.
``tests/unit/native/test_bits.py`` compares what is the same everywhere.
"""

from __future__ import annotations

import argparse
import platform
import sys
from itertools import chain
from pathlib import Path

import msgspec

from docs.site.devices import digest_models

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "dialogues.jsonl"
LABELLED = tuple(ROOT / "bench" / "quality" / "production" / name for name in ("development.jsonl", "visitors.jsonl"))
LABELLED_ROWS = 100
"""The shortest rows of ``LABELLED``."""
MAX_DIFFERENCE, MAX_MEAN_DIFFERENCE = 0.05, 0.01
"""Of two probabilities of the same response, and its mean over all responses."""
MAX_OTHER_MARKS = 0.02
"""Share of responses whose marks may differ."""


class Row(msgspec.Struct, frozen=True):
    """A response, and what it should rest on."""

    id: str
    response: str
    knowledge: str | list[str]
    history: list[str] = []


class Outcome(msgspec.Struct, frozen=True):
    """What a machine says of a response."""

    label: str | None
    probability: float | None
    marks: list[tuple[int, int, str]]
    """First and last character of unsupported words, and the reason."""


class Outcomes(msgspec.Struct, frozen=True):
    """What a machine says of all responses."""

    system: str
    int8_kernel: str
    emulated: bool
    onnxruntime: str
    models: str
    """Their digest."""
    rows: dict[str, Outcome]

    @property
    def machine(self) -> str:
        """The machine in words."""
        return f"{self.system} ({self.int8_kernel}{', emulated' * self.emulated}, ONNX Runtime {self.onnxruntime})"


class Agreement(msgspec.Struct, frozen=True):
    """How far two machines agree."""

    machines: tuple[str, str]
    emulated: bool
    """Whether one of them was emulated."""
    models: str
    """The digest of the first one's models."""
    rows: int
    max_difference: float
    """Of the probabilities of a response."""
    mean_difference: float
    other_marks: int
    """Responses with other marks."""
    differences: list[str]
    """What is larger than it may be, in words; empty where they agree."""

    def __str__(self) -> str:
        return (
            f"{self.machines[0]} and {self.machines[1]}: {self.rows} rows, {self.other_marks} with other marks, "
            f"probabilities apart by {self.max_difference:.4f} at most, {self.mean_difference:.4f} on average"
        )


def read_rows(labelled: int = LABELLED_ROWS) -> list[Row]:
    """The demo, and the shortest labelled rows."""
    demo, *pairs = (
        [msgspec.json.decode(line, type=Row) for line in path.read_bytes().splitlines()] for path in (DEMO, *LABELLED)
    )
    by_length = sorted(chain.from_iterable(pairs), key=lambda row: len(row.response) + sum(map(len, row.knowledge)))
    return demo + by_length[:labelled]


def score_rows(rows: list[Row], *, emulated: bool = False) -> Outcomes:
    """Score the rows with the default bundle and metrics."""
    # Only a machine that scores has it.
    import onnxruntime as ort

    from groundwire.engine import Engine
    from groundwire.runtime.ort.processor import int8_kernel

    with Engine.load() as engine:
        scores = engine.score_many(msgspec.structs.asdict(row) for row in rows)
        outcomes = {
            row.id: Outcome(
                score.verdict.label,
                score.verdict.probability,
                [(span.start, span.end, span.reason) for span in score.unsupported],
            )
            for row, score in zip(rows, scores, strict=True)
        }
    system = f"{platform.system()} {platform.machine()}"
    return Outcomes(system, int8_kernel(), emulated, ort.__version__, digest_models(), outcomes)


def compare(here: Outcomes, there: Outcomes) -> Agreement:
    """Compare the outcomes of two machines, row by row."""
    apart: list[float] = []
    differences = [] if here.models == there.models else ["they have other models"]
    other_marks: list[str] = []
    for name in sorted(here.rows.keys() | there.rows.keys()):
        a, b = here.rows.get(name), there.rows.get(name)
        if a is None or b is None:
            differences.append(f"{name}: scored on one machine alone")
            continue
        apart.append(abs((a.probability or 0) - (b.probability or 0)))
        if a.label != b.label:
            differences.append(f"{name}: {a.label}, there {b.label}")
        if apart[-1] > MAX_DIFFERENCE:
            differences.append(f"{name}: probability {a.probability}, there {b.probability}")
        if a.marks != b.marks:
            other_marks.append(f"{name}: marks {a.marks}, there {b.marks}")
    if len(other_marks) > MAX_OTHER_MARKS * len(apart):
        differences += other_marks
    mean = sum(apart) / max(1, len(apart))
    if mean > MAX_MEAN_DIFFERENCE:
        differences.append(f"probabilities are {mean:.4f} apart on average")
    return Agreement(
        (here.machine, there.machine),
        here.emulated or there.emulated,
        here.models,
        len(apart),
        round(max(apart, default=0.0), 5),
        round(mean, 5),
        len(other_marks),
        differences,
    )


def main(arguments: list[str]) -> int:
    """Run a command; 1 if two machines differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    score = commands.add_parser("score", help="score the rows on this machine")
    score.add_argument("--out", type=Path, required=True)
    score.add_argument("--emulated", action="store_true", help="this machine is emulated")
    against = commands.add_parser("compare", help="compare the first file with each other one")
    against.add_argument("files", type=Path, nargs="+")
    given = parser.parse_args(arguments)
    if given.command == "score":
        given.out.write_bytes(msgspec.json.encode(score_rows(read_rows(), emulated=given.emulated)))
        return 0
    here, *others = (msgspec.json.decode(path.read_bytes(), type=Outcomes) for path in given.files)
    agreements = [compare(here, there) for there in others]
    for agreement in agreements:
        print("\n  ".join([str(agreement), *agreement.differences]))
    return int(any(agreement.differences for agreement in agreements))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

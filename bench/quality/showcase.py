"""Scores examples/showcase.jsonl: 60 pairs that a newcomer would try, and what the verdict should be.

    python bench/quality/showcase.py                       the embedded bundle with its own metrics
    python bench/quality/showcase.py --metrics all         other metrics, separated by commas, or a group
    python bench/quality/showcase.py --bundle DIR          another bundle
    python bench/quality/showcase.py --pairs bench/quality/roles/roles.jsonl    100 pairs of roles as the knowledge
                                                           has them and exchanged

Prints how many verdicts are right, by kind of pair, and each that is wrong. A verdict ``unknown`` is wrong. "Words
right" counts the inconsistent pairs in which every unsupported word of the showcase is marked and at most half of the
marked words are others. "Power" is the share of the inconsistent pairs whose probability is below the threshold that
calls 15 % of the consistent ones inconsistent. The pairs are never trained or calibrated on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FALSE_POSITIVE_RATE = 0.15
SHOWCASE = ROOT / "examples" / "showcase.jsonl"
sys.path.insert(0, str(ROOT))

from bench.quality import pairs  # noqa: E402
from groundwire.engine import Engine  # noqa: E402
from groundwire.engine.extend import WORD  # noqa: E402


class Pair(pairs.LabelledPair, frozen=True, kw_only=True):
    """A response and its knowledge, and what is true of them."""

    unsupported: list[str]
    """Words of the response that the knowledge does not support."""


class Outcome(pairs.Outcome[Pair], frozen=True):
    """A pair and its score."""

    @property
    def words_right(self) -> bool:
        """Whether the right words are marked, and few others."""
        wanted = {word for text in self.pair.unsupported for word in split(text)}
        marked = {word for span in self.score.unsupported for word in split(span.text)}
        return bool(wanted) and wanted <= marked and 2 * len(wanted) >= len(marked)


def split(text: str) -> list[str]:
    """The words of a text in lower case; the sign of a unit is a word."""
    return [word.lower() for word in WORD.findall(text)] or [text]


def read_pairs(path: Path = SHOWCASE) -> list[Pair]:
    """The pairs of the showcase."""
    return pairs.read_pairs(path, Pair)


def score_pairs(rows: Sequence[Pair], engine: Engine, metrics: list[str] | None) -> list[Outcome]:
    """Each pair with its score."""
    return [Outcome(*scored) for scored in pairs.score_pairs(rows, engine, metrics)]


def measure_power(outcomes: Sequence[Outcome], rate: float = FALSE_POSITIVE_RATE) -> float | None:
    """The share of the inconsistent pairs below the threshold of a false positive rate; None without such pairs."""
    rated: dict[str, list[float]] = {"consistent": [], "inconsistent": []}
    for outcome in outcomes:
        probability = outcome.score.verdict.probability
        if outcome.pair.expected in rated:
            rated[outcome.pair.expected].append(1.0 if probability is None else probability)
    right, wrong = sorted(rated["consistent"]), rated["inconsistent"]
    if not right or not wrong:
        return None
    threshold = right[int(rate * len(right))]
    return sum(probability < threshold for probability in wrong) / len(wrong)


def describe(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Lines of the table by kind, and of the list of wrong verdicts."""
    yield "| kind | pairs | right | words right |"
    yield "|---|---|---|---|"
    for kind in dict.fromkeys(outcome.pair.kind for outcome in outcomes):
        yield _count(kind, [outcome for outcome in outcomes if outcome.pair.kind == kind])
    for expected in ("consistent", "inconsistent", "unverifiable"):
        yield _count(f"**{expected}**", [outcome for outcome in outcomes if outcome.pair.expected == expected])
    yield _count("**all**", outcomes)
    yield ""
    for outcome in outcomes:
        if not outcome.right:
            verdict = outcome.score.verdict
            probability = "" if verdict.probability is None else f" {verdict.probability:.2f}"
            marked = ", ".join(span.text for span in outcome.score.unsupported) or "nothing"
            yield f"{outcome.pair.id}: {outcome.pair.expected}, got {verdict.label}{probability}, {marked} marked"
            yield f"    {outcome.pair.response}"


def _count(title: str, outcomes: Sequence[Outcome]) -> str:
    wrong_pairs = [outcome for outcome in outcomes if outcome.pair.unsupported]
    words = f"{_sum(outcome.words_right for outcome in wrong_pairs)} of {len(wrong_pairs)}" if wrong_pairs else "–"
    return f"| {title} | {len(outcomes)} | {_sum(outcome.right for outcome in outcomes)} | {words} |"


def _sum(flags: Iterable[bool]) -> int:
    return sum(flags)


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the showcase and print what came of it."""
    parser = pairs.make_parser(__doc__)
    parser.add_argument("--pairs", type=Path, default=SHOWCASE, help="file of pairs; by default the showcase")
    options = parser.parse_args(arguments)
    with Engine.load(options.bundle) as engine:
        outcomes = score_pairs(read_pairs(options.pairs), engine, options.metrics)
    print("\n".join(describe(outcomes)))
    print(f"\n{_sum(outcome.right for outcome in outcomes)} of {len(outcomes)} verdicts are right.")
    power = measure_power(outcomes)
    if power is not None:
        print(f"Power at a false positive rate of {FALSE_POSITIVE_RATE:.0%}: {power:.0%}.")


if __name__ == "__main__":
    main()

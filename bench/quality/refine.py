"""Repair from a knowledge graph, by dialogues written by hand: what is repaired, refused, missed and made worse.

``python -m bench refine`` reads the development half of ``bench/quality/nph``, whose README says what a row is. A
response is repaired rightly if its wrong words, and nothing else, are replaced by an entity that is right there. Any
other change is a falsehood, accepted if the critic flags nothing after it; it has to be 0.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("nph")
sys.path.insert(0, str(ROOT))

from bench.quality.pairs import read_pairs  # noqa: E402
from groundwire.engine import Engine  # noqa: E402
from groundwire.monitor.prevalence import share  # noqa: E402
from groundwire.repair import KnowledgeGraph, Refinement, RefineOptions, Refiner  # noqa: E402


class Dialogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A response in its dialogue, and what may be in the place of its wrong words."""

    id: str
    graph: str
    history: tuple[str, ...]
    response: str
    wrong: str | None
    span: tuple[int, int] | None
    right: tuple[str, ...]
    """Entities that make the response true; without any the repair has to be refused."""
    false: tuple[str, ...]
    """Entities of the graph, near by, that make it false."""
    why: str

    @property
    def group(self) -> str:
        """What should happen to it."""
        if self.wrong is None:
            return "right"
        return "repairable" if self.right else "unrepairable"


def classify(dialogue: Dialogue, refinement: Refinement) -> str:
    """Return what became of a response: ``repaired``, ``false`` or ``false, accepted``; else its status."""
    if refinement.status != "refined":
        return refinement.status
    changes = refinement.changes
    if len(changes) == 1 and dialogue.span is not None:
        (change,) = changes
        begin, end = dialogue.span
        if change.chosen.entity in dialogue.right and change.mention.start < end and begin < change.mention.end:
            return "repaired"
    return "false, accepted" if refinement.accepted else "false"


def describe(outcomes: Mapping[str, Counter[str]]) -> Iterator[str]:
    """Yield the lines of the table, with 95 % intervals."""

    def rate(part: int, whole: int) -> str:
        if not whole:
            return "–"
        estimate = share(part, whole)
        return f"{part} of {whole} | {estimate.value:.0%} ({estimate.low:.0%}–{estimate.high:.0%})"

    repairable, unrepairable, right = (outcomes[group] for group in ("repairable", "unrepairable", "right"))
    wrong_ones = repairable + unrepairable
    every = wrong_ones + right
    wrong = every["false"] + every["false, accepted"]
    unharmed = right.total() - right["false"] - right["false, accepted"]
    yield "| | | share |"
    yield "|---|---|---|"
    yield f"| repairable, repaired rightly | {rate(repairable['repaired'], repairable.total())} |"
    yield f"| repairable, refused | {rate(repairable['refused'], repairable.total())} |"
    yield f"| repairable, not noticed | {rate(_count_missed(repairable), repairable.total())} |"
    yield f"| unrepairable, refused rightly | {rate(unrepairable['refused'], unrepairable.total())} |"
    yield f"| unrepairable, not noticed | {rate(_count_missed(unrepairable), unrepairable.total())} |"
    yield f"| right, unharmed | {rate(unharmed, right.total())} |"
    yield f"| right, flagged and left as they are | {rate(right['refused'], right.total())} |"
    yield f"| right, unverifiable | {rate(right['unverifiable'], right.total())} |"
    yield f"| wrong, unverifiable | {rate(wrong_ones['unverifiable'], wrong_ones.total())} |"
    yield f"| changed into a falsehood | {rate(wrong, every.total())} |"
    yield f"| – and accepted | {rate(every['false, accepted'], every.total())} |"


def _count_missed(outcomes: Counter[str]) -> int:
    return outcomes["clean"] + outcomes["no_context"]


def run(
    dialogues: Sequence[Dialogue], engine: Engine, options: RefineOptions, *, show: bool
) -> dict[str, Counter[str]]:
    """Repair every response, and count what became of each group; ``show`` prints what is not as wanted."""
    graphs: dict[str, KnowledgeGraph] = {}
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in ("repairable", "unrepairable", "right")}
    for dialogue in dialogues:
        if dialogue.graph not in graphs:
            graphs[dialogue.graph] = KnowledgeGraph.load(FOLDER / f"{dialogue.graph}.jsonl")
        refinement = Refiner(engine).refine(
            dialogue.response, graphs[dialogue.graph], history=dialogue.history, options=options
        )
        outcome = classify(dialogue, refinement)
        outcomes[dialogue.group][outcome] += 1
        wanted = {"repairable": "repaired", "unrepairable": "refused", "right": "clean"}[dialogue.group]
        if show and outcome != wanted:
            print(f"{dialogue.id} {dialogue.group}: {outcome} | {' // '.join(dialogue.history)} => {dialogue.response}")
            print(f"    {refinement.response if refinement.changes else refinement.message} | {dialogue.right}")
    return outcomes


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--half", choices=("development.jsonl", "sealed.jsonl.gz", "speakers.jsonl"), default="development.jsonl"
    )
    parser.add_argument("--rows", default="", help="first letters of ids, separated by commas; by default all")
    parser.add_argument("--bundle", default="nph")
    parser.add_argument("--extra", nargs="*", default=(), help="further bundles, as compact")
    parser.add_argument("--hops", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print the mistakes")
    options = parser.parse_args(arguments)
    letters = tuple(options.rows.split(","))
    dialogues = [row for row in read_pairs(FOLDER / options.half, Dialogue) if row.id.startswith(letters)]
    with Engine.load(options.bundle, "cpu", extra=options.extra) as engine:
        outcomes = run(dialogues, engine, RefineOptions(hops=options.hops), show=options.show)
    print(*describe(outcomes), sep="\n")


if __name__ == "__main__":
    main()

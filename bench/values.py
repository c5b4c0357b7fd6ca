"""The metric ``values`` on responses of ordinary size and on the worst texts, beside word overlap.

    python -m bench.values
    python -m bench.values --outcomes written     counts outcomes in the written documents held out of training instead
    python -m bench.values --outcomes a.jsonl --outcomes b.jsonl    in the responses of labelled files

Its answers are compared with expected ones first. Then the two metrics score the same dialogues in turns, each of them
new, so that nothing is answered from a cache. Measured is the processor time of the metrics, without the scheduler.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from groundwire.engine import MetricResult, Options, Request
from groundwire.engine.schema.explanations import ValuesExplanation
from groundwire.evaluate.datasets import read_dataset
from groundwire.metrics import METRICS, ReadRequest
from groundwire.recipes.written.pairs import WrittenPairs
from groundwire.recipes.written.rows import iterate_rows
from groundwire.runtime.errors import TooLong
from groundwire.runtime.protocol import RoleInfo

from .support import common
from .support.dialogues import Dialogue, distinct

KNOWLEDGE = (
    "The Eiffel Tower was completed on 31 March 1889 after two years, two months and five days. It is 330 metres "
    "(1,083 ft) tall, about the same height as an 81-storey building. Nearly seven million people visit it each year, "
    "and three quarters of them come from abroad."
)
EXPECTED = {
    "It opened in March 1889.": ["supported"],
    "It was completed in 1898, and it is 330 m tall.": ["contradicted", "supported"],
    "It is 300 metres tall, and 75% of the visitors come from abroad.": ["contradicted", "supported"],
    "About 7 million people see it each year, says Ann.": ["supported", "absent"],
}
"""Responses to ``KNOWLEDGE``, and the outcomes of their values."""
WORST = ("1 ", "twenty ", "May ", "A ", "first ", "half a ", "2 of the ", "1887-05-", "1. A, ", "'s ")
LIMIT_MS = 1.0
WRITTEN = "written"
SEED = 13
"""Chooses the slots of the written answers that become wrong."""
CLASSES = (
    "a contradicted value",
    "an absent value, where the knowledge has another value of its kind",
    "another absent value",
    "supported values only",
)
"""Responses by the worst outcome of their values."""


class Row(msgspec.Struct, frozen=True):
    """Milliseconds of processor time per response."""

    texts: str
    characters: float
    """Of response and knowledge together, on average."""
    values: common.Timing
    overlap: common.Timing
    ratio: float
    """Overlap's median over the values' median."""


def main(
    responses: Annotated[int, typer.Option(help="Dialogues of each size.", min=1)] = 2_000,
    tiny: Annotated[bool, typer.Option(help="Few dialogues, to try the benchmark itself.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file; by default bench/results, or none with --tiny.")] = None,
    outcomes: Annotated[
        list[str] | None, typer.Option(help="Count outcomes in these labelled files, or in 'written'; time nothing.")
    ] = None,
) -> None:
    """Check the answers of ``values``, then time it beside ``overlap``."""
    if outcomes:
        print("\n".join(count_outcomes(outcomes)))
        return
    responses, longest = (20, 1_000) if tiny else (responses, 20_000)
    for response, expected in EXPECTED.items():
        explanation = compute("values", Request(response, (KNOWLEDGE,))).explanation
        assert isinstance(explanation, ValuesExplanation)
        outcomes = [value.outcome for value in explanation.values]
        common.check(outcomes == expected, f"{response} gives {outcomes}, expected {expected}")
    worst = [(piece * longest)[:longest] for piece in WORST]
    rows = [
        measure("the examples", list(distinct(responses))),
        measure("with the knowledge of a paragraph", list(lengthen(distinct(responses), 1))),
        measure("with ten paragraphs", list(lengthen(distinct(responses // 10), 10))),
        measure(f"the worst of {longest:,} characters", [Dialogue(text, (text,)) for text in worst]),
    ]
    common.console().print(
        common.table(
            "milliseconds of processor time per response",
            ("texts", "characters", "values p50", "p95", "overlap p50", "p95", "ratio"),
            [
                (
                    row.texts,
                    f"{row.characters:,.0f}",
                    *(f"{time:.3g}" for side in (row.values, row.overlap) for time in (side.p50_ms, side.p95_ms)),
                    f"{row.ratio:.1f}",
                )
                for row in rows
            ],
        )
    )
    targets = (
        ()
        if tiny
        else (common.PerformanceTarget.at_most("values, the examples, p50", rows[0].values.p50_ms, LIMIT_MS, "ms"),)
    )
    settings: dict[str, int | float | str | None] = {"responses": responses, "tiny": tiny}
    common.finish("values", settings, rows, targets, out or (None if tiny else common.RESULTS / "values.json"))


def count_outcomes(sources: Sequence[str]) -> Iterator[str]:
    """Lines of a table of right and wrong responses by the worst outcome of their values."""
    counts = {title: [0, 0] for title in CLASSES}
    for request, label in chain.from_iterable(map(read_labelled, sources)):
        explanation = compute("values", request).explanation
        if isinstance(explanation, ValuesExplanation):
            counts[classify(explanation)][label] += 1
    yield "| the response has | responses | right | wrong | of these wrong |"
    yield "|---|---|---|---|---|"
    for title, (wrong, right) in counts.items():
        share = f"{wrong / (wrong + right):.0%}" if wrong + right else "–"
        yield f"| {title} | {wrong + right} | {right} | {wrong} | {share} |"


def classify(explanation: ValuesExplanation) -> str:
    """The class of a response, one of ``CLASSES``."""
    stated = explanation.values
    if any(value.outcome == "contradicted" for value in stated):
        return CLASSES[0]
    absent = [value for value in stated if value.outcome == "absent"]
    return CLASSES[3] if not absent else CLASSES[1] if any(value.evidence for value in absent) else CLASSES[2]


def read_labelled(source: str) -> Iterator[tuple[Request, int]]:
    """The labelled responses of a file, or of the written documents that are held out of training."""
    if source == WRITTEN:
        for row in iterate_rows(WrittenPairs.read("dev").documents, SEED):
            yield Request(row["response"], tuple(row["knowledge"]), tuple(row["history"])), row["label"]
        return
    for example in read_dataset(source):
        if example.label is not None:
            yield example.request, example.label


def measure(texts: str, dialogues: list[Dialogue]) -> Row:
    """Time both metrics on each dialogue, one after the other, in an order that changes."""
    times: dict[str, list[float]] = {"values": [], "overlap": []}
    for name in times:
        compute(name, Request(*dialogues[0]))
    for turn, dialogue in enumerate(dialogues):
        for name in common.in_turn(times, turn):
            request = Request(dialogue.response, dialogue.knowledge)
            started = time.thread_time()
            result = compute(name, request)
            times[name].append((time.thread_time() - started) * 1000)
            common.check(result.status in ("scored", "nothing_to_verify", "truncated"), f"{name}: {result}")
    characters = sum(len(dialogue.response) + sum(map(len, dialogue.knowledge)) for dialogue in dialogues)
    values, overlap = (common.Timing.of(spent) for spent in times.values())
    return Row(texts, characters / len(dialogues), values, overlap, overlap.p50_ms / values.p50_ms)


def compute(name: str, request: Request) -> MetricResult:
    """The result of a metric without calls, as the scheduler would have it."""
    steps = METRICS[name].compute(ReadRequest.of(request), Options(), _no_role)
    try:
        while True:
            common.check(not next(steps), f"{name} asks a model.")
    except StopIteration as end:
        result: MetricResult = end.value
        return result
    except TooLong as error:
        return MetricResult(name, "truncated", message=str(error))


def lengthen(dialogues: Iterator[Dialogue], paragraphs: int) -> Iterator[Dialogue]:
    """The dialogues with that many further paragraphs of knowledge, different each time."""
    for number, dialogue in enumerate(dialogues):
        more = (f"{KNOWLEDGE} Number {number}, {paragraph}." for paragraph in range(paragraphs))
        yield dialogue._replace(knowledge=(*dialogue.knowledge, *more))


def _no_role(name: str) -> RoleInfo:
    raise AssertionError(f"No bundle is loaded, so there is no role {name}.")


if __name__ == "__main__":
    typer.run(main)

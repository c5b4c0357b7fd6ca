"""The work per response: runs of every graph, and the tokens (with padding) that they read, for each group of metrics.

    python -m bench.model_work                 # write bench/results/model_work.json
    python -m bench.model_work --check         # compare with it; exit code 1 where there is more

Unlike times, these numbers are nearly the same on every machine, so a test compares them: a change that asks more
questions, pads more or splits batches shows at once. The responses are the examples, one at a time. They are not
exactly the same: another processor rounds int8 products otherwise and may generate another question, and which texts
share a batch, and so its padding, depends on the times of the models before. The scheduler may also split a batch
where a model is quick, so runs have a wider margin than tokens. ``long`` are the pairs of ``long_answers``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from groundwire.engine import Engine, LoadOptions

from .long_answers import write_pairs
from .support import common
from .support.dialogues import examples
from .support.work import Work, counting

LONG = "long"
GROUPS: dict[str, str | None] = {"fast": "fast", "default": None, "all": "all", LONG: None}
"""The groups of metrics, and how ``score`` is asked for them; ``LONG`` are the default metrics of long responses."""
TOKENS_MARGIN, RUNS_MARGIN = 0.15, 0.25
"""By how much a graph's numbers may exceed the recorded ones."""
THREADS = 2
"""Threads of the engine: how batches are split depends on them."""
COMMITTED = common.RESULTS / "model_work.json"


def main(
    bundle: Annotated[str, typer.Option(help="Bundle: a name, a directory or hf://.")] = "compact",
    check: Annotated[bool, typer.Option(help="Compare with the recorded numbers in place of writing them.")] = False,
    out: Annotated[Path, typer.Option(help="JSON file to write, or to compare with.")] = COMMITTED,
) -> None:
    """Count the work of every group of metrics on the examples."""
    counted = count_groups(bundle)
    common.console().print(
        common.table(
            "responses, one at a time",
            ("graph", *(f"{group}: {what}" for group in counted for what in ("runs", "tokens"))),
            [
                (
                    name,
                    *(
                        str(getattr(works.get(name, Work()), what))
                        for works in counted.values()
                        for what in ("runs", "tokens")
                    ),
                )
                for name in sorted({name for works in counted.values() for name in works})
            ],
        )
    )
    if not check:
        common.finish("model_work", {"bundle": bundle, "responses": len(examples())}, counted, (), out)
        return
    excess = find_excess(counted, read(out))
    for line in excess:
        common.console().print(line)
    if excess:
        raise typer.Exit(1)


def read(path: Path) -> dict[str, dict[str, Work]]:
    """The recorded numbers by group and graph."""
    return msgspec.json.decode(path.read_bytes(), type=common.Report[dict[str, dict[str, Work]]]).results


def count_groups(bundle: str) -> dict[str, dict[str, Work]]:
    """The work of each group on the examples, by graph."""
    counted = {}
    for group, metrics in GROUPS.items():
        with Engine.load(bundle, threads=THREADS, options=LoadOptions(cache_bytes=0)) as engine, counting() as works:
            for response, knowledge in list_texts(group):
                score = engine.score(response, knowledge, metrics=metrics)
                common.check(score.status == "scored", f"{group}: {score.status}: {response}")
            counted[group] = dict(sorted(works.items()))
    return counted


def list_texts(group: str) -> Sequence[tuple[str, str | tuple[str, ...]]]:
    """Responses and their knowledge."""
    if group == LONG:
        return [(response, knowledge) for _, response, knowledge in write_pairs()]
    return [(dialogue.response, dialogue.knowledge) for dialogue in examples()]


def find_excess(counted: Mapping[str, Mapping[str, Work]], recorded: Mapping[str, Mapping[str, Work]]) -> list[str]:
    """A line for each number that exceeds the recorded one by more than its margin."""
    lines = []
    for group, works in counted.items():
        for name, work in works.items():
            recorded_work = recorded.get(group, {}).get(name, Work())
            for what, margin in (("tokens", TOKENS_MARGIN), ("runs", RUNS_MARGIN)):
                now, then = getattr(work, what), getattr(recorded_work, what)
                if now > then * (1 + margin):
                    lines.append(f"{group}: {name} has {now} {what}, {then} recorded.")
    return lines


if __name__ == "__main__":
    typer.run(main)

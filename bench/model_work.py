"""The work per response: runs of every graph, and the tokens (with padding) that they read, for each group of metrics.

    python -m bench.model_work                 # write bench/results/model_work.json
    python -m bench.model_work --check         # compare with it; exit code 1 where there is more

Unlike times, these numbers are nearly the same on every machine, so a test compares them: a change that asks more
questions, pads more or splits batches shows at once. The responses are the examples, one at a time. They are not
exactly the same: another processor rounds int8 products otherwise and may generate another question, and which texts
share a batch, and so its padding, depends on the times of the models before. The scheduler may also split a batch
where a model is quick, so runs have a wider margin than tokens.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from groundwire.engine import Engine, LoadOptions
from groundwire.runtime.ort.session import Session

from .support import common
from .support.dialogues import examples

GROUPS: dict[str, str | None] = {"fast": "fast", "default": None, "all": "all"}
"""The groups of metrics, and how ``score`` is asked for them."""
TOKENS_MARGIN, RUNS_MARGIN = 0.15, 0.25
"""By how much a graph's numbers may exceed the recorded ones."""
TOKENS = frozenset({"input_ids", "tokens"})
"""Names of token inputs."""
THREADS = 2
"""Threads of the engine: how batches are split depends on them."""
COMMITTED = common.RESULTS / "model_work.json"


class Work(msgspec.Struct):
    """What one graph did."""

    runs: int = 0
    tokens: int = 0
    """Size of its token input, with padding; a decoder reads a token for each beam and step."""
    rows: int = 0
    """Rows of its token input: windows of an encoder."""


def main(
    bundle: Annotated[str, typer.Option(help="Bundle: a name, a directory or hf://.")] = "compact",
    check: Annotated[bool, typer.Option(help="Compare with the recorded numbers in place of writing them.")] = False,
    out: Annotated[Path, typer.Option(help="JSON file to write, or to compare with.")] = COMMITTED,
) -> None:
    """Count the work of every group of metrics on the examples."""
    counted = count_groups(bundle)
    common.console().print(
        common.table(
            f"{len(examples())} responses, one at a time",
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
            for dialogue in examples():
                score = engine.score(dialogue.response, dialogue.knowledge, metrics=metrics)
                common.check(score.status == "scored", f"{group}: {score.status}: {dialogue.response}")
            counted[group] = dict(sorted(works.items()))
    return counted


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


@contextmanager
def counting() -> Iterator[dict[str, Work]]:
    """Count the runs of every graph of this process until the block ends."""
    works: dict[str, Work] = {}
    lock = threading.Lock()

    def wrap(method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(session: Session, feeds: Mapping[str, Any], *rest: Any, **named: Any) -> Any:
            read = next(value for name, value in feeds.items() if name in TOKENS) if TOKENS & feeds.keys() else None
            with lock:
                work = works.setdefault(session._name, Work())
                work.runs += 1
                shape = (0,) if read is None else _find_shape(read)
                work.rows += shape[0]
                work.tokens += math.prod(shape)
            return method(session, feeds, *rest, **named)

        return counted

    originals = {name: getattr(Session, name) for name in ("run", "run_values")}
    for name, method in originals.items():
        setattr(Session, name, wrap(method))
    try:
        yield works
    finally:
        for name, method in originals.items():
            setattr(Session, name, method)


def _find_shape(value: Any) -> tuple[int, ...]:
    shape = value.shape() if callable(getattr(value, "shape", None)) else value.shape
    return tuple(int(side) for side in shape)


if __name__ == "__main__":
    typer.run(main)

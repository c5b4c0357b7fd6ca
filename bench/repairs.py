"""What critique and repair are worth on held-out dialogues: ``python -m bench.repairs --data DIR``.

Dialogues about triples that the embedded models were not trained on, in phrases that they have not read, are corrupted
as the critic's training corrupts them, judged, and repaired. A repair is right when every fact that the response states
holds with the entities that now stand in it; ``exact`` asks for the very response before the corruption. FeQA reads
history and triples, before and after, with the compact bundle (the paper's tables 3 and 5; docs/nph.md).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.progress import track

from groundwire.engine import Engine, KnowledgeGraph, Refinement
from groundwire.engine.nph import steps
from groundwire.engine.nph.context import format_document
from groundwire.runtime.triples import Triple
from groundwire.train.nph import critic
from groundwire.train.nph.corruption import CorruptedDialogue
from groundwire.train.nph.phrases import list_originals
from groundwire.train.nph.triple_index import TripleIndex

from . import common

SEED = 11


class Outcome(msgspec.Struct, frozen=True):
    """Responses of one kind of corruption; shares 0–1 of all of them."""

    responses: int
    flagged: float
    """Taken for hallucinated by the critic: recall, or false alarms for ``clean``."""
    refined: float
    """Changed."""
    accepted: float
    """Changed, and then taken for faithful by the critic."""
    right: float
    """What they state holds after repair, changed or not; for ``clean`` what was left alone or still holds."""
    exact: float
    """The response before the corruption, letter for letter."""
    hallucinated_after: float
    """Taken for hallucinated by the critic in the end."""


class Faithfulness(msgspec.Struct, frozen=True):
    """FeQA, 0–1, means over the corrupted responses for which all three have a value."""

    responses: int
    before: float
    after: float
    gold: float
    """Before the corruption."""


class Run(msgspec.Struct, frozen=True):
    """One way to repair."""

    name: str
    kinds: dict[str, Outcome]
    """By kind of corruption; ``clean`` for none, ``corrupted`` for those together that change a name."""
    feqa: Faithfulness | None = None


class Way(NamedTuple):
    """How the cases of a run are repaired."""

    name: str
    whole: bool
    """With the whole of FB15k-237 as the graph, instead of the dialogue's own triples."""
    type_aware: bool = True
    verified: int = steps.VERIFIED_DRAFTS


WAYS = (
    Way("triples", whole=False),
    Way("triples, any type", whole=False, type_aware=False),
    Way("triples, not verified", whole=False, verified=1),
    Way("graph", whole=True),
    Way("graph, any type", whole=True, type_aware=False),
    Way("graph, not verified", whole=True, verified=1),
)


def main(
    data: Annotated[Path, typer.Option(help="Folder of fb15k237_*.jsonl.gz.")],
    count: Annotated[int, typer.Option(help="Responses.", min=10)] = 500,
    feqa: Annotated[int, typer.Option(help="Corrupted responses measured by FeQA, too.", min=0)] = 150,
    bundle: Annotated[str, typer.Option(help="Bundle with critic and retriever.")] = "nph",
    threads: Annotated[int | None, typer.Option(help="CPU threads of a graph run.", min=1)] = None,
    ways: Annotated[str, typer.Option(help="Comma-separated names of ways to repair.")] = ",".join(
        dict.fromkeys(way.name.replace(", ", "/") for way in WAYS)
    ),
    out: Annotated[Path | None, typer.Option(help="JSON file.")] = None,
) -> None:
    """Repair every case in every way, and print and write the shares."""
    index = TripleIndex.read(data)
    drawn = critic.CriticExamples.read(data, "test").sample(count, SEED)
    cases = [case for case in drawn if case.dialogue.triples]  # without any there is nothing to hold a response against
    wanted = {name.strip().replace("/", ", ") for name in ways.split(",")}
    found = []
    with ExitStack() as stack:
        engine = stack.enter_context(Engine.load(bundle, "cpu", threads=threads))
        judge = stack.enter_context(Engine.load("compact", "cpu", threads=threads)) if feqa else None
        graph = KnowledgeGraph.from_triples(index.triples)
        for way in WAYS:
            if way.name not in wanted:
                continue
            repaired = [_repair(engine, graph, case, way) for case in track(cases, way.name)]
            few = None
            if judge is not None and way.type_aware and way.verified > 1:
                few = _faithfulness(judge, cases, repaired, feqa)
            found.append(Run(way.name, outcomes(cases, repaired, _truth(index, way.whole)), few))
            _show(found[-1])
    settings: dict[str, int | float | str | None] = {"responses": count, "feqa": feqa, "seed": SEED, "bundle": bundle}
    common.finish("repairs", settings, found, [], out or common.RESULTS / "repairs.json")


Truth = Callable[[CorruptedDialogue, Triple], bool]
"""Whether a fact holds that a dialogue states."""


def outcomes(cases: Sequence[CorruptedDialogue], repaired: Sequence[Refinement], holds: Truth) -> dict[str, Outcome]:
    """The shares by kind."""
    kinds: dict[str, list[tuple[CorruptedDialogue, Refinement]]] = defaultdict(list)
    for case, found in zip(cases, repaired, strict=True):
        kinds[case.kind].append((case, found))
        if case.kind in ("extrinsic", "swapped", "misplaced"):
            kinds["corrupted"].append((case, found))
    return {kind: _outcome(pairs, holds) for kind, pairs in sorted(kinds.items())}


def right(case: CorruptedDialogue, found: Refinement, holds: Truth) -> bool:
    """Whether what the response states holds with the entities that stand in it after repair."""
    now: dict[str, str] = {}
    for wrong, mention in zip(case.dialogue.mentions, case.original.mentions, strict=True):
        put = [one for one in found.changes if one.mention.start < wrong.end and wrong.start < one.mention.end]
        now[mention.entity] = put[0].chosen.entity if put else wrong.entity
    touched = {change.mention.start for change in found.changes}
    named = [(mention.start, mention.end) for mention in case.dialogue.mentions]
    if any(not any(start <= at < end for start, end in named) for at in touched):
        return False  # something else than a name was replaced
    return all(
        holds(case, Triple(now.get(one.subject, one.subject), one.predicate, now.get(one.object, one.object)))
        for one in case.original.stated_triples()
    )


def _repair(engine: Engine, graph: KnowledgeGraph, case: CorruptedDialogue, way: Way) -> Refinement:
    dialogue, verified = case.dialogue, steps.VERIFIED_DRAFTS
    steps.VERIFIED_DRAFTS = way.verified
    try:
        return engine.refine(
            dialogue.response,
            dialogue.history,
            triples=None if way.whole else dialogue.triples,
            graph=graph if way.whole else None,
            type_aware=way.type_aware,
        )
    finally:
        steps.VERIFIED_DRAFTS = verified


def _truth(index: TripleIndex, whole: bool) -> Truth:
    """Facts of the dialogue's triples; for a repair with the whole graph also those of it, however it words them."""

    def holds(case: CorruptedDialogue, fact: Triple) -> bool:
        if fact in case.original.triples or fact in case.dialogue.triples:
            return True
        return whole and any(one in index for one in list_originals(fact))

    return holds


def _outcome(pairs: Sequence[tuple[CorruptedDialogue, Refinement]], holds: Truth) -> Outcome:
    def share(wanted: Iterable[bool | None]) -> float:
        return round(sum(map(bool, wanted)) / len(pairs), 4)

    return Outcome(
        responses=len(pairs),
        flagged=share(found.before.hallucinated for _, found in pairs),
        refined=share(found.status == "refined" for _, found in pairs),
        accepted=share(found.accepted for _, found in pairs),
        right=share(right(case, found, holds) for case, found in pairs),
        exact=share(found.response.lower() == case.original.response.lower() for case, found in pairs),
        hallucinated_after=share((found.after or found.before).hallucinated for _, found in pairs),
    )


def _faithfulness(
    engine: Engine, cases: Sequence[CorruptedDialogue], repaired: Sequence[Refinement], count: int
) -> Faithfulness | None:
    """FeQA over history and the dialogue's triples, of corrupted, repaired and original responses."""
    chosen = [
        pair for pair in zip(cases, repaired, strict=True) if pair[0].kind in ("extrinsic", "swapped", "misplaced")
    ]
    random.Random(SEED).shuffle(chosen)
    rows = []
    for case, found in track(chosen[:count], "FeQA"):
        told = format_document(case.dialogue.history, case.dialogue.triples)
        texts = (case.dialogue.response, found.response, case.original.response)
        values = [engine.score(text, told, metrics=("feqa",)).value for text in texts]
        if None not in values:
            rows.append([value for value in values if value is not None])
    if not rows:
        return None
    before, after, gold = (round(sum(column) / len(rows), 4) for column in zip(*rows, strict=True))
    return Faithfulness(len(rows), before, after, gold)


def _show(run: Run) -> None:
    columns = ("kind", *Outcome.__struct_fields__)
    rows = [
        (kind, *(f"{value:.3f}" if isinstance(value, float) else str(value) for value in msgspec.structs.astuple(one)))
        for kind, one in run.kinds.items()
    ]
    screen = common.console()
    screen.print(common.table(run.name, columns, rows))
    if run.feqa is not None:
        one = run.feqa
        screen.print(
            f"FeQA of {one.responses}: {one.before:.3f} before, {one.after:.3f} after, {one.gold:.3f} originally"
        )


if __name__ == "__main__":
    typer.run(main)

"""Quality of critique and repair on held-out dialogues: ``python -m bench.repairs --data DIR``.

Dialogues about triples that the embedded models were not trained on, in unseen phrases, are corrupted as in the
critic's training, criticised and repaired. A repair is right when every fact that the response states holds with its
new entities; ``exact`` counts repairs that restore the response before the corruption. FeQA reads history and triples,
before and after, with the compact bundle (the paper's tables 3 and 5; docs/quality_nph.md).
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

from groundwire.engine import Engine
from groundwire.recipes.common.phrases import list_originals
from groundwire.recipes.common.triple_index import TripleIndex
from groundwire.recipes.nph import critic
from groundwire.recipes.nph.corruption import CorruptedDialogue
from groundwire.repair import KnowledgeGraph, Refinement, RefineOptions, Refiner
from groundwire.repair.nph import steps
from groundwire.runtime.triples import Triple

from .support import common

SEED = 11


class Outcome(msgspec.Struct, frozen=True):
    """Responses of one kind of corruption; shares 0–1 of all of them."""

    responses: int
    flagged: float
    """Flagged as hallucinated by the critic: recall; for ``clean`` responses the false positive rate."""
    refined: float
    """Changed."""
    accepted: float
    """Changed, and then accepted as faithful by the critic."""
    right: float
    """Every stated fact holds after repair, changed or not; for ``clean``: unchanged, or still right."""
    exact: float
    """The response before the corruption, letter for letter."""
    hallucinated_after: float
    """Flagged as hallucinated by the critic after repair."""


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
    veto: bool = False


WAYS = (
    Way("triples", whole=False),
    Way("triples, vetoed", whole=False, veto=True),
    Way("triples, any type", whole=False, type_aware=False),
    Way("triples, not verified", whole=False, verified=1),
    Way("graph", whole=True),
    Way("graph, vetoed", whole=True, veto=True),
    Way("graph, any type", whole=True, type_aware=False),
    Way("graph, not verified", whole=True, verified=1),
)
ALL_WAYS = ",".join(way.name.replace(", ", "/") for way in WAYS)
"""The default of ``--ways``."""


def main(
    data: Annotated[Path, typer.Option(help="Folder of fb15k237_*.jsonl.gz.")],
    count: Annotated[int, typer.Option(help="Responses.", min=10)] = 500,
    feqa: Annotated[int, typer.Option(help="CorruptedDialogue responses measured by FeQA, too.", min=0)] = 150,
    bundle: Annotated[str, typer.Option(help="Bundle with critic and retriever.")] = "nph",
    threads: Annotated[int | None, typer.Option(help="CPU threads of the models.", min=1)] = None,
    ways: Annotated[str, typer.Option(help="Comma-separated names of ways to repair.")] = ALL_WAYS,
    out: Annotated[Path | None, typer.Option(help="JSON file.")] = None,
) -> None:
    """Repair every case in every way, and print and write the shares."""
    index = TripleIndex.read(data)
    drawn = critic.CriticExamples.read(data, "test").sample(count, SEED)
    cases = [case for case in drawn if case.dialogue.triples]  # a response needs triples to be checked against
    wanted = {name.strip().replace("/", ", ") for name in ways.split(",")}
    runs = []
    with ExitStack() as stack:
        engine = stack.enter_context(Engine.load(bundle, "cpu", threads=threads))
        scorer = stack.enter_context(Engine.load("compact", "cpu", threads=threads)) if feqa else None
        graph = KnowledgeGraph.from_triples(index.triples)
        for way in WAYS:
            if way.name not in wanted:
                continue
            repaired = [_repair(engine, graph, case, way) for case in track(cases, way.name)]
            few = None
            if scorer is not None and way.type_aware and way.verified > 1:
                few = _faithfulness(scorer, cases, repaired, feqa)
            runs.append(Run(way.name, outcomes(cases, repaired, _truth(index, way.whole)), few))
            _show(runs[-1])
    settings: dict[str, int | float | str | None] = {"responses": count, "feqa": feqa, "seed": SEED, "bundle": bundle}
    common.finish("repairs", settings, runs, [], out or common.RESULTS / "repairs.json")


Truth = Callable[[CorruptedDialogue, Triple], bool]
"""Whether a fact that a dialogue states holds."""


def outcomes(cases: Sequence[CorruptedDialogue], repaired: Sequence[Refinement], holds: Truth) -> dict[str, Outcome]:
    """Return the shares by kind of corruption."""
    kinds: dict[str, list[tuple[CorruptedDialogue, Refinement]]] = defaultdict(list)
    for case, refinement in zip(cases, repaired, strict=True):
        kinds[case.kind].append((case, refinement))
        if case.kind in ("extrinsic", "swapped", "misplaced"):
            kinds["corrupted"].append((case, refinement))
    return {kind: _outcome(pairs, holds) for kind, pairs in sorted(kinds.items())}


def right(case: CorruptedDialogue, refinement: Refinement, holds: Truth) -> bool:
    """Return whether every fact of the response holds with its entities after repair."""
    now: dict[str, str] = {}
    for wrong, mention in zip(case.dialogue.mentions, case.original.mentions, strict=True):
        put = [
            change
            for change in refinement.changes
            if change.mention.start < wrong.end and wrong.start < change.mention.end
        ]
        now[mention.entity] = put[0].chosen.entity if put else wrong.entity
    touched = {change.mention.start for change in refinement.changes}
    named = [(mention.start, mention.end) for mention in case.dialogue.mentions]
    if any(not any(start <= position < end for start, end in named) for position in touched):
        return False  # the repair replaced a word that is not a name
    return all(
        holds(case, Triple(now.get(fact.subject, fact.subject), fact.predicate, now.get(fact.object, fact.object)))
        for fact in case.original.stated_triples()
    )


def _repair(engine: Engine, graph: KnowledgeGraph, case: CorruptedDialogue, way: Way) -> Refinement:
    dialogue, verified = case.dialogue, steps.VERIFIED_DRAFTS
    steps.VERIFIED_DRAFTS = way.verified
    try:
        return Refiner(engine).refine(
            dialogue.response,
            graph if way.whole else dialogue.triples,
            history=dialogue.history,
            options=RefineOptions(type_aware=way.type_aware, veto=way.veto),
        )
    finally:
        steps.VERIFIED_DRAFTS = verified


def _truth(index: TripleIndex, whole: bool) -> Truth:
    """Return a check for facts of the dialogue's triples; with the whole graph also for its facts, in any wording."""

    def holds(case: CorruptedDialogue, fact: Triple) -> bool:
        if fact in case.original.triples or fact in case.dialogue.triples:
            return True
        return whole and any(original in index for original in list_originals(fact))

    return holds


def _outcome(pairs: Sequence[tuple[CorruptedDialogue, Refinement]], holds: Truth) -> Outcome:
    def share(wanted: Iterable[bool | None]) -> float:
        return round(sum(map(bool, wanted)) / len(pairs), 4)

    return Outcome(
        responses=len(pairs),
        flagged=share(refinement.before.hallucinated for _, refinement in pairs),
        refined=share(refinement.status == "refined" for _, refinement in pairs),
        accepted=share(refinement.accepted for _, refinement in pairs),
        right=share(right(case, refinement, holds) for case, refinement in pairs),
        exact=share(refinement.response.lower() == case.original.response.lower() for case, refinement in pairs),
        hallucinated_after=share((refinement.after or refinement.before).hallucinated for _, refinement in pairs),
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
    for case, refinement in track(chosen[:count], "FeQA"):
        history, triples = case.dialogue.history, case.dialogue.triples
        texts = (case.dialogue.response, refinement.response, case.original.response)
        values = [engine.score(text, history=history, triples=triples, metrics=("feqa",)).value for text in texts]
        if None not in values:
            rows.append([value for value in values if value is not None])
    if not rows:
        return None
    before, after, gold = (round(sum(column) / len(rows), 4) for column in zip(*rows, strict=True))
    return Faithfulness(len(rows), before, after, gold)


def _show(run: Run) -> None:
    columns = ("kind", *Outcome.__struct_fields__)
    rows = [
        (
            kind,
            *(f"{value:.3f}" if isinstance(value, float) else str(value) for value in msgspec.structs.astuple(outcome)),
        )
        for kind, outcome in run.kinds.items()
    ]
    screen = common.console()
    screen.print(common.table(run.name, columns, rows))
    if run.feqa is not None:
        feqa = run.feqa
        screen.print(
            f"FeQA of {feqa.responses}: {feqa.before:.3f} before, {feqa.after:.3f} after, {feqa.gold:.3f} originally"
        )


if __name__ == "__main__":
    typer.run(main)

"""Knowledge graphs of the size of FB15k-237: loading, two hops, and mentions in a sentence.

    python -m bench.graph                # a graph made by a seeded generator
    python -m bench.graph --data DIR     # and FB15k-237 itself, from DIR/fb15k237_{train,dev,test}.jsonl.gz

Neighbourhoods are compared with two peers on the same graph, in turns: dictionaries of lists, as in
plain Python, and scipy.sparse's incidence matrix. All three must find the same triples.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import typer
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from groundwire.repair.kg import KnowledgeGraph
from groundwire.runtime.triples import Triple

from .support import common, fresh_graph
from .support.common import PerformanceTarget, Timing, check

SEED = 20_150
TRIPLES, ENTITIES, RELATIONS = 310_116, 14_541, 237
"""Of FB15k-237, all parts together."""
LIMIT = 1000
"""Most triples around a hub."""
SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]
SENTENCES = (
    "I really liked {}, it was much better than {} and the one with {} in it, wasn't it?",
    "Did you know that {} was directed by {}? Later on {} did something quite similar.",
    "Well, {} is known for {}, but people often forget about {} when they talk about these things.",
)


class Measured(msgspec.Struct, frozen=True):
    """One graph. Queries are in CPU time of their one thread: on an idle machine it is the wall clock's."""

    name: str
    triples: int
    entities: int
    relations: int
    largest_degree: int
    load: Timing
    """In fresh processes."""
    load_cpu: Timing
    """The same in CPU time."""
    peak_mb: float
    """The largest resident size of such a process."""
    graph_mb: float
    """Growth of the resident size by loading."""
    one_hop: Timing
    two_hops: Timing
    """All triples within two hops of entities drawn at random."""
    two_hops_triples: float
    """Their median number."""
    two_hops_limited: Timing
    """At most 1,000 triples around the same entities."""
    two_hops_of_hubs: Timing
    """At most 1,000 triples around the entities with the most."""
    two_hops_dictionaries: Timing
    """The same as ``two_hops`` by dictionaries of lists."""
    two_hops_scipy: Timing
    """The same by scipy.sparse."""
    link: Timing
    """A sentence of about 80 characters and three names."""
    linked: float
    """The share of these names that were linked to their entity."""


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of fb15k237_*.jsonl.gz.")] = None,
    queries: Annotated[int, typer.Option(help="Entities and sentences asked about.", min=10)] = 500,
    loads: Annotated[int, typer.Option(help="Fresh processes.", min=1)] = 5,
    tiny: Annotated[bool, typer.Option(help="A small graph, to try the benchmark itself.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file; by default bench/results, or none with --tiny.")] = None,
) -> None:
    """Measure the generated graph, and the real one where it is given."""
    folder = data or (Path(os.environ["GROUNDWIRE_BENCH_DATA"]) if "GROUNDWIRE_BENCH_DATA" in os.environ else None)
    queries, loads = (20, 1) if tiny else (queries, loads)
    with tempfile.TemporaryDirectory() as work:
        made = Path(work) / "made.jsonl"
        made.write_bytes(b"\n".join(map(msgspec.json.encode, synthetic(tiny))))
        results = [measure("made", made, queries, loads)]
        if folder is not None:
            results.append(measure("FB15k-237", joined(folder, Path(work)), queries, loads))
    for measured in results:
        show(measured)
    settings: dict[str, int | float | str | None] = {"queries": queries, "loads": loads, "limit": LIMIT, "tiny": tiny}
    target = out or (None if tiny else common.RESULTS / "graph.json")
    common.finish(
        "graph", settings, results, [] if tiny else [t for measured in results for t in targets(measured)], target
    )


def synthetic(tiny: bool) -> list[tuple[str, str, str]]:
    """Return as many triples, entities and relations as FB15k-237 has, with hubs: degrees fall like a power of the
    rank.

    An entity has one of twelve kinds and a relation joins two kinds, so that relations constrain their entities.
    """
    rng, kinds = np.random.default_rng(SEED), 12
    wanted, entities, relations = (3_000, 300, 24) if tiny else (TRIPLES, ENTITIES, RELATIONS)
    names = list(dict.fromkeys(" ".join(_word(rng) for _ in range(rng.integers(1, 4))) for _ in range(2 * entities)))
    ranks = entities // kinds
    joins = np.vstack([rng.permutation(kinds) for _ in range(2 * relations // kinds + 1)]).reshape(-1)[: 2 * relations]
    drawn = 3 * wanted
    relation = rng.choice(relations, drawn, p=_falling(relations, 0.9))
    ends = joins.reshape(2, -1)[:, relation] + kinds * rng.choice(ranks, (2, drawn), p=_falling(ranks, 0.85))
    # Each entity at least once.
    ends[0, :entities] = np.arange(entities)
    rows, first = np.unique(np.vstack([relation, ends]), axis=1, return_index=True)
    chosen = rows[:, np.argsort(first)][:, :wanted].T.tolist()
    check(len(chosen) == wanted, f"the generator made {len(chosen)} different triples instead of {wanted}")
    return [(names[a], f"/kind/k{joins[r]}/relation_{r}", names[b]) for r, a, b in chosen]


def joined(folder: Path, work: Path) -> Path:
    """Concatenate the three parts: gzip allows several members in a file."""
    path = work / "fb15k237.jsonl.gz"
    with path.open("wb") as out:
        for part in ("train", "dev", "test"):
            with (folder / f"fb15k237_{part}.jsonl.gz").open("rb") as stream:
                shutil.copyfileobj(stream, out)
    return path


def measure(name: str, path: Path, queries: int, loads: int) -> Measured:
    """Check every answer, then time it."""
    samples = [_load(path) for _ in range(loads)]
    graph = KnowledgeGraph.load(path)
    check(not graph.problems, f"{path}: {graph.problems[:3]}")
    check(samples[0].triples == len(graph), f"{samples[0].triples} triples in a fresh process, {len(graph)} here")
    rng = random.Random(SEED)
    asked = rng.sample(graph.entities, min(queries, len(graph.entities)))
    hubs = sorted(graph.entities, key=graph.degree)[-50:]
    dictionaries, scipy = Dictionaries(graph), Scipy(graph)
    sizes = []
    for entity in asked:
        triples = graph.neighbourhood([entity], 2).triples
        sizes.append(len(triples))
        for peer in (dictionaries, scipy):
            check(
                set(peer.two_hops(entity)) == set(triples),
                f"{type(peer).__name__} finds other triples around {entity!r}",
            )
    for entity in hubs:
        limited = graph.neighbourhood([entity], 2, LIMIT)
        check(len(limited.triples) == min(LIMIT, len(dictionaries.two_hops(entity))), f"the limit at {entity!r}")
    two = _one_by_one(
        {
            "graph": lambda entity: graph.neighbourhood([entity], 2),
            "dictionaries": dictionaries.two_hops,
            "scipy": scipy.two_hops,
        },
        asked,
    )
    texts = [_sentence(rng, graph.entities) for _ in range(queries)]
    hits = [len({mention.entity for mention in graph.link(text)} & set(names)) for text, names in texts]
    return Measured(
        name=name,
        triples=len(graph),
        entities=len(graph.entities),
        relations=len(graph.relations),
        largest_degree=graph.degree(hubs[-1]),
        load=Timing.of(sample.load_ms for sample in samples),
        load_cpu=Timing.of(sample.load_cpu_ms for sample in samples),
        peak_mb=max(sample.peak_mb for sample in samples),
        graph_mb=max(sample.resident_loaded_mb - sample.resident_imported_mb for sample in samples),
        one_hop=_one_by_one({"": lambda entity: graph.neighbourhood([entity])}, asked)[""],
        two_hops=two["graph"],
        two_hops_triples=float(np.median(sizes)),
        two_hops_limited=_one_by_one({"": lambda entity: graph.neighbourhood([entity], 2, LIMIT)}, asked)[""],
        two_hops_of_hubs=_one_by_one({"": lambda entity: graph.neighbourhood([entity], 2, LIMIT)}, hubs)[""],
        two_hops_dictionaries=two["dictionaries"],
        two_hops_scipy=two["scipy"],
        link=_one_by_one({"": graph.link}, [text for text, _ in texts])[""],
        linked=sum(hits) / sum(len(set(names)) for _, names in texts),
    )


class Dictionaries:
    """Two hops in plain Python."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._around: defaultdict[str, list[Triple]] = defaultdict(list)
        for triple in graph:
            self._around[triple.subject].append(triple)
            if triple.object != triple.subject:
                self._around[triple.object].append(triple)

    def two_hops(self, entity: str) -> list[Triple]:
        near = {name for triple in self._around[entity] for name in (triple.subject, triple.object)}
        return list(dict.fromkeys(triple for name in (entity, *near) for triple in self._around[name]))


class Scipy:
    """Two hops by the rows of a sparse matrix, entities by triples."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._index = {name: index for index, name in enumerate(graph.entities)}
        self._triples = np.array([*graph, None], dtype=object)[:-1]
        self._ends = np.array([[self._index[t.subject], self._index[t.object]] for t in graph])
        rows, columns = self._ends.reshape(-1), np.repeat(np.arange(len(graph)), 2)
        self._matrix = csr_matrix((np.ones(len(rows), dtype=np.int8), (rows, columns)))

    def two_hops(self, entity: str) -> list[Triple]:
        first = self._matrix[[self._index[entity]]].indices
        near = np.unique(np.append(self._ends[first], self._index[entity]))
        triples: list[Triple] = self._triples[np.unique(self._matrix[near].indices)].tolist()
        return triples


def targets(measured: Measured) -> list[PerformanceTarget]:
    """The bounds that the project set for a graph of this size."""
    return [
        PerformanceTarget.at_most(f"{measured.name}: load p50", measured.load.p50_ms, 5000, "ms"),
        PerformanceTarget.at_most(f"{measured.name}: peak", measured.peak_mb, 500, "MB"),
        PerformanceTarget.at_most(f"{measured.name}: two hops p50", measured.two_hops.p50_ms, 5, "ms"),
        PerformanceTarget.at_most(
            f"{measured.name}: two hops of hubs, {LIMIT} triples, p50", measured.two_hops_of_hubs.p50_ms, 5, "ms"
        ),
        PerformanceTarget.at_most(f"{measured.name}: link p50", measured.link.p50_ms, 1, "ms"),
    ]


def show(measured: Measured) -> None:
    """Print a graph's timings."""
    title = (
        f"{measured.name}: {measured.triples:,} triples, {measured.entities:,} entities, "
        f"peak {measured.peak_mb:.0f} MB; {measured.two_hops_triples:,.0f} triples within two hops, "
        f"{measured.linked:.1%} of names linked"
    )
    timings = [(field, getattr(measured, field)) for field in measured.__struct_fields__]
    rows = [
        (name.replace("_", " "), *(f"{value:.3g}" for value in (timing.p50_ms, timing.p95_ms, timing.p99_ms)))
        for name, timing in timings
        if isinstance(timing, Timing)
    ]
    common.console().print(common.table(title, ("", "p50 ms", "p95", "p99"), rows))


def _one_by_one(subjects: dict[str, Callable[[str], object]], inputs: Sequence[str]) -> dict[str, Timing]:
    """Time every input once for each subject, in turns, in CPU time, so that other processes do not count."""
    samples: dict[str, list[float]] = {name: [] for name in subjects}
    for turn, query in enumerate(inputs):
        for name in common.in_turn(subjects, turn):
            started = time.process_time()
            subjects[name](query)
            samples[name].append((time.process_time() - started) * 1000)
    return {name: Timing.of(spent_ms) for name, spent_ms in samples.items()}


def _load(path: Path) -> fresh_graph.Load:
    command = [sys.executable, "-m", "bench.support.fresh_graph", str(path)]
    done = subprocess.run(command, cwd=common.ROOT, check=True, stdout=subprocess.PIPE)
    return msgspec.json.decode(done.stdout, type=fresh_graph.Load)


def _sentence(rng: random.Random, entities: Sequence[str]) -> tuple[str, list[str]]:
    names = rng.sample(entities, 3)
    return rng.choice(SENTENCES).format(*names), names


def _falling(count: int, exponent: float) -> NDArray[np.float64]:
    """Probabilities that fall like a power of the rank."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    shares: NDArray[np.float64] = np.divide(weights, weights.sum(), dtype=np.float64)
    return shares


def _word(rng: np.random.Generator) -> str:
    return "".join(SYLLABLES[index] for index in rng.integers(0, len(SYLLABLES), rng.integers(2, 5))).capitalize()


if __name__ == "__main__":
    typer.run(main)

"""Time and memory of a fresh process that loads a knowledge graph. Run by graph.py, one process per sample.

``python -m bench.support.fresh_graph FILE`` prints one sample.
"""

from __future__ import annotations

import sys
import time

import msgspec

from .memory import peak_mb, resident_mb


class Load(msgspec.Struct, frozen=True):
    """Milliseconds and MB of one process."""

    load_ms: float
    """From the file to the graph with all its indices."""
    load_cpu_ms: float
    """The same in CPU time, so that other processes do not count."""
    resident_imported_mb: float
    """The interpreter with numpy and msgspec."""
    resident_loaded_mb: float
    peak_mb: float
    triples: int
    entities: int
    relations: int


def main(path: str) -> Load:
    """Load the graph."""
    from groundwire.repair.kg import KnowledgeGraph

    imported, started, busy = resident_mb(), time.perf_counter(), time.process_time()
    graph = KnowledgeGraph.load(path)
    spent, worked = (time.perf_counter() - started) * 1000, (time.process_time() - busy) * 1000
    return Load(
        spent, worked, imported, resident_mb(), peak_mb(), len(graph), len(graph.entities), len(graph.relations)
    )


if __name__ == "__main__":
    print(msgspec.json.encode(main(sys.argv[1])).decode())

"""Time and memory of a fresh process that scores its first responses. Run by compact.py, one process per sample.

PyTorch is hidden from it: spaCy's library imports it wherever it is installed, and an installation that only scores
does not have it. ``python -m bench.support.fresh compact 2 128`` prints one sample.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise

import msgspec

from .memory import hide, peak_mb, resident_mb


class Start(msgspec.Struct, frozen=True):
    """Milliseconds and MB of one process, from its first import of the engine on."""

    import_ms: float
    load_ms: float
    """``Engine.load``: bundle, sessions, tokenizers, spaCy pipeline."""
    first_score_ms: float
    """The first response, without a warm-up."""
    resident_imported_mb: float
    resident_loaded_mb: float
    peak_mb: float
    """The largest resident size, after all examples were scored."""


def main(bundle: str, threads: int, max_new_tokens: int) -> Start:
    """Load the engine and score the examples once, with questions of up to ``max_new_tokens`` tokens."""
    hide("torch")
    times = [time.perf_counter()]
    from groundwire.engine import Engine, Options
    from groundwire.engine.schema.options import Q2Options
    from groundwire.generation import BeamSearch

    times.append(time.perf_counter())
    imported = resident_mb()
    with Engine.load(bundle, threads=threads) as engine:
        times.append(time.perf_counter())
        loaded = resident_mb()
        from .dialogues import examples  # not before: it imports the engine

        texts, options = examples(), Options(Q2Options(BeamSearch(max_new_tokens=max_new_tokens)))
        engine.score(*texts[0], metrics=("q2",), options=options)
        times.append(time.perf_counter())
        for dialogue in texts[1:]:
            engine.score(*dialogue, metrics=("q2",), options=options)
    imports, loads, first = ((after - before) * 1000 for before, after in pairwise(times))
    return Start(imports, loads, first, imported, loaded, peak_mb())


if __name__ == "__main__":
    print(msgspec.json.encode(main(sys.argv[1], *map(int, sys.argv[2:]))).decode())

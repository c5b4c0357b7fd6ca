"""CPU seconds of a stream that is fed character by character, by the shape of the text and its length.

    python -m bench.characters [--length 20000]

The models are fakes, so that what is measured is the stream, the engine and its threads.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from groundwire.engine import Engine, Options
from groundwire.guard import Guard, Policy
from tests.support.streams import KNOWLEDGE, METRICS, world

SHAPES = (
    "\n",
    " ",
    "a",
    "a ",
    ".",
    ") ",
    "```\n",
    "\u200b",
    "a:\n",
    "# a\n",
    "| a ",
    "1. ",
    "Dr. ",
    "A. ",
    "A? ",
    "- a\n",
)
RESULTS = Path(__file__).with_name("results") / "characters.json"
POLICY = Policy(
    inconsistent="flag",
    unverifiable="flag",
    unknown="flag",
    deadline="flag",
    failed="flag",
    truncated="flag",
    overflow="flag",
    max_held_words=10**9,
    max_held_ms=1e9,
)
"""The stream never ends, and holds as much as it has to."""


def measure(engine: Engine, shape: str, length: int) -> tuple[float, int]:
    """Return the CPU seconds of all threads for a text of ``length`` characters, and the number of events."""
    stream = Guard(engine).open(KNOWLEDGE, POLICY, metrics=METRICS, scoring=Options(max_response_chars=length + 1))
    started = time.process_time()
    events = sum(len(stream.feed(character)) for character in (shape * length)[:length])
    seconds = time.process_time() - started
    stream.close()
    return seconds, events


def main() -> None:
    """Print and save the seconds for half the length and for all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=20_000)
    length = parser.parse_args().length
    rows = []
    with Engine(world()) as engine:
        measure(engine, "It is. ", 100)
        for shape in SHAPES:
            half, _ = measure(engine, shape, length // 2)
            seconds, events = measure(engine, shape, length)
            rows.append({"shape": shape, "seconds": seconds, "doubling": seconds / half, "events": events})
            print(f"{shape!r:10} {seconds:6.2f} s  doubling {seconds / half:4.2f} ×  {events} events", flush=True)
    RESULTS.write_text(json.dumps({"length": length, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""How many files and functions one request enters: what somebody has to read who follows a score, and what it costs.

    python -m bench.walk
    python -m bench.walk --most 30          also prints the functions that are called most

Counted are the calls of Python functions (``sys.setprofile``'s event ``call``) on every thread, from the call of
``Engine.score`` to its result, one request after the models have run once: functions of Groundwire by file, and all of
Python together. spaCy's compiled functions, which report themselves as Python's, and functions of C are not counted.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Annotated, NamedTuple

import typer

from groundwire.engine import Engine

from .support.common import ROOT

WARM = ("Bees sing in the morning of 1936.", "Bees fly in the evening of 1935. They make honey.")
RESPONSE = "Each player begins with twelve pieces on a board of 100 squares."
KNOWLEDGE = "Chess is played on a board of 64 squares. Each player begins with sixteen pieces, among them eight pawns."
LONG_RESPONSE = (
    "The city library opens at nine on weekdays. It has about 40,000 books. Members may borrow ten books at a "
    "time. The loan period is three weeks. Late books cost 20 cents a day. The reading room is on the second "
    "floor. There are 24 computers for visitors. A card costs 15 euros a year. Children do not pay for a card. "
    "The café closes at five. Parking is free on Sundays. The building dates from 1912."
)
LONG_KNOWLEDGE = (
    "The city library opens at ten on weekdays and has about 40,000 books. Members may borrow ten books at a time "
    "for three weeks. Late books cost 25 cents a day. The reading room is on the first floor, with 24 computers. "
    "A card costs 15 euros a year; children get it free. The café closes at six. Parking is free on Sundays. The "
    "building dates from 1912."
)


class Walk(NamedTuple):
    """What one request enters."""

    functions: Counter[tuple[str, str]]
    """Calls by file and function; the file is relative to the repository."""
    calls: int
    """Calls of all Python functions, those of other packages included."""

    @property
    def files(self) -> set[str]:
        """The files of Groundwire."""
        return {path for path, _ in self.functions}


def follow(action: Callable[[], object]) -> Walk:
    """Count what an action enters, on all threads that exist since the profile was set."""
    functions: Counter[tuple[str, str]] = Counter()
    calls = 0

    def count(path: str, name: str) -> None:
        nonlocal calls
        if path == __file__:
            return
        calls += not path.endswith((".pyx", ".pxd"))
        if path.startswith(f"{ROOT}/") and "/site-packages/" not in path:
            functions[path.removeprefix(f"{ROOT}/"), name] += 1

    _watch[:] = [count]
    try:
        action()
    finally:
        _watch.clear()
    return Walk(functions, calls)


_watch: list[Callable[[str, str], None]] = []


def _enter(frame: FrameType, event: str, argument: object) -> None:
    if event == "call":
        for count in _watch:
            count(frame.f_code.co_filename, frame.f_code.co_name)


def main(
    most: Annotated[int, typer.Option(help="Functions that are printed, those that are called most.")] = 0,
    bundle: Annotated[str, typer.Option(help="Bundle, with which the reader loads where it is installed.")] = "compact",
) -> None:
    """Print files and calls of a short score, of one metric alone, and of a response of twelve sentences."""
    threading.setprofile(_enter)
    sys.setprofile(_enter)
    requests: dict[str, tuple[str, str, Sequence[str] | None]] = {
        "a default score": (RESPONSE, KNOWLEDGE, None),
        "overlap alone": (RESPONSE, KNOWLEDGE, ["overlap"]),
        "twelve sentences": (LONG_RESPONSE, LONG_KNOWLEDGE, None),
    }
    with Engine.load(bundle, device="cpu", threads=1) as engine:
        engine.score(*WARM)
        print(f"{'':<18} {'files':>6} {'calls of Groundwire':>20} {'calls of Python':>16}")
        for name, (response, knowledge, metrics) in requests.items():
            walk = follow(lambda: engine.score(response, knowledge, metrics=metrics))  # noqa: B023
            print(f"{name:<18} {len(walk.files):>6} {walk.functions.total():>20,} {walk.calls:>16,}")
            for (path, function), count in walk.functions.most_common(most):
                print(f"{count:>8,}  {path} {function}")
    sys.setprofile(None)
    threading.setprofile(None)


if __name__ == "__main__":
    typer.run(main)

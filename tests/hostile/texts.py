"""Odd texts without end: each has a score, a stream, a correction and a turn, and none of them fails.

python -m tests.hostile.texts                               100,000 checks of an engine with fake models
python -m tests.hostile.texts --checks 1000 --bundle compact    with the embedded models

``make fuzz`` tries fewer, and finds the smallest text that fails; write it down with ``@example``.
"""

from __future__ import annotations

import traceback
from random import Random
from typing import Annotated

import typer

from groundwire.engine import Engine
from groundwire.runtime.texts.unread import is_blank
from tests.support.odd_texts import check_correction, check_score, check_stream, check_turn, draw_text
from tests.support.streams import world

REPORT_EVERY = 10_000


def check_once(engine: Engine, random: Random) -> list[str]:
    """Check odd texts in one way, most often as a response that is scored.

    Args:
        engine: The engine.
        random: Chooses the texts and the way.

    Returns:
        The texts.

    Raises:
        AssertionError: Something does not hold; any other error is a defect too. The texts are its note.
    """
    texts = [draw_text(random) for _ in range(4)]
    response, *others = [text for text in texts if not is_blank(text)] or ["."]
    others = [*others, ".", "."]
    way = random.random()
    try:
        if way < 0.7:
            check_score(engine, response, others[: random.randrange(3)], others[2 : 2 + random.randrange(2)])
        elif way < 0.8:
            check_stream(engine, response, others[0], random.randint(1, 7))
        elif way < 0.9:
            check_correction(engine, response, others[0])
        else:
            check_turn(engine, response, others[0], others[1])
    except Exception as error:
        error.add_note(f"Texts: {response!r}, {others!r}")
        raise
    return texts


def main(
    checks: Annotated[int, typer.Option(help="How many, of about four texts each.", min=1)] = 100_000,
    seed: Annotated[int, typer.Option(help="Another seed has other texts.")] = 0,
    bundle: Annotated[str, typer.Option(help="Bundle; default: fake models.")] = "",
    failures: Annotated[int, typer.Option(help="End after so many.", min=1)] = 20,
) -> None:
    """Check odd texts, and print what fails."""
    engine = Engine.load(bundle) if bundle else Engine(world())
    random, failed = Random(seed), 0
    for number in range(1, checks + 1):
        try:
            check_once(engine, random)
        except Exception:
            failed += 1
            traceback.print_exc()
        if number % REPORT_EVERY == 0 or number == checks or failed == failures:
            print(f"{number:,} checks, {failed} failed", flush=True)
        if failed == failures:
            break
    engine.close()
    raise typer.Exit(bool(failed))


if __name__ == "__main__":
    typer.run(main)

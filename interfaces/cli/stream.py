"""``groundwire stream``: streams a response from standard input and checks it while it arrives."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from groundwire.files.results_file import translate_write_errors
from groundwire.guard import Guard
from groundwire.guard.policies import OUTCOMES, Fallback, Policy, check_policy
from groundwire.guard.records import Blocked
from groundwire.runtime.errors import InvalidRequest

from . import display, options
from .groups import Setting, expand_groups
from .output import STDOUT, print_json

READ_BYTES = 4096
"""Bytes that are read at most at a time."""
_DEFAULTS = Policy()
NAMES = (*OUTCOMES, "unsure")
"""What --on names: outcomes, and labels that are not sure."""


@expand_groups
def stream(
    source: Annotated[Path | None, typer.Argument(help="The text; standard input if left out, or -.")] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OUTCOME=ACTION",
            help=f"The action for text with an outcome ({', '.join(NAMES)}): flag, block, redact, or "
            "fallback:TEXT; repeat for several. Default: unverifiable=flag, unsure as its label, and block for all "
            "others.",
        ),
    ] = None,
    max_held_words: Annotated[
        int, Setting(help="Words of a sentence that is not complete, at most.", min=1)
    ] = _DEFAULTS.max_held_words,
    deltas: Annotated[
        bool, typer.Option("--deltas", help='Each line of the input is JSON: "text" or {"delta": "text"}.')
    ] = False,
    *,
    dialogue: options.DialogueOptions,
    scoring: options.ScoringOptions,
    engine_options: options.EngineOptions,
) -> None:
    """Stream a response, check it while it arrives, and say which text may be shown.

    The command prints JSON Lines as the text comes: an event `sentence` for each sentence, and `release` with the text
    that may be shown; `early_verdict` when a sentence is inconsistent, `blocked` when no more text may be shown, and
    `final` with the score of the whole response. The exit code is 3 if the text was blocked or could not be scored.

        echo "Honey never spoils. It is blue." | groundwire stream -k "Honey keeps for years."
        groundwire stream answer.txt -k "Delivery costs £5." --metrics fast --on inconsistent=redact
    """
    knowledge = dialogue.require_knowledge()
    policy = _parse_policy(on or (), max_held_words)
    request_options = scoring.make_options()
    names = scoring.parse_metrics()
    with engine_options.open() as engine:
        names = options.choose_metrics(engine, names)
        with options.refuse_value():
            opened = Guard(engine).open(
                knowledge, history=dialogue.history or (), metrics=names, policy=policy, scoring=request_options
            )
        blocked = False
        with opened, translate_write_errors(STDOUT), _open(source) as file:
            for text in _read_deltas(file) if deltas else _read_text(file):
                for event in opened.feed(text):
                    print_json(event)
                    blocked = blocked or isinstance(event, Blocked)
                if opened.is_ended:
                    break
            with options.refuse_value():
                score = opened.finish()
            for event in opened.last_events:
                print_json(event)
                blocked = blocked or isinstance(event, Blocked)
    display.exit_without_result("blocked" if blocked else score.status)


def _parse_policy(pairs: Sequence[str], max_held_words: int) -> Policy:
    actions: dict[str, Any] = {}
    for pair in pairs:
        outcome, _, action = pair.partition("=")
        if outcome not in NAMES:
            raise typer.BadParameter(
                f"{pair!r} names no outcome; use OUTCOME=ACTION with one of {', '.join(NAMES)}.", param_hint="--on"
            )
        is_fallback = action.startswith("fallback:")
        actions[outcome] = Fallback(action.removeprefix("fallback:")) if is_fallback else action
    with options.refuse_value("--on"):
        return check_policy(Policy(**actions, max_held_words=max_held_words))


def _open(source: Path | None) -> BinaryIO:
    if source is None or str(source) == "-":
        return sys.stdin.buffer
    try:
        return source.open("rb")
    except OSError as error:
        raise typer.BadParameter(f"{source} cannot be read: {error.strerror}.", param_hint="SOURCE") from error


def _read_text(file: BinaryIO) -> Iterator[str]:
    """Decode UTF-8 as it arrives; a character that is cut in two waits for its end."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    read = getattr(file, "read1", file.read)
    while data := read(READ_BYTES):
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def _read_deltas(file: BinaryIO) -> Iterator[str]:
    """Read deltas from JSON Lines; a delta may end within a surrogate pair."""
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidRequest(f"Line {number} is not JSON: {error}.") from error
        delta = event.get("delta") if isinstance(event, dict) else event
        if not isinstance(delta, str):
            raise InvalidRequest(f'Line {number} is {event!r:.200}; pass "text" or {{"delta": "text"}}.')
        yield delta

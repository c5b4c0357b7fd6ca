"""Responses that are checked while they are written, with the embedded bundle: how long a sentence waits for its event.

    python -m bench.streaming

The text comes in words, first as fast as the stream takes them, then one every ``--word-ms``, as a language model
writes. Measured is the time from the word that ends a sentence to that sentence's event, which needs the next word at
least; and the end of the stream, beside ``Engine.score`` of responses of the same kind. Every response is new, so
nothing is answered from a cache but what the stream has asked itself. Checked first: each score equals the score of
``Engine.score``, each sentence has the verdict that it has there, and what has left is the text.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from groundwire.engine import Engine, Score
from groundwire.engine.schema.results import Timings
from groundwire.guard import Guard, Policy, SentenceEvent
from groundwire.guard.policies import OUTCOMES

from .support import common
from .support.dialogues import Dialogue, distinct

SENTENCES = 4
METRICS: dict[str, tuple[str, ...] | str] = {
    "classifiers and rules": ("nli", "detector.consistency", "verifiability", "overlap", "overlap_precision", "values"),
    "the group fast": "fast",
}
"""What is asked: all that a verdict of the bundle needs, and that with the language model."""
_ACTIONS: dict[str, Any] = dict.fromkeys(OUTCOMES, "flag")
FLAG = Policy(**_ACTIONS)
CHECK_MS, EVENT_MS = 30.0, 40.0


class Row(msgspec.Struct, frozen=True):
    """Milliseconds."""

    metrics: str
    sentence: common.Timing
    """From the end of a sentence to its event, the next words coming at once: the time of its check."""
    paced: common.Timing
    """The same with a pause between two words."""
    finish: common.Timing
    score: common.Timing
    """``Engine.score`` of a whole response."""
    ratio: float
    """The median of a score over ``finish``'s."""
    processor: common.Timing
    """Processor time for each sentence of a response that is not paced, without the last."""


def main(
    responses: Annotated[int, typer.Option(help="Responses of each measurement.", min=2)] = 60,
    word_ms: Annotated[float, typer.Option(help="Milliseconds between two words of a paced response.")] = 20.0,
    threads: Annotated[int, typer.Option(help="Threads of the engine.", min=1)] = 2,
    tiny: Annotated[bool, typer.Option(help="Few responses, to try the benchmark itself.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file; by default bench/results, or none with --tiny.")] = None,
) -> None:
    """Check the streams' answers, then time them."""
    responses, word_ms = (2, 1.0) if tiny else (responses, word_ms)
    texts = make_responses()
    with Engine.load("compact", "cpu", threads=threads) as engine:
        engine.warmup()
        rows = []
        for name, metrics in METRICS.items():
            for dialogue in islice(texts, 2 if tiny else 10):
                check_answers(engine, dialogue, metrics)
            rows.append(measure(engine, name, metrics, texts, responses, word_ms))
    common.console().print(
        common.table(
            f"milliseconds; a word every {word_ms:g} ms where the response is paced",
            ("metrics", "check p50", "p95", "paced p50", "p95", "finish p50", "score p50", "ratio", "processor p50"),
            [
                (
                    row.metrics,
                    *(f"{spent:.1f}" for side in (row.sentence, row.paced) for spent in (side.p50_ms, side.p95_ms)),
                    f"{row.finish.p50_ms:.1f}",
                    f"{row.score.p50_ms:.1f}",
                    f"{row.ratio:.1f}",
                    f"{row.processor.p50_ms:.1f}",
                )
                for row in rows
            ],
        )
    )
    targets = (
        common.PerformanceTarget.at_most("check of a sentence, p50", rows[0].sentence.p50_ms, CHECK_MS, "ms"),
        common.PerformanceTarget.at_most(
            "event after the end of a sentence, p50", rows[0].paced.p50_ms, EVENT_MS, "ms"
        ),
    )
    settings: dict[str, int | float | str | None] = {
        "responses": responses, "word_ms": word_ms, "threads": threads, "sentences": SENTENCES, "tiny": tiny,
    }  # fmt: skip
    path = out or (None if tiny else common.RESULTS / "streaming.json")
    common.finish("streaming", settings, rows, () if tiny else targets, path)


def make_responses() -> Iterator[Dialogue]:
    """Responses of several sentences, each new, with the knowledge of all of them."""
    dialogues = distinct(10**9)
    while True:
        parts = list(islice(dialogues, SENTENCES))
        response = " ".join(f"{part.response.rstrip(' .!?')}." for part in parts)
        yield Dialogue(response, tuple(passage for part in parts for passage in part.knowledge))


def check_answers(engine: Engine, dialogue: Dialogue, metrics: Sequence[str] | str) -> None:
    """WrongAnswer unless a stream says about a response what ``score`` does."""
    with Guard(engine).open(dialogue.knowledge, metrics=metrics, policy=FLAG) as stream:
        events = [event for word in split_words(dialogue.response) for event in stream.feed(word)]
        score = stream.finish()
    expected = engine.score(dialogue.response, dialogue.knowledge, metrics=metrics)
    common.check(_without_time(score) == _without_time(expected), "a stream's score is not that of the whole")
    common.check(stream.released == dialogue.response, "what has left is not the response")
    checked = [event for event in events if isinstance(event, SentenceEvent)]
    common.check(len(checked) == len(score.sentences) - 1, f"{len(checked)} sentences are complete")
    if metrics == METRICS["classifiers and rules"]:  # the language model reads a sentence after those before it
        pairs = zip(checked, score.sentences, strict=False)
        common.check(
            all(event.verdict.probability == sentence.verdict.probability for event, sentence in pairs),
            "a sentence has another verdict than in the score",
        )


def measure(
    engine: Engine, name: str, metrics: Sequence[str] | str, texts: Iterator[Dialogue], responses: int, word_ms: float
) -> Row:
    """Stream responses at once and paced, and score others, in turns."""
    spent: dict[str, list[float]] = {"sentence": [], "paced": [], "finish": [], "score": [], "processor": []}
    for _ in range(responses):
        for paced in (0.0, word_ms):
            dialogue = next(texts)
            with Guard(engine).open(dialogue.knowledge, metrics=metrics, policy=FLAG) as stream:
                ended, began = time.perf_counter(), time.process_time()
                for word in split_words(dialogue.response):
                    fed = time.perf_counter()
                    events = stream.feed(word)
                    if any(isinstance(event, SentenceEvent) for event in events):
                        spent["paced" if paced else "sentence"].append((time.perf_counter() - ended) * 1000)
                    if word[-1] in ".!?":
                        ended = fed
                    if paced:
                        time.sleep(max(0.0, fed + paced / 1000 - time.perf_counter()))
                if paced:
                    stream.finish()
                else:
                    spent["processor"].append((time.process_time() - began) * 1000 / (SENTENCES - 1))
                    spent["finish"].append(common.timed(stream.finish)[0])
        dialogue = next(texts)
        spent["score"].append(
            common.timed(lambda: engine.score(dialogue.response, dialogue.knowledge, metrics=metrics))[0]  # noqa: B023
        )
    times = {part: common.Timing.of(samples) for part, samples in spent.items()}
    return Row(name, **times, ratio=times["score"].p50_ms / times["finish"].p50_ms)


def split_words(text: str) -> list[str]:
    """The words of a text, each with the space before it, as most language models write them."""
    first, *others = text.split(" ")
    return [first, *(f" {word}" for word in others)]


def _without_time(score: Score) -> Score:
    return msgspec.structs.replace(score, timings=Timings(0.0, {}))


if __name__ == "__main__":
    typer.run(main)

"""The native functions against the reference implementations in tests/reference, on inputs of a request's size.

    python -m bench.native

Both sides get the same inputs. Their results are compared first and then timed in turns. Spans and packing
are numpy arrays on the native side and lists on the other, as each takes them; beam search gets its model's scores from
a table on both sides, so what is compared is the search alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import typer
from numpy.typing import NDArray

from groundwire.runtime import _native
from tests.reference import beam_search, packing, spans

from .support import common

SEED = 20_211


class Case(NamedTuple):
    """A function and its reference implementation on one input."""

    name: str
    size: str
    native: Callable[[], Any]
    reference: Callable[[], Any]
    convert: Callable[[Any], Any]
    """Converts the native result to the form of the reference."""


class Row(msgspec.Struct, frozen=True):
    """Microseconds per call, and how many times faster the native function is."""

    name: str
    size: str
    native_p50_us: float
    native_p95_us: float
    reference_p50_us: float
    reference_p95_us: float
    ratio: float


def main(
    repeats: Annotated[int, typer.Option(help="Samples of each side.", min=1)] = 30,
    sample_ms: Annotated[float, typer.Option(help="Shortest sample; calls are repeated to reach it.")] = 10.0,
    tiny: Annotated[bool, typer.Option(help="Small inputs and few samples, to try the benchmark itself.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file; by default bench/results, or none with --tiny.")] = None,
) -> None:
    """Compare every native function with its reference implementation: first the result, then the time."""
    repeats, sample_ms = (3, 1.0) if tiny else (repeats, sample_ms)
    rows = [measure(case, repeats, sample_ms) for case in cases(tiny)]
    columns = ("function", "input", "native p50 µs", "p95", "reference p50 µs", "p95", "ratio")
    common.console().print(
        common.table(
            "native functions against reference implementations in Python: equal results",
            columns,
            [(row.name, row.size, *(f"{value:.4g}" for value in msgspec.structs.astuple(row)[2:])) for row in rows],
        )
    )
    settings: dict[str, int | float | str | None] = {"repeats": repeats, "sample_ms": sample_ms, "tiny": tiny}
    target = out or (None if tiny else common.RESULTS / "native.json")
    common.finish("native", settings, rows, (), target)


def measure(case: Case, repeats: int, sample_ms: float) -> Row:
    """Check that both results are equal, then time both in turns."""
    actual, expected = case.convert(case.native()), case.reference()
    common.check(
        actual == expected,
        f"{case.name}({case.size}): native gives {actual!r}, the reference implementation {expected!r}",
    )
    loops = {
        "native": common.loops_for(case.native, sample_ms),
        "reference": common.loops_for(case.reference, sample_ms),
    }
    timings = common.interleaved(
        {
            "native": lambda: common.repeat(case.native, loops["native"]),
            "reference": lambda: common.repeat(case.reference, loops["reference"]),
        },
        repeats,
    )
    native, slow = ((timings[side], 1000 / loops[side]) for side in ("native", "reference"))
    return Row(
        case.name,
        case.size,
        native[0].p50_ms * native[1],
        native[0].p95_ms * native[1],
        slow[0].p50_ms * slow[1],
        slow[0].p95_ms * slow[1],
        slow[0].p50_ms * slow[1] / (native[0].p50_ms * native[1]),
    )


def cases(tiny: bool) -> list[Case]:
    """Every function at the size of a request; ``tiny`` shrinks the inputs."""
    rng = np.random.default_rng(SEED)
    return [*_packing_cases(rng, 16 if tiny else 256), *_span_cases(rng, tiny), _beam_case(tiny)]


def _packing_cases(rng: np.random.Generator, rows: int) -> list[Case]:
    lengths = rng.integers(12, 120, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    flat = rng.integers(0, 30_000, int(offsets[-1]))
    chosen = np.arange(min(rows, 32), dtype=np.int64)
    plain = {"lengths": lengths.tolist(), "offsets": offsets.tolist(), "flat": flat.tolist(), "rows": chosen.tolist()}
    return [
        Case(
            "plan_batches",
            f"{rows} rows",
            lambda: _native.plan_batches(lengths, 1536, 64),
            lambda: packing.plan_batches(plain["lengths"], 1536, 64),
            _lists,
        ),
        Case(
            "pad_rows",
            f"{len(chosen)} rows to 128",
            lambda: _native.pad_rows(flat, offsets, chosen, 128, 0),
            lambda: packing.pad_rows(plain["flat"], plain["offsets"], plain["rows"], 128, 0),
            _lists,
        ),
    ]


def _span_cases(rng: np.random.Generator, tiny: bool) -> list[Case]:
    batch, width = (2, 24) if tiny else (8, 384)
    start, end = (rng.normal(size=(batch, width)).astype(np.float32) for _ in range(2))
    lengths = rng.integers(width // 2, width, batch)
    first, last = np.full(batch, 8, dtype=np.int64), lengths - 2
    limits = list(zip(first.tolist(), last.tolist(), strict=True))
    nulls = [spans.null_score(s, e) for s, e in zip(start, end, strict=True)]
    # The reference takes sequences of floats, and indexing an array boxes every element anew.
    rows = list(zip(start.tolist(), end.tolist(), strict=True))

    def argmax() -> list[spans.Span]:
        return [spans.argmax_span(s, e, n) for (s, e), n in zip(rows, lengths.tolist(), strict=True)]

    def best() -> list[list[spans.Span]]:
        return [spans.best_spans(s, e, a, b, 32, 5) for (s, e), (a, b) in zip(rows, limits, strict=True)]

    def plain_argmax(arrays: Sequence[NDArray[Any]]) -> list[spans.Span]:
        common.check(
            arrays[3].tolist() == nulls, "argmax_spans: null scores differ from the reference implementation's"
        )
        return list(zip(*(part.tolist() for part in arrays[:3]), strict=True))

    def plain_best(arrays: Sequence[NDArray[Any]]) -> list[list[spans.Span]]:
        common.check(arrays[3].tolist() == nulls, "best_spans: null scores differ from the reference implementation's")
        columns = [part.tolist() for part in arrays[:3]]
        return [list(zip(*row, strict=True)) for row in zip(*columns, strict=True)]

    size = f"{batch} rows of {width}"
    return [
        Case("argmax_spans", size, lambda: _native.argmax_spans(start, end, lengths), argmax, plain_argmax),
        Case(
            "best_spans",
            f"{size}, 5 best of at most 32",
            lambda: _native.best_spans(start, end, first, last, 32, 5),
            best,
            plain_best,
        ),
    ]


def _beam_case(tiny: bool) -> Case:
    vocabulary, length = (40, 6) if tiny else (1_000, 20)
    options = beam_search.Options(5, 5, 0, (1,), length, 2, 3, 1.0, True)
    by_prefix: dict[tuple[int, ...], tuple[NDArray[np.float32], NDArray[np.int64]]] = {}

    def scored(prefix: tuple[int, ...]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Log-probabilities after a prefix, and the tokens by rank: what a model and its top-k would give."""
        if prefix not in by_prefix:
            logits = 3 * np.random.default_rng([SEED, *prefix]).normal(size=vocabulary)
            scores = (logits - np.log(np.exp(logits).sum())).astype(np.float32)
            by_prefix[prefix] = scores, np.argsort(-scores, kind="stable")
        return by_prefix[prefix]

    def native() -> list[tuple[list[int], float]]:
        search = _native.BeamSearch(
            sources=1,
            num_beams=options.num_beams,
            num_return_sequences=options.num_return_sequences,
            start=options.start,
            eos=list(options.eos),
            vocabulary=vocabulary,
            max_length=options.max_length,
            min_length=options.min_length,
            no_repeat_ngram_size=options.no_repeat_ngram_size,
            length_penalty=options.length_penalty,
            early_stopping=options.early_stopping,
        )
        prefixes: list[tuple[int, ...]] = [()]
        closed = False
        while not closed:
            tokens, parents, count = search.tokens()[0].tolist(), search.parents()[0].tolist(), search.wanted()
            prefixes = [(*prefixes[parent], token) for parent, token in zip(parents, tokens, strict=True)]
            scored_prefixes = [scored(prefix) for prefix in prefixes]
            candidates = np.stack([order[:count] for _, order in scored_prefixes])
            scores = np.take_along_axis(np.stack([row for row, _ in scored_prefixes]), candidates, axis=1)
            closed = search.advance(scores[None], candidates[None])
        return list(search.results()[0])

    return Case(
        "BeamSearch",
        f"5 beams, {length} tokens, vocabulary {vocabulary}",
        native,
        lambda: beam_search.beam_search(lambda prefix: scored(prefix)[0], options),
        lambda results: [(list(tokens), float(score)) for tokens, score in results],
    )


def _lists(arrays: Sequence[NDArray[Any]]) -> tuple[list[Any], ...]:
    return tuple(part.tolist() for part in arrays)


if __name__ == "__main__":
    typer.run(main)

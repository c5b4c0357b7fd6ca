"""Whole responses: Q² with equal work against PyTorch, the latency of Q² and of the full set, and rates under load."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import torch

from groundwire.engine import Engine, LoadOptions, Options
from groundwire.engine.scheduling.scheduler import Scheduler
from groundwire.engine.schema.options import Q2Options
from groundwire.engine.schema.results import Request
from groundwire.evaluate.speed.measure import Stage, observe_stages
from groundwire.evaluate.speed.rates import Throughput, measure_rate
from groundwire.generation import BeamSearch
from groundwire.runtime.errors import ModelError
from groundwire.runtime.protocol import CaptureCounts

from .. import paper_size
from ..support import common, every_call, models
from ..support.common import Timing, check
from ..support.dialogues import distinct
from ..support.pieces import QUESTION
from .counting import GpuMemory, count_qa_tokens, count_token_gflop, read_gpu_memory, read_thread_seconds
from .predictions import WORKLOAD
from .setup import SPANS, Launches, Setup, count_launches, is_double
from .sides import load_model
from .stages import Save, Skipped, noted

Q2_ROLES = ("qg", "qa", "nli")
SPANS_EACH = 5
"""Spans of a response, on average, in the examples: 4.4 to 5.2."""
METRICS: dict[str, list[str] | str] = {"q2": ["q2"], "full": "all"}
"""How ``score`` is asked for Q² and for the full set."""
AT_ONCE = {"full": 1, "full at once": 5, "q2": 1, "q2 at once": 5}
"""Questions of a span that are asked in one round, in the rows of latency."""
PEER_SOURCES, PEER_PAIRS = 128, 512
"""Rows of one batch of PyTorch."""


class Batched:
    """Q²'s calls in PyTorch, each round's in batches over all responses."""

    def __init__(self, setup: Setup, device: str) -> None:
        from transformers import AutoTokenizer

        dtype = torch.float32 if device == "cpu" else torch.float16
        folders = {role: models.checkpoint(setup.work, setup.size, role) for role in Q2_ROLES}
        self._device = device
        self._models = {role: load_model(role, folder, device, dtype) for role, folder in folders.items()}
        self._tokenizers: dict[str, Any] = {role: _load(AutoTokenizer, folder) for role, folder in folders.items()}

    @torch.inference_mode()
    def run(self, requests: Sequence[every_call.Request]) -> int:
        """Ask, answer and compare as ``every_call.steps`` does; the number of questions."""
        owners = [(request, span) for request in requests for span in request.spans]
        texts = self._generate([every_call.TEMPLATE.format(span, request.response) for request, span in owners])
        asked = [
            (request, span, every_call.question(span, rank, text))
            for (request, span), generated in zip(owners, texts, strict=True)
            for rank, text in enumerate(generated)
        ]
        self._read("qa", [(text, request.response) for request, _, text in asked])
        self._read("qa", [(text, request.knowledge) for request, _, text in asked])
        self._read("nli", [(every_call.premise(text, request), f"{text} {span}.") for request, span, text in asked])
        return len(asked)

    def _generate(self, texts: Sequence[str]) -> list[list[str]]:
        tokenizer, out = self._tokenizers["qg"], []
        for part in _split(texts, PEER_SOURCES):
            encoded = tokenizer(part, return_tensors="pt", padding=True).to(self._device)
            sequences = self._models["qg"].generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                num_beams=QUESTION.num_beams,
                num_return_sequences=QUESTION.num_return_sequences,
                no_repeat_ngram_size=QUESTION.no_repeat_ngram_size,
                early_stopping=QUESTION.early_stopping,
                length_penalty=QUESTION.length_penalty,
                min_new_tokens=QUESTION.min_new_tokens,
                max_new_tokens=QUESTION.max_new_tokens,
                do_sample=False,
            )
            out += tokenizer.batch_decode(sequences, skip_special_tokens=True)
        return [list(part) for part in _split(out, QUESTION.num_return_sequences)]

    def _read(self, role: str, pairs: Sequence[tuple[str, str]]) -> None:
        model, tokenizer = self._models[role], self._tokenizers[role]
        ordered = sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]))
        for part in _split(ordered, PEER_PAIRS):
            first, second = zip(*part, strict=True)
            encoded = tokenizer(list(first), list(second), return_tensors="pt", padding=True).to(self._device)
            if model.config.type_vocab_size < 2:
                encoded.pop("token_type_ids", None)
            output = model(**encoded)
            for name in ("start_logits", "end_logits") if role == "qa" else ("logits",):
                output[name].argmax(-1).cpu()


class EqualWork(msgspec.Struct):
    """Q² with every question valid: the same calls on both sides (``every_call.py``)."""

    spans: int
    questions: int
    """Questions of a response."""
    timings: dict[str, Timing]
    """One response at a time: engine; batched: PyTorch, the calls of each round of the response in one batch."""
    ratio: float | None = None
    """Median of PyTorch over the engine's."""
    per_second: dict[str, float] = {}
    """Responses per second, of ``together`` responses at once, by side."""
    together: int = 0
    rate_ratio: float | None = None
    errors: dict[str, str] = {}


def measure_equal_work(setup: Setup, save: Save) -> None:
    """Time the calls of Q² on both sides, response by response and many responses at once."""
    count, together = (2, 3) if setup.tiny else (16, 64)
    requests = [
        paper_size.build_request(dialogue, 2 if setup.tiny else SPANS_EACH) for dialogue in distinct(count + together)
    ]
    few, many = requests[:count], requests[count:]
    runtime = setup.load_runtime(*Q2_ROLES)
    scheduler = Scheduler(runtime, cache_bytes=0)

    def submit(batch: Sequence[every_call.Request]) -> None:
        jobs = [scheduler.submit([every_call.steps(request)], every_call.WINDOWS) for request in batch]
        for job in jobs:
            (outcome,) = job.future.result().outcomes
            check(isinstance(outcome, int) or is_double(), f"a response ended with {outcome}")

    sides: dict[str, Any] = {"engine": submit}
    result = EqualWork(len(few[0].spans), len(few[0].spans) * QUESTION.num_return_sequences, {})
    with noted(result.errors, "batched"):
        sides["batched"] = Batched(setup, setup.torch_device).run
    for run in sides.values():
        run(few[:1])
    samples: dict[str, list[float]] = {side: [] for side in sides}
    end = time.perf_counter() + 4 * setup.seconds
    for turn, request in enumerate(itertools.cycle(few)):
        if turn >= count and time.perf_counter() > end:
            break
        for side in common.in_turn(sides, turn):
            samples[side].append(common.timed(partial(sides[side], [request]))[0])
    result.timings = {side: Timing.of(times) for side, times in samples.items()}
    if "batched" in sides:
        result.ratio = result.timings["batched"].p50_ms / result.timings["engine"].p50_ms
    save(result)
    result.together = together
    for side, run in sides.items():
        with noted(result.errors, f"{side} together"):
            run(many)  # shapes that were not seen
            result.per_second[side] = 1000 * together / common.timed(partial(run, many))[0]
            save(result)
    if len(result.per_second) == len(sides) == 2:
        result.rate_ratio = result.per_second["engine"] / result.per_second["batched"]
    save(result)
    scheduler.close()


class WarmUp(msgspec.Struct, frozen=True):
    """What comes before the first response."""

    load_seconds: float
    seconds: float
    """Time of the captures at every size."""
    gib: float | None
    """Memory that the loaded and warm engine takes; None on a CPU."""
    captures: CaptureCounts
    """What is captured after this, a response waits for."""
    error: str = ""
    """The message of a warm-up that failed: a model computes something else here than where it was exported. Empty on
    the double, whose results are zeros."""

    def check(self) -> None:
        """Raise ModelError if the warm-up failed: a stage does so when everything else is measured and saved."""
        if self.error:
            raise ModelError(self.error)


def load_engine(setup: Setup, processes: int = 1) -> tuple[Engine, WarmUp]:
    """An engine of all exported roles that is warmed up, so that no response waits for a capture.

    It is returned after a failed warm-up, too: its times can be measured, and ``WarmUp.check`` raises then.
    """
    options = LoadOptions(cache_bytes=0)

    def load() -> Engine:
        if processes == 1:
            return Engine(setup.load_runtime(*Q2_ROLES, SPANS), options)
        first, *others = setup.list_bundles(*Q2_ROLES, SPANS)
        return Engine.load(first, setup.device, extra=others, options=options, processes=processes)

    return open_engine(setup, load, Engine.warmup)


def open_engine(setup: Setup, load: Callable[[], Engine], warm_up: Callable[[Engine], None]) -> tuple[Engine, WarmUp]:
    """Load an engine and warm it up; what both take."""
    before, started = read_gpu_memory(setup), time.perf_counter()
    engine = load()
    loaded, message = time.perf_counter(), ""
    try:
        warm_up(engine)
    except ModelError as error:
        message = "" if is_double() else str(error)
    warm = time.perf_counter()
    gib, captures = subtract(setup, before), engine.statistics().captures
    return engine, WarmUp(loaded - started, warm - loaded, gib, captures, message)


def subtract(setup: Setup, before: GpuMemory | None) -> float | None:
    """GiB of the GPU that were taken since ``before``; None on a CPU."""
    after = read_gpu_memory(setup)
    return None if before is None or after is None else after.used - before.used


class Latency(msgspec.Struct, frozen=True):
    """Responses one at a time."""

    metrics: str
    names: tuple[str, ...]
    """Names of the metrics."""
    timing: Timing
    stages: dict[str, Stage]
    """By role, over all responses."""
    statuses: dict[str, int]
    """With random weights no question is valid, and Q² asks them all."""
    captures: CaptureCounts
    """Counts of the engine since loading."""
    launches: Launches | None = None
    """What one response launches; None where launches cannot be counted."""


class Latencies(msgspec.Struct, frozen=True):
    """The full set first, which matters most."""

    warm_up: WarmUp
    rows: list[Latency]


def measure_latency(setup: Setup, save: Save) -> None:
    """Warm up, and score distinct responses one at a time, by the full set and by Q²; then count launches.

    The profiler that counts them may slow down what runs after it, so all times are taken before.
    """
    engine, warm_up = load_engine(setup)
    with engine:
        results: list[Latency] = []
        save(Latencies(warm_up, results))
        texts = make_requests()
        for metrics in AT_ONCE:
            results.append(measure_one_latency(setup, engine, texts, metrics))
            save(Latencies(warm_up, results))
        with suppress(Skipped):
            for index, row in enumerate(results):
                launches = count_launches(setup, make_scorer(setup, engine, texts, row.metrics))
                results[index] = msgspec.structs.replace(row, launches=launches)
                save(Latencies(warm_up, results))
    warm_up.check()


def measure_one_latency(setup: Setup, engine: Engine, texts: Iterator[Request], metrics: str) -> Latency:
    """The times of responses one at a time, by a row of ``AT_ONCE``."""
    score = make_scorer(setup, engine, texts, metrics)
    for _ in range(1 if setup.tiny else 8):
        score()
    spent: list[float] = []
    statuses: Counter[str] = Counter()
    end = time.perf_counter() + 8 * setup.seconds
    with observe_stages(engine) as stages:
        while len(spent) < 2 or (time.perf_counter() < end and not setup.tiny):
            took, status = common.timed(score)
            spent.append(took)
            statuses[status] += 1
    names, captures = engine.plan(METRICS[metrics.split()[0]]).names, engine.statistics().captures
    return Latency(metrics, names, Timing.of(spent), stages, dict(statuses), captures)


def make_scorer(setup: Setup, engine: Engine, texts: Iterator[Request], metrics: str) -> Callable[[], str]:
    """A function that scores the next response by a row of ``AT_ONCE``, and returns the status of its score."""
    asked, options = METRICS[metrics.split()[0]], find_options(setup, AT_ONCE[metrics])

    def score() -> str:
        request = next(texts)
        scored = engine.score(
            request.response, request.knowledge, history=request.history, metrics=asked, options=options
        )
        return scored.status

    return score


class Load(msgspec.Struct, frozen=True):
    """A rate under load, by a set of metrics."""

    metrics: str
    rate: Throughput
    processor_ms: float
    """Processor time of this process for each response, all threads."""
    interpreter_ms: float
    """That of Python's threads, which is at least their time in the interpreter."""
    qa_tokens: float
    """Tokens that extractive QA reads for each response."""
    qa_padded: float
    """The same with padding."""
    qa_tflop: float
    """Work of these for each response."""
    captures: CaptureCounts
    """Counts of the engine since loading."""


class Loads(msgspec.Struct, frozen=True):
    """Rates of one process."""

    workload: str
    """What the aim in responses per second is stated for."""
    warm_up: WarmUp
    grown_gib: float | None
    """Memory that the engine took after its warm-up; None on a CPU."""
    rows: list[Load]


def measure_load(setup: Setup, save: Save) -> None:
    """Responses per second with many requests in flight, by the full set and by Q²."""
    engine, warm_up = load_engine(setup)
    with engine:
        results: list[Load] = []
        warm = read_gpu_memory(setup)
        texts, options = make_requests(), find_options(setup)
        for metrics in ("full", "q2"):
            for in_flight in setup.in_flight:
                results.append(measure_one_load(setup, engine, texts, metrics, in_flight, options))
                save(Loads(WORKLOAD, warm_up, subtract(setup, warm), results))
    warm_up.check()


def measure_one_load(
    setup: Setup, engine: Engine, texts: Iterator[Request], metrics: str, in_flight: int, options: Options
) -> Load:
    """The rate with so many requests in flight, and what each response costs."""
    before = time.process_time(), read_thread_seconds()
    with count_qa_tokens() as tokens:
        rate = measure_in_flight(setup, engine, texts, METRICS[metrics], in_flight, options)
    processor, interpreter = time.process_time() - before[0], read_thread_seconds() - before[1]
    count = max(rate.finished, 1)
    return Load(
        metrics,
        rate,
        1000 * processor / count,
        1000 * interpreter / count,
        tokens.real / count,
        tokens.padded / count,
        tokens.padded * count_token_gflop(setup) / 1000 / count,
        engine.statistics().captures,
    )


def measure_in_flight(
    setup: Setup, engine: Engine, texts: Iterator[Request], asked: list[str] | str, in_flight: int, options: Options
) -> Throughput:
    """Responses per second with so many requests in flight."""
    most = in_flight + 4 if setup.tiny else 8 * in_flight
    least = min(in_flight, 64)
    chosen = itertools.islice(texts, most)
    return measure_rate(engine, chosen, in_flight, 6 * setup.seconds, asked, options, at_least=least)


def make_requests() -> Iterator[Request]:
    """Responses that are all different, with a turn of history."""
    for dialogue in distinct(1_000_000):
        yield Request(dialogue.response, dialogue.knowledge, ("Tell me.",))


def find_options(setup: Setup, at_once: int = 1) -> Options:
    """Questions of 20 tokens at most: random weights never end one."""
    decoding = BeamSearch(max_new_tokens=6 if setup.tiny else QUESTION.max_new_tokens)
    return Options(Q2Options(decoding, questions_at_once=at_once))


def _load(auto: Any, folder: Path) -> Any:
    return auto.from_pretrained(folder)


def _split(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))

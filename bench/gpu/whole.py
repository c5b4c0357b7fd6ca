"""Whole responses: Q² with equal work against PyTorch, the latency of Q² and of the full set, and rates under load."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator, Sequence
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

from .. import common, every_call, models, paper_size
from ..common import Timing, check
from ..dialogues import distinct
from ..pieces import QUESTION
from .setup import SPANS, Launches, Setup, count_launches, is_double
from .sides import load_model
from .stages import Save, Skipped, noted

Q2_ROLES = ("qg", "qa", "nli")
SPANS_EACH = 5
"""Spans of a response, on average, in the examples: 4.4 to 5.2."""
METRICS: dict[str, list[str] | str] = {"q2": ["q2"], "full": "all"}
"""How ``score`` is asked for Q² and for the full set."""
AT_ONCE = {"q2": 1, "full": 1, "q2 at once": 5, "full at once": 5}
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
    launches: Launches | None


def measure_latency(setup: Setup, save: Save) -> None:
    """Score distinct responses one at a time, by Q² and by the full set."""
    results: list[Latency] = []
    with Engine(setup.load_runtime(*Q2_ROLES, SPANS), LoadOptions(cache_bytes=0)) as engine:
        texts = make_requests()
        for metrics, at_once in AT_ONCE.items():
            asked = METRICS[metrics.split()[0]]
            options = find_options(setup, at_once)

            def score(asked: list[str] | str = asked, options: Options = options) -> str:
                request = next(texts)
                scored = engine.score(
                    request.response, request.knowledge, history=request.history, metrics=asked, options=options
                )
                return scored.status

            for _ in range(1 if setup.tiny else 8):
                score()
            spent: list[float] = []
            statuses: Counter[str] = Counter()
            end = time.perf_counter() + 6 * setup.seconds
            with observe_stages(engine) as stages:
                while len(spent) < (2 if setup.tiny else 100) or time.perf_counter() < end:
                    took, status = common.timed(score)
                    spent.append(took)
                    statuses[status] += 1
            launches = None
            with suppress(Skipped):
                launches = count_launches(setup, score)
            names = engine.plan(asked).names
            results.append(Latency(metrics, names, Timing.of(spent), stages, dict(statuses), launches))
            save(results)


class Load(msgspec.Struct, frozen=True):
    """A rate under load, by a set of metrics."""

    metrics: str
    rate: Throughput
    processor_ms: float
    """Processor time of this process for each response, all threads."""


def measure_load(setup: Setup, save: Save) -> None:
    """Responses per second with many requests in flight, by Q² and by the full set."""
    results: list[Load] = []
    with Engine(setup.load_runtime(*Q2_ROLES, SPANS), LoadOptions(cache_bytes=0)) as engine:
        texts = make_requests()
        options = find_options(setup)
        for metrics, asked in METRICS.items():
            warm = itertools.islice(texts, 4 if setup.tiny else 128)
            measure_rate(engine, warm, 64, 10 * setup.seconds, asked, options)
            for in_flight in setup.in_flight:
                most = in_flight + 4 if setup.tiny else 8 * in_flight
                before = time.process_time()
                chosen = itertools.islice(texts, most)
                least = min(in_flight, 64)
                rate = measure_rate(engine, chosen, in_flight, 6 * setup.seconds, asked, options, at_least=least)
                spent = time.process_time() - before
                results.append(Load(metrics, rate, 1000 * spent / max(rate.finished, 1)))
                save(results)


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

"""Whole Q² with equal work on both sides.

With random weights no question is ever valid, so Q² itself would stop early, at different places on the two sides. The
benchmark times the calls of Q² with every question valid instead: for each given span of a response, generate 5
questions of 20 tokens by beam search; answer every question from the response, then from the knowledge; compare every
pair of answers by inference. The engine runs them as the metric yields them, round by round, through its scheduler,
tokenizers, packing and beam search, on int8 graphs. The peer makes the same calls one at a time in PyTorch float32, as
the papers' code does.

The generated questions are used with their rank and span as a prefix, so that no two are equal and no call is answered
from the cache; the compared answers are fixed words. Both sides must make the same number of calls with the same number
of tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from groundwire.engine.scheduling.scheduler import Scheduler
from groundwire.metrics import Steps
from groundwire.runtime.calls import Answer, Answered, Call, Classified, Classify, GenerateQuestions, role_of
from groundwire.runtime.protocol import Runtime

from .common import Timing, check, in_turn, timed
from .observed import Observed
from .peer import Torch, Work
from .pieces import QUESTION

WINDOWS = 512
TEMPLATE = "answer: {}  context: {}"


class Request(NamedTuple):
    """A response, its spans, and the knowledge."""

    response: str
    spans: tuple[str, ...]
    knowledge: str


class EveryCall(msgspec.Struct, frozen=True):
    """Both sides over the same requests."""

    responses: int
    spans: int
    questions: int
    engine: Timing
    """One response at a time."""
    peer: Timing
    ratio: float
    """Median of the peer over the engine's."""
    together_ms: float
    """Per response, with all of them in flight at once."""
    together_ratio: float
    """Mean of the peer over that."""
    engine_work: dict[str, Work]
    peer_work: dict[str, Work]


class Exactness(msgspec.Struct, frozen=True):
    """The float32 runtime, text in and text out, against PyTorch on the calls of one response."""

    calls: int
    same_questions: float
    """Share of generated questions that are equal."""
    same_answers: float
    probability_error: float
    """Largest difference of a label's probability."""


def steps(request: Request) -> Steps[int]:
    """Yield the calls of Q², with every question counted as valid; return the number of questions."""
    beams = yield [GenerateQuestions(span, request.response, QUESTION) for span in request.spans]
    asked = [
        (span, question(span, rank, generated.text))
        for span, generated_questions in zip(request.spans, beams, strict=True)
        for rank, generated in enumerate(generated_questions)
    ]
    yield [Answer(text, (request.response,)) for _, text in asked]
    yield [Answer(text, (request.knowledge,)) for _, text in asked]
    yield [Classify("nli", (premise(text, request),), f"{text} {span}.") for span, text in asked]
    return len(asked)


def one_at_a_time(request: Request, peers: dict[str, Torch]) -> None:
    """Make the same calls in PyTorch, in the order of the papers' code: span by span, question by question."""
    for span in request.spans:
        for rank, generated in enumerate(peers["qg"].generate(TEMPLATE.format(span, request.response), QUESTION)):
            text = question(span, rank, generated)
            peers["qa"].answer(text, request.response)
            peers["qa"].answer(text, request.knowledge)
            peers["nli"].classify(premise(text, request), f"{text} {span}.")


def question(span: str, rank: int, generated: str) -> str:
    """Return a question that no other span or rank has."""
    return f"{rank} {span} {generated}"


def premise(text: str, request: Request) -> str:
    """Return a question with the first words of the knowledge as its answer."""
    return f"{text} {' '.join(request.knowledge.split()[:2])}."


def measure(runtime: Runtime, peers: dict[str, Torch], requests: Sequence[Request], repeats: int) -> EveryCall:
    """Time both sides response by response, in turns, and check that they did the same work."""
    observed = Observed(runtime)
    observed.calls = []
    scheduler = Scheduler(observed, cache_bytes=0)

    def submit(request: Request) -> None:
        (outcome,) = scheduler.submit([steps(request)], WINDOWS).future.result().outcomes
        check(isinstance(outcome, int), f"every_call: {outcome}")

    submit(requests[0])
    one_at_a_time(requests[0]._replace(spans=requests[0].spans[:1]), peers)
    observed.calls.clear()
    for peer in peers.values():
        peer.work = Work()
    spent: dict[str, list[float]] = {"engine": [], "peer": []}
    for turn in range(repeats * len(requests)):
        request = requests[turn % len(requests)]
        sides: dict[str, Callable[[], object]] = {
            "engine": partial(submit, request),
            "peer": partial(one_at_a_time, request, peers),
        }
        for side in in_turn(sides, turn):
            spent[side].append(timed(sides[side])[0])
    ours, theirs = work_of(observed.calls, peers), {role: peer.work for role, peer in peers.items()}
    for role, work in theirs.items():
        message = f"every_call: {role} had {ours[role]} in the engine, {work} in the peer"
        check(ours[role].calls == work.calls and abs(ours[role].tokens / work.tokens - 1) <= 0.01, message)

    started = time.perf_counter()
    jobs = [scheduler.submit([steps(request)], WINDOWS) for request in requests]
    for job in jobs:
        job.future.result()
    together = (time.perf_counter() - started) * 1000 / len(requests)
    scheduler.close()
    ours_ms, theirs_ms = Timing.of(spent["engine"]), Timing.of(spent["peer"])
    return EveryCall(
        responses=len(requests),
        spans=sum(len(r.spans) for r in requests),
        questions=sum(len(r.spans) for r in requests) * QUESTION.num_return_sequences,
        engine=ours_ms,
        peer=theirs_ms,
        ratio=theirs_ms.p50_ms / ours_ms.p50_ms,
        together_ms=together,
        together_ratio=sum(spent["peer"]) / len(spent["peer"]) / together,
        engine_work=ours,
        peer_work=theirs,
    )


def work_of(calls: Sequence[Call], peers: dict[str, Torch]) -> dict[str, Work]:
    """Return the number of calls and tokens that the engine made, counted with the peer's tokenizers."""
    work = {role: Work() for role in peers}
    for call in calls:
        role = role_of(call)
        match call:
            case GenerateQuestions():
                texts = [TEMPLATE.format(call.answer, call.context)]
            case Answer():
                texts = [call.question, *call.passages]
            case Classify():
                texts = [*call.premises, call.hypothesis]
            case _:
                continue
        work[role].calls += 1
        work[role].tokens += len(peers[role].tokenizer(*texts).input_ids)
    return work


def exactness(runtime: Runtime, peers: dict[str, Torch], request: Request) -> Exactness:
    """Compare a float32 runtime with PyTorch, from text to text, on every call of one response."""

    def run(calls: Sequence[Call]) -> list[object]:
        return list(runtime.run(role_of(calls[0]), calls, WINDOWS))

    generated = [peers["qg"].generate(TEMPLATE.format(span, request.response), QUESTION) for span in request.spans]
    from_runtime = run([GenerateQuestions(span, request.response, QUESTION) for span in request.spans])
    pairs = [
        (mine.text, text)
        for ours, theirs in zip(from_runtime, generated, strict=True)
        if isinstance(ours, tuple)
        for mine, text in zip(ours, theirs, strict=True)
    ]
    asked = [
        (span, question(span, rank, text))
        for span, texts in zip(request.spans, generated, strict=True)
        for rank, text in enumerate(texts)
    ]
    passages = (request.response, request.knowledge)
    answers = run([Answer(text, (passage,)) for _, text in asked for passage in passages])
    expected = [peers["qa"].answer(text, passage) for _, text in asked for passage in passages]
    actual = [answer.text if isinstance(answer, Answered) else None for answer in answers]
    labels = run([Classify("nli", (premise(text, request),), f"{text} {span}.") for span, text in asked])
    gaps = [
        max(abs(a - b) for a, b in zip(label.probabilities.values(), shares, strict=True))
        for label, (span, text) in zip(labels, asked, strict=True)
        if isinstance(label, Classified)
        for shares in [peers["nli"].classify(premise(text, request), f"{text} {span}.")]
    ]
    result = Exactness(
        calls=len(request.spans) + len(answers) + len(labels),
        same_questions=sum(a == b for a, b in pairs) / (len(request.spans) * QUESTION.num_return_sequences),
        same_answers=sum(a == b for a, b in zip(actual, expected, strict=True)) / len(expected),
        probability_error=max(gaps) if len(gaps) == len(labels) else float("inf"),
    )
    check(result.same_questions >= 0.9, f"exactness: {result.same_questions:.0%} of the questions are PyTorch's")
    check(result.same_answers >= 0.95, f"exactness: {result.same_answers:.0%} of the answers are PyTorch's")
    check(result.probability_error <= 1e-3, f"exactness: a probability is off by {result.probability_error:.2g}")
    return result

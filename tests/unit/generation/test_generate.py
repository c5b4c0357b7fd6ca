"""Generation through the engine, on a fake model that returns fixed texts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from groundwire.engine import Engine, InvalidRequest, Options
from groundwire.engine.scheduling.scheduler import Scheduler
from groundwire.generation import (
    BeamSampling,
    BeamSearch,
    DelayedBeamSearch,
    Generation,
    GenerationOptions,
    Generator,
    Greedy,
    Sampling,
)
from groundwire.runtime.calls import Generate, GeneratedSequence, ScoreText, SequencePart, SequenceToken
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome
from tests.support.generation import generator, language_model, make_engine

KNOWLEDGE, HISTORY = "bees make honey", ["who makes honey?"]
GREEDY = GenerationOptions(method="greedy")


def list_calls(engine: Engine) -> list[Any]:
    assert isinstance(engine.core.runtime, FakeRuntime)
    return [call for _, calls in engine.core.runtime.batches for call in calls]


def test_a_response_with_its_tokens_and_settings() -> None:
    with make_engine() as engine:
        generation = Generator(engine).generate(KNOWLEDGE, HISTORY)
    assert generation.status == "generated"
    assert generation.text == generation.responses[0].text == "wasps make honey"
    (response,) = generation.responses
    assert (response.score, response.finished, response.index, response.check) == (0.0, True, 0, None)
    assert [generation.text[token.start : token.end] for token in response.tokens] == ["wasps", " make", " honey", ""]
    assert [token.id for token in response.tokens] == [0, 1, 2, 99]
    assert response.log_prob == pytest.approx((-1 - 2 - 3 - 0.5) / 4)
    assert response.cpmi == pytest.approx((0 + 0.5 + 1 + 0.25) / 4)
    assert generation.options == GenerationOptions(0.25, 0.6, "beam", 1, None, 0, 64)
    assert generation.decoding == BeamSearch(4, 1, 0, early_stopping=False, max_new_tokens=64)
    assert generation.metrics == ()
    assert generation.signature.endswith(
        "|generate:alpha=0.25,pmi_top_p=0.6,type=beam_search,num_beams=4,num_return_sequences=1,no_repeat_ngram_size=0,"
        "early_stopping=False,length_penalty=1.0,max_new_tokens=64,min_new_tokens=0,n=1"
    )
    assert Generation.from_json(generation.to_json()) == generation


def test_without_cpmi_there_is_no_mean_of_it() -> None:
    def plain(call: Generate) -> Outcome:
        return (GeneratedSequence("yes", -1.0, (SequenceToken(5, "yes", -1.0, None),), False),)

    with make_engine(generator=plain) as engine:
        (response,) = Generator(engine).generate((), HISTORY, GenerationOptions(alpha=0)).responses
    assert (response.cpmi, response.tokens[0].cpmi, response.finished) == (None, None, False)


@pytest.mark.parametrize(
    ("settings", "decoding"),
    [
        ({"method": "greedy", "max_new_tokens": 9}, Greedy(max_new_tokens=9)),
        ({"n": 3}, BeamSearch(4, 3, 0, early_stopping=False, max_new_tokens=64)),
        ({"n": 5}, BeamSearch(5, 5, 0, early_stopping=False, max_new_tokens=64)),
        ({"method": "sampling", "seed": 7}, Sampling(1, 0, 1.0, seed=7, max_new_tokens=64)),
        ({"method": "nucleus", "n": 2}, Sampling(2, 0, 0.9, max_new_tokens=64)),
        ({"method": "beam_sampling", "seed": 3}, BeamSampling(4, 1, seed=3, max_new_tokens=64)),
        ({"method": "delayed_beam", "seed": 3}, DelayedBeamSearch(5, 1, seed=3, max_new_tokens=64)),
        ({"method": "delayed_beam", "n": 6}, DelayedBeamSearch(6, 6, max_new_tokens=64)),
        (
            {"method": BeamSearch(num_beams=7, max_new_tokens=19), "n": 2},
            BeamSearch(num_beams=7, num_return_sequences=2, max_new_tokens=19),
        ),
        ({"method": Greedy(max_new_tokens=19)}, Greedy(max_new_tokens=19)),
        ({"n": 2, "n_candidates": 5}, BeamSearch(5, 5, 0, early_stopping=False, max_new_tokens=64)),
    ],
)
def test_methods_are_decoding_records(settings: dict[str, Any], decoding: Any) -> None:
    with make_engine() as engine:
        generation = Generator(engine).generate(KNOWLEDGE, HISTORY, GenerationOptions(**settings), metrics=["pmi"])
        call = list_calls(engine)[0]
    assert call == Generate((KNOWLEDGE,), tuple(HISTORY), decoding, 0.25, 0.6)
    assert generation.decoding == decoding


def test_candidates_are_checked_and_ranked() -> None:
    with make_engine() as engine:
        generation = Generator(engine).generate(
            KNOWLEDGE, HISTORY, GenerationOptions(n=3, n_candidates=5), metrics=["pmi"]
        )
        batches = engine.core.runtime.batches  # type: ignore[attr-defined]
    assert [response.text for response in generation.responses] == [
        "bees make honey",
        "wasps make honey",
        "honey is blue",
    ]
    assert [response.index for response in generation.responses] == [2, 0, 1]
    values = [response.check.value for response in generation.responses if response.check]
    assert len(values) == 3
    assert values == sorted(values, key=lambda value: -(value or 0.0))
    (_, scored) = batches[1]
    assert len(scored) == 3 * 2, "the same text is scored once, the empty one not at all, and all in one batch"
    assert isinstance(scored[0], ScoreText)
    assert set(generation.timings.stages_ms) == {"generator", "lm"}
    assert generation.metrics == ("pmi",)


def test_a_check_is_what_score_says() -> None:
    with make_engine() as engine:
        for response in (
            Generator(engine).generate(KNOWLEDGE, HISTORY, GenerationOptions(n=3), metrics=["pmi", "overlap"]).responses
        ):
            alone = engine.score(response.text, KNOWLEDGE, history=HISTORY, metrics=["pmi", "overlap"])
            assert response.check is not None
            assert response.check.metrics == alone.metrics
            assert response.check.signature == alone.signature
            assert (response.check.value, response.check.unsupported) == (alone.value, alone.unsupported)


def test_a_response_without_words_comes_last() -> None:
    with make_engine() as engine:
        generation = Generator(engine).generate(
            KNOWLEDGE, HISTORY, GenerationOptions(n=5, n_candidates=5), metrics=["overlap"]
        )
    assert [response.text for response in generation.responses][-1] == " "
    assert generation.responses[-1].check is None
    assert len(generation.responses) == 4


def test_checks_have_what_is_left_of_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    submit = Scheduler.submit

    def noted(self: Scheduler, tasks: Any, max_windows: int, deadline_ms: Any, *rank: Any, **other: Any) -> Any:
        asked.append(deadline_ms)
        return submit(self, tasks, max_windows, deadline_ms, *rank, **other)

    monkeypatch.setattr(Scheduler, "submit", noted)
    with make_engine() as engine:
        generation = Generator(engine).generate(
            KNOWLEDGE, HISTORY, metrics=["overlap"], scoring=Options(deadline_ms=60_000)
        )
    assert generation.responses[0].check is not None
    writing = generation.timings.total_ms - generation.responses[0].check.timings.total_ms
    assert asked == [60_000, pytest.approx(60_000 - writing)]


def test_asyncio_gives_the_same() -> None:
    with make_engine() as engine:
        expected = Generator(engine).generate(KNOWLEDGE, HISTORY, GenerationOptions(n=2), metrics=["pmi"])
        generation = asyncio.run(
            Generator(engine).agenerate(KNOWLEDGE, HISTORY, GenerationOptions(n=2), metrics=["pmi"])
        )
    assert [response.text for response in generation.responses] == [response.text for response in expected.responses]
    assert generation.signature == expected.signature


def test_streaming_ends_with_the_whole() -> None:
    with make_engine() as engine:
        stream = Generator(engine).stream(KNOWLEDGE, HISTORY, GREEDY)
        with pytest.raises(InvalidRequest, match="take all pieces"):
            _ = stream.result
        assert "".join(stream) == "wasps make honey"
        assert stream.result.responses == Generator(engine).generate(KNOWLEDGE, HISTORY, GREEDY).responses
        assert list(stream) == []


def test_a_stream_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    def steps(self: FakeRuntime, call: Generate) -> Iterator[SequencePart]:
        for word in ("bees ", "make ", "honey"):
            time.sleep(0.03 * len(taken))
            taken.append(word)
            yield SequencePart(word)

    monkeypatch.setattr(FakeRuntime, "stream", steps)
    with make_engine() as engine:
        stream = Generator(engine).stream(KNOWLEDGE, HISTORY, GREEDY, scoring=Options(deadline_ms=20))
        assert next(stream) == "bees "
        time.sleep(0.05)  # time between two pieces does not count
        assert list(stream) == []
    assert taken == ["bees ", "make "]
    assert (stream.result.status, stream.result.responses) == ("deadline", ())
    assert "20 ms" in stream.result.message
    assert stream.result.timings.total_ms > 20


@pytest.mark.parametrize(
    ("history", "status"), [(["x" * 60], "truncated"), (["broken"], "failed"), (["who makes honey?"], "deadline")]
)
def test_what_happens_to_a_valid_request_is_a_status(history: list[str], status: str) -> None:
    def slow(call: Generate) -> Outcome:
        if status == "deadline":
            time.sleep(0.05)
        return generator(call)

    options = Options(deadline_ms=10) if status == "deadline" else None
    with make_engine(generator=slow) as engine:
        generation = Generator(engine).generate(KNOWLEDGE, history, metrics=["pmi"], scoring=options)
    assert (generation.status, generation.responses, generation.text) == (status, (), "")
    assert generation.message


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"alpha": 1.01}, r"alpha=1\.01; allowed is 0 \(plain decoding\) to 1"),
        ({"alpha": -0.1}, r"alpha=-0\.1"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"alpha": "much"}, "alpha is 'much'; pass a number"),
        ({"pmi_top_p": 0}, "pmi_top_p=0; allowed is above 0 up to 1"),
        ({"pmi_top_p": 1.5}, r"pmi_top_p=1\.5"),
        ({"method": "best"}, "method='best' is unknown; use greedy, beam, sampling, nucleus, beam_sampling"),
        ({"history": []}, "history is empty; pass the utterances"),
        ({"history": [" "]}, "history is empty"),
        ({"history": [], "knowledge": " "}, "history and knowledge are empty"),
        ({"knowledge": []}, "knowledge is empty; pass the text the response should rest on, or alpha=0"),
        ({"knowledge": [], "alpha": 0, "metrics": ["pmi"]}, "knowledge is empty; pass the text that metrics"),
        ({"history": 3}, "history is int"),
        ({"n": 0}, "n is 0; allowed are whole numbers from 1 to 64"),
        ({"n": 4, "n_candidates": 2, "metrics": ["pmi"]}, "n_candidates is 2; allowed are whole numbers from 4 to 64"),
        ({"n": 2, "method": "greedy"}, "greedy search generates one response, not 2"),
        ({"seed": -1}, "seed is -1"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0; allowed are whole numbers from 1 to 1023"),
        ({"metrics": ["pmu"]}, "Unknown metric 'pmu'"),
        ({"method": Sampling(), "seed": 7}, r"seed=7 is given beside method=Sampling\(…\); set it in Sampling"),
        ({"method": BeamSearch(), "max_new_tokens": 5}, "max_new_tokens=5 is given beside method=BeamSearch"),
        ({"options": {"alpha": 1}}, "options is dict; pass GenerationOptions"),
        ({"options": 0}, "options is int; pass GenerationOptions"),
    ],
)
def test_unusable_input(given: dict[str, Any], problem: str) -> None:
    request = {"knowledge": KNOWLEDGE, "history": HISTORY} | given
    texts = request.pop("knowledge"), request.pop("history")
    metrics = request.pop("metrics", None)
    options = request.pop("options", None)
    options = GenerationOptions(**request) if options is None else options
    with make_engine() as engine:
        with pytest.raises(InvalidRequest, match=problem):
            Generator(engine).generate(*texts, options, metrics=metrics)
        assert list_calls(engine) == [], "nothing is run for a request that cannot be used"


@pytest.mark.parametrize("generation", [GenerationOptions(n=2), GenerationOptions(n_candidates=1)])
def test_a_stream_is_one_response_without_checks(generation: GenerationOptions) -> None:
    with make_engine() as engine, pytest.raises(InvalidRequest, match="one response and does not check it"):
        Generator(engine).stream(KNOWLEDGE, HISTORY, generation)


def test_what_only_the_model_refuses_is_raised_too() -> None:
    def short(call: Generate) -> Outcome:
        raise InvalidRequest("BeamSearch: max_length=65; this model has positions for 32 at most.")

    with make_engine(generator=short) as engine, pytest.raises(InvalidRequest, match="positions for 32"):
        Generator(engine).generate(KNOWLEDGE, HISTORY)


def test_a_bundle_without_a_generator() -> None:
    with Engine(FakeRuntime({"lm": language_model})) as engine, pytest.raises(InvalidRequest) as caught:
        Generator(engine).generate(KNOWLEDGE, HISTORY)
    assert "needs the role 'generator'; the bundle has lm" in str(caught.value)
    assert "groundwire export" in str(caught.value)
    assert "Engine.load('compact', extra=['generator'])" in str(caught.value)


def test_braces_and_many_passages_reach_the_model_as_they_are() -> None:
    with make_engine() as engine:
        Generator(engine).generate(["a {history} b", " ", "c"], ["{knowledge}", "d"])
        (call,) = list_calls(engine)
    assert (call.knowledge, call.history) == (("a {history} b", "c"), ("{knowledge}", "d"))

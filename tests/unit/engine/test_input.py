"""What the engine says of input it cannot use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from groundwire.engine import (
    BundleError,
    DeviceError,
    Engine,
    InvalidRequest,
    LoadOptions,
    MetricResult,
    Options,
    Request,
    Score,
)
from groundwire.engine.schema.options import NliOptions, Q2Options
from groundwire.engine.schema.validation import make_request
from groundwire.generation import BeamSearch, GenerationOptions, Greedy, Sampling
from groundwire.repair import KnowledgeGraph
from tests.support.fakes import world

BAD: list[tuple[dict[str, Any], str]] = [
    ({"response": ""}, "response is empty"),
    ({"response": " \n\t\u2003"}, "response is empty"),
    ({"response": "\u200b"}, "response is empty"),
    ({"response": " \u200b\u200d\ufeff\u00ad\u2060\ufe0f\u3164\u2800\n"}, "response is empty"),
    ({"response": None}, "response is NoneType"),
    ({"response": b"bytes"}, "response is bytes"),
    ({"response": 3}, "response is int"),
    ({"response": "a\ud800b"}, "response has a lone surrogate at offset 1"),
    ({"response": "ab\0"}, "response has a NUL character at offset 2"),
    ({"response": "x" * 1_000_000}, "response has 1000000 characters; allowed are 20000"),
    ({"triples": [("a", "\u200b", "c")]}, r"triples\[0\] has an empty predicate"),
    ({"knowledge": ["fine", 3]}, r"knowledge\[1\] is int"),
    ({"knowledge": 3}, "knowledge is int"),
    ({"knowledge": ["fine", "a\udfffb"]}, r"knowledge\[1\] has a lone surrogate"),
    ({"knowledge": "x" * 4_000_001}, "knowledge has 4000001 characters"),
    ({"history": ["fine", None]}, r"history\[1\] is NoneType"),
    ({"history": 3}, "history is int"),
    ({"history": {"no", "order"}}, "history is a set, which has no order; pass a list of utterances"),
    ({"knowledge": {"no", "order"}}, "knowledge is a set, which has no order"),
    ({"knowledge": b"bytes"}, "knowledge is bytes"),
    ({"triples": None}, "triples is NoneType"),
    ({"triples": [{"no", "order", "here"}]}, r"triples\[0\] is a set"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {"response": "Fine.", "knowledge": "Fine.", "history": ()} | change
    with pytest.raises(InvalidRequest, match=message):
        make_request(**fields)


@pytest.mark.parametrize(
    "text",
    [".", "7", "…", "\u200bא", "שלום עולם", "珈琲は酸っぱい", "🙂👩‍👩‍👧", "a</s>[SEP]b", "\u202ereversed", "e\u0301"],
)
def test_any_writing_is_fine(text: str) -> None:
    assert make_request(text, [text, text], (text,)) == Request(text, (text, text), (text,))


def test_one_bad_item_of_many_is_a_status_and_the_others_go_on() -> None:
    items: list[Any] = [
        ("Elvis sang.", "Elvis"),
        {"response": "x"},
        ("", "k"),
        3,
        Request("Elvis sang.", ("Elvis",)),
        {"response": "Elvis sang.", "knowledge": ["Elvis", "other"], "history": None},
    ]
    seen: list[int] = []
    with Engine(world()) as engine:
        scores = list(engine.score_many(iter(items), progress=seen.append))
    assert [score.status for score in scores] == ["scored", "invalid", "invalid", "invalid", "scored", "scored"]
    assert "no knowledge" in scores[1].message
    assert seen == [1, 2, 3, 4, 5, 6]
    assert all((score.value is None) == (score.status != "scored") for score in scores)


def test_score_many_reads_no_further_ahead_than_it_must() -> None:
    read = 0

    def endless() -> Any:
        nonlocal read
        while True:
            read += 1
            yield (f"Elvis {read}.", "Elvis")

    with Engine(world()) as engine:
        scores = engine.score_many(endless())
        for _ in range(3):
            next(scores)
        assert read <= 3 + 64
        scores.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (["overlapp"], r"Unknown metric 'overlapp' \(did you mean overlap\?\); known are q2"),
        (["psychic"], "Unknown metric 'psychic'; known are q2"),
        ([], "metrics is empty"),
        ("psychic", "Unknown metric 'psychic'; known are q2"),
        ({"q2", "nli"}, "metrics is a set, which has no order; pass a list of names"),
        ({"q2": 1}, "metrics is dict"),
        (["q2", None], "metrics has None, which is no name"),
        (3, "metrics is int"),
    ],
)
def test_an_unknown_metric_is_named(metrics: Any, message: str) -> None:
    with Engine(world()) as engine, pytest.raises(InvalidRequest, match=message):
        engine.score("a", "b", metrics=metrics)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Options(deadline=3), r"Options has no field 'deadline' \(did you mean deadline_ms\?\)"),
        (
            lambda: Options(metrics="fast"),
            r"Metrics are an argument of their own: score\(…, metrics='f",
        ),
        (lambda: Options(calibration="mine.json"), r"Engine.load\(options=LoadOptions\(calibration='mine.json'\)\)"),
        (lambda: Options(abacus=3), "Options has no field 'abacus'. Its fields are q2, nli,"),
        (
            lambda: Greedy(1, 2, 3, 4),
            "Greedy has other fields: Extra positional arguments provided. Its fields are no_",
        ),
        (lambda: Sampling(beams=3), "Sampling has no field 'beams'"),
        (lambda: BeamSearch(beams=3), r"BeamSearch has no field 'beams' \(did you mean num_beams\?\)"),
        (lambda: GenerationOptions(alfa=1), r"GenerationOptions has no field 'alfa' \(did you mean alpha\?\)"),
        (lambda: Options.from_json('{"deadline": 3}'), "Object contains unknown field `deadline`"),
        (lambda: Options.from_json(3), "JSON form of Options is a string, not int"),
    ],
)
def test_an_unknown_option_is_named_with_the_nearest(make: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deadline_ms": 3}, "options is dict; pass an instance of Options"),
        (Q2Options(), "options is Q2Options"),
        (Options(3), "Options.q2 is 3; pass an instance of Q2Options"),
        (Options(q2={"nli": False}), r"Options.q2 is {'nli': False}; pass an instance of Q2Options"),
        (Options(q2={"absent": False}), "pass an instance of Q2Options"),
        (Options(q2=NliOptions()), "pass an instance of Q2Options"),
        (Options(q2=Q2Options(decoding={"type": "greedy"})), "Options.q2.decoding is .* pass an instance of Greedy"),
        (Options(q2=Q2Options(decoding="greedy")), "pass an instance of BeamSearch or Greedy or Sampling"),
        (Options(q2=Q2Options(decoding=BeamSearch(num_beams="3"))), "Options.q2.decoding.num_beams is '3'; Expected"),
        (Options(q2=Q2Options(nli=1)), "Options.q2.nli is 1; Expected `bool`, got `int`"),
        (Options(deadline_ms="3"), "Options.deadline_ms is '3'; Expected `float | None`"),
        (Options(max_windows=object()), "<object object at .* is no value of an option"),
    ],
)
def test_an_option_of_another_type_is_named(options: Any, message: str) -> None:
    with Engine(world()) as engine, pytest.raises(InvalidRequest, match=message):
        engine.score("a", "b", options=options)


def test_numbers_may_come_from_numpy() -> None:
    options = Options(deadline_ms=np.float32(1e6), max_windows=np.int64(9))
    with Engine(world(), LoadOptions(max_waiting=np.int64(3))) as engine:
        assert engine.score("a", "b", options=options).status == "scored"
        assert engine.plan(options=options).signature.endswith("max_windows=9")


LOAD: list[tuple[dict[str, Any], str]] = [
    ({"threads": "2"}, "threads is '2'; allowed are whole numbers from 1"),
    ({"threads": 2.5}, "threads is 2.5"),
    ({"threads": True}, "threads is True"),
    ({"extra": 3}, "extra is int; pass a list of bundles"),
    ({"extra": None}, "extra is NoneType"),
    ({"extra": [3]}, r"extra\[0\] is int; pass a string or a path"),
    ({"bundle": 3}, "bundle is int; pass a string or a path"),
    ({"options": {"max_waiting": 3}}, r"options is dict; pass LoadOptions\(…\), or None"),
    ({"options": Options()}, r"options is Options; pass LoadOptions\(…\)"),
    ({"options": LoadOptions(precision=["int8"])}, "precision is list"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("arguments", "message"), LOAD, ids=[message for _, message in LOAD])
def test_a_bad_argument_of_load_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        Engine.load(**arguments)


def test_a_device_of_another_type_is_named() -> None:
    with pytest.raises(DeviceError, match=r"device=\['cpu'\] is unknown"):
        Engine.load(device=["cpu"])  # type: ignore[arg-type]


def test_an_engine_is_made_of_a_runtime() -> None:
    with pytest.raises(InvalidRequest, match=r"runtime is 'compact'; .* Engine\.load"):
        Engine("compact")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=r"options is dict; pass LoadOptions\(…\), or None"):
        Engine(world(), {"max_waiting": 3})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"calibration": 0}, "calibration is int; pass a string or a path"),
        ({"max_waiting": "3"}, "max_waiting is '3'"),
        ({"max_waiting": 0}, "max_waiting is 0; allowed are whole numbers from 1"),
        ({"cache_bytes": None}, "cache_bytes is None; allowed are whole numbers from 0"),
        ({"cache_bytes": -1}, "cache_bytes is -1; allowed are whole numbers from 0"),
        ({"tenant_weights": {"shop": 0}}, "tenant_weights"),
    ],
)
def test_a_bad_load_option_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        LoadOptions(**settings)


def test_a_calibration_that_is_absent_is_named() -> None:
    with pytest.raises(BundleError, match=r"calibration absent\.json cannot be read"):
        LoadOptions(calibration="absent.json")


def test_one_metric_may_be_given_by_its_name() -> None:
    with Engine(world()) as engine:
        assert tuple(engine.score("Elvis sang.", "Elvis sang.", metrics="nli").metrics) == ("nli",)
        assert engine.plan("nli").names == ("nli",)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (None, "items is NoneType; pass a list"),
        ("one", "items is one string"),
        ({"response": "a", "knowledge": "b"}, "items is dict"),
        ({("a", "b")}, "items is a set, which has no order"),
        (Request("a", ("b",)), "items is Request"),
    ],
)
def test_items_that_are_no_list_are_named_at_once(items: Any, message: str) -> None:
    async def consume() -> None:
        async for _ in engine.ascore_many(items):
            raise AssertionError

    with Engine(world()) as engine:
        with pytest.raises(InvalidRequest, match=message):
            engine.score_many(items)
        with pytest.raises(InvalidRequest, match=message):
            asyncio.run(consume())


def test_other_arguments_of_another_type_are_named() -> None:
    cases: list[tuple[Callable[[Engine], object], str]] = [
        (lambda engine: engine.score_many([], progress=3), "progress is int; pass a function"),  # type: ignore[arg-type]
        (lambda engine: engine.rank(3, "k", metric="q2"), "candidates is int; pass a list"),  # type: ignore[arg-type]
        (lambda engine: engine.rank({"a", "b"}, "k", metric="q2"), "candidates is a set"),  # type: ignore[arg-type]
        (lambda engine: engine.rank("abc", "k", metric="q2"), "candidates is one string"),
        (lambda engine: engine.rank([], "k", metric="q2"), "candidates is empty"),
        (lambda engine: engine.rank(["a"], "k", metric=None), "metrics has None"),  # type: ignore[arg-type]
        (lambda engine: engine.close(timeout_ms="3"), "timeout_ms is '3'"),  # type: ignore[arg-type]
        (lambda engine: KnowledgeGraph.load(3), "path is int"),  # type: ignore[arg-type]
        (lambda engine: KnowledgeGraph.from_triples(None), "triples is NoneType"),  # type: ignore[arg-type]
    ]
    with Engine(world()) as engine:
        for call, message in cases:
            with pytest.raises(InvalidRequest, match=message):
                call(engine)


def test_a_metric_without_its_models_is_refused() -> None:
    runtime = world()
    del runtime._answers["nli"]
    with Engine(runtime) as engine, pytest.raises(InvalidRequest, match="needs the roles nli"):
        engine.score("a", "b", metrics="q2")


def test_a_value_needs_the_status_scored() -> None:
    with pytest.raises(ValueError, match="deadline"):
        MetricResult("q2", "deadline", 0.5)
    with pytest.raises(ValueError, match="scored"):
        MetricResult("q2", "scored")


def test_records_survive_json() -> None:
    options = Options(q2=Q2Options(decoding=Sampling(seed=3), spans=((0, 5),)), deadline_ms=100)
    assert Options.from_json(options.to_json()) == options
    request = Request("r", ("k",), ("h",))
    assert Request.from_json(request.to_json()) == request
    with Engine(world()) as engine:
        score = engine.score("Elvis was born in 1936.", "Elvis came in 1935.")
    assert Score.from_json(score.to_json()) == score
    assert msgspec.json.decode(score.to_json())["metrics"]["q2"]["explanation"]["type"] == "q2"
    with pytest.raises(InvalidRequest, match="Not the JSON form of Options"):
        Options.from_json('{"deadline_ms": "soon"}')


def test_the_signature_names_what_is_not_default() -> None:
    with Engine(world()) as engine:
        plain = engine.score("a", "b").signature
        other = engine.score("a", "b", options=Options(q2=Q2Options(nli=False), deadline_ms=1e6)).signature
    assert plain.endswith("|bundle:fake@000000000000|precision:fp32|device:cpu|metrics:q2|options:default")
    assert other.endswith("options:q2.nli=False")

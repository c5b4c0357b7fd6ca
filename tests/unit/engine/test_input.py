"""What the engine says of input it cannot use."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groundwire import engine as door
from groundwire.engine import Engine, InvalidRequest, MetricResult, Options, Q2Options, Request, Sampling, Score
from groundwire.engine.schema.validation import make_request
from tests.support.fakes import world

BAD: list[tuple[dict[str, Any], str]] = [
    ({"response": ""}, "response is empty"),
    ({"response": " \n\t\u2003"}, "response is empty"),
    ({"response": None}, "response is NoneType"),
    ({"response": b"bytes"}, "response is bytes"),
    ({"response": 3}, "response is int"),
    ({"response": "a\ud800b"}, "response has a lone surrogate at offset 1"),
    ({"response": "ab\0"}, "response has a NUL character at offset 2"),
    ({"response": "x" * 1_000_000}, "response has 1000000 characters; allowed are 20000"),
    ({"knowledge": ""}, "knowledge is empty"),
    ({"knowledge": []}, "knowledge is empty"),
    ({"knowledge": ["  ", ""]}, "knowledge is empty"),
    ({"knowledge": ["fine", 3]}, r"knowledge\[1\] is int"),
    ({"knowledge": None}, "knowledge is NoneType"),
    ({"knowledge": {"a": "b"}}, "knowledge is dict"),
    ({"knowledge": ["fine", "a\udfffb"]}, r"knowledge\[1\] has a lone surrogate"),
    ({"knowledge": "x" * 4_000_001}, "knowledge has 4000001 characters"),
    ({"history": "one string"}, "history is one string"),
    ({"history": ["fine", None]}, r"history\[1\] is NoneType"),
    ({"history": 3}, "history is int"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {"response": "Fine.", "knowledge": "Fine.", "history": ()} | change
    with pytest.raises(InvalidRequest, match=message):
        make_request(**fields)


@pytest.mark.parametrize(
    "text", ["שלום עולם", "珈琲は酸っぱい", "🙂👩‍👩‍👧", "a</s>[SEP]b", "\u202ereversed", "e\u0301"]
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
    [(["q3"], "Unknown metric 'q3'; known are q2"), ([], "metrics is empty"), ("q2", "one string")],
)
def test_an_unknown_metric_is_named(metrics: Any, message: str) -> None:
    with Engine(world()) as engine, pytest.raises(InvalidRequest, match=message):
        engine.score("a", "b", metrics=metrics)


def test_a_metric_without_its_models_is_refused() -> None:
    runtime = world()
    del runtime._answers["nli"]
    with Engine(runtime) as engine, pytest.raises(InvalidRequest, match="needs the roles nli"):
        engine.score("a", "b")


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
    with pytest.raises(InvalidRequest, match="Not a Options"):
        Options.from_json('{"deadline_ms": "soon"}')


def test_the_signature_names_what_is_not_default() -> None:
    with Engine(world()) as engine:
        plain = engine.score("a", "b").signature
        other = engine.score("a", "b", options=Options(q2=Q2Options(nli=False), deadline_ms=1e6)).signature
    assert plain.endswith("|bundle:fake@000000000000|precision:fp32|device:cpu|metrics:q2|options:default")
    assert other.endswith("options:q2.nli=False")


def test_all_is_what_the_door_exports() -> None:
    public = {
        name
        for name, value in vars(door).items()
        if (not name.startswith("_") and getattr(value, "__module__", "").startswith("groundwire"))
        or name in ("METRICS", "GROUPS")
    }
    assert set(door.__all__) == public
    assert door.__all__ == sorted(door.__all__, key=lambda name: (name.islower(), not name.isupper(), name))

"""Turns of tools: what may stand in the place of a value, how logs are rendered, and the labels of pairs."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from groundwire.recipes.reader.tools_source import draw_tool_pair
from groundwire.recipes.tools import ToolPairs, read_turns, rendering
from groundwire.recipes.tools.pairs import KINDS
from groundwire.recipes.tools.rendering import FORMS, render_call
from groundwire.recipes.tools.swaps import ValueForms, is_wrong, list_swaps, replace_value
from groundwire.recipes.tools.turns import ToolResult, make_turn
from tests.support.training_sets import write_gzipped

PLACES = (
    ("Sino", "San Jose", "Chinese", 4),
    ("Amber Cafe", "San Jose", "Indian", 3),
    ("Luna", "Fremont", "Mexican", 5),
    ("Oak Table", "Oakland", "French", 2),
    ("Elm Grill", "Fremont", "Indian", 1),
)
SLOTS = ("restaurant_name", "city", "cuisine", "stars")


def _list_records() -> list[dict[str, Any]]:
    return [dict(zip(SLOTS, place, strict=True)) for place in PLACES]


def _make_row(number: int, response: str, act: str, values: dict[str, str], **changes: Any) -> dict[str, Any]:
    spans = [
        {"start": response.index(text), "end": response.index(text) + len(text), "slot": slot, "act": act}
        | {"value": str(dict(zip(SLOTS, PLACES[number], strict=True))[slot]), "in": "result"}
        for slot, text in values.items()
    ]
    row = {
        "id": f"sgd-{number}_1-{len(response)}",
        "service": "Restaurants_1",
        "split": "train",
        "knowledge": json.dumps([{"tool": "FindRestaurants", "result": _list_records()}]),
        "call": {"method": "FindRestaurants", "arguments": {"city": PLACES[number][1], "cuisine": PLACES[number][2]}},
        "history": [
            f"user: Find {PLACES[number][2]} food in {PLACES[number][1]}.",
            "assistant: Sure.",
            "user: Thanks.",
        ],
        "response": response,
        "spans": spans,
        "unmarked": [],
        "acts": [act],
        "record": [0, number],
        "label": 1,
    }
    return row | changes


def _list_rows() -> list[dict[str, Any]]:
    rows = []
    for number, (name, city, cuisine, stars) in enumerate(PLACES):
        text = f"There is {name} in {city}. It is {cuisine}."
        rows.append(_make_row(number, text, "OFFER", {"restaurant_name": name, "city": city, "cuisine": cuisine}))
        rows.append(_make_row(number, f"{name} has {stars} stars.", "INFORM", {"stars": str(stars)}))
    return rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = _list_rows()
    rows.append(rows[0] | {"id": "sgd-x-1", "service": "Hotels_9", "split": "test"})
    rows.append(rows[0] | {"id": "sgd-y-1", "split": "dev"})
    rows.append(rows[0] | {"id": "sgd-z-1", "label": 0})
    (tmp_path / "more").mkdir()
    write_gzipped(tmp_path / "more" / "sgd_turns.jsonl.gz", rows)
    return tmp_path


@pytest.fixture
def pairs(data: Path) -> ToolPairs:
    return ToolPairs.read(data, "train")


def test_services_that_training_lacks_are_held_out(data: Path) -> None:
    assert {turn.service for turn in read_turns(data, "train")} == {"Restaurants_1"}
    assert [turn.id for turn in read_turns(data, "dev")] == ["sgd-x-1"]
    assert len(read_turns(data, "train")) == 10


def test_records_of_records_are_left_out() -> None:
    row = _list_rows()[0]
    assert make_turn(row) is not None
    assert make_turn(row | {"knowledge": json.dumps([{"tool": "x", "result": [{"items": [{"name": "a"}]}]}])}) is None


@pytest.mark.parametrize(
    ("number", "slot", "other", "wrong"),
    [
        (0, "restaurant_name", "Luna", True),
        (0, "city", "Fremont", True),
        (0, "city", "San Jose", False),  # the same value
        (0, "cuisine", "Indian", True),
        (0, "restaurant_name", "Sino Bistro", False),  # may be the same place
    ],
)
def test_an_offer_is_wrong_if_no_record_has_its_values(number: int, slot: str, other: str, wrong: bool) -> None:
    turn = make_turn(_list_rows()[2 * number])
    assert turn is not None
    index = next(i for i, value in enumerate(turn.values) if value.slot == slot)
    assert is_wrong(turn, index, other) == wrong


def test_a_value_that_another_record_makes_true_is_not_wrong() -> None:
    text = "There is something in Fremont."
    turn = make_turn(_make_row(2, text, "OFFER", {"city": "Fremont"}))
    assert turn is not None
    assert not is_wrong(turn, 0, "Oakland")
    assert is_wrong(turn, 0, "Boston")


def test_a_value_is_written_as_people_wrote_it() -> None:
    rows = [
        _make_row(0, "It opens at half past 4.", "INFORM", {}, spans=[_span("half past 4", 12, "16:30")]),
        _make_row(1, "It opens at half past 6.", "INFORM", {}, spans=[_span("half past 6", 12, "18:30")]),
        _make_row(2, "It opens at 6:30 pm.", "INFORM", {}, spans=[_span("6:30 pm", 12, "18:30")]),
    ]
    turns = [turn for row in rows if (turn := make_turn(row)) is not None]
    forms = ValueForms(turns)
    assert forms.write("opens", "18:30", "half past 4", "16:30") == "half past 6"
    assert forms.write("opens", "16:30", "6:30 pm", "18:30") == "half past 4"
    assert forms.write("opens", "09:00", "half past 4", "16:30") is None
    assert forms.find("opens", "18:30", "At half past 6, please.")
    assert not forms.find("opens", "18:30", "At half past 60, please.")


def _span(text: str, start: int, value: str) -> dict[str, Any]:
    return {"start": start, "end": start + len(text), "slot": "opens", "value": value, "act": "INFORM", "in": "result"}


@pytest.mark.parametrize(("response", "texts"), [("It is a Thai bar.", {"Greek"}), ("It is an Irish bar.", {"Indian"})])
def test_an_article_goes_with_the_new_word(response: str, texts: set[str]) -> None:
    old = response.split()[3]
    records = [{"food": value} for value in ("Thai", "Greek", "Indian", "Irish")]
    span = {"start": response.index(old), "end": response.index(old) + len(old), "slot": "food", "value": old}
    row = _make_row(0, response, "INFORM", {}, spans=[span | {"act": "INFORM", "in": "result"}])
    turn = make_turn(row | {"knowledge": json.dumps([{"tool": "Find", "result": records}])})
    assert turn is not None
    possible = list_swaps(turn, 0, ValueForms([turn]), random.Random(1), near=True)
    assert {swap.text for swap in possible} == texts


def test_a_number_stays_a_number_in_an_edited_log() -> None:
    call = ToolResult("x", ({"price": 7, "name": "a"}, {"price": "7", "name": "7"}), 2)
    (edited,) = replace_value((call,), "price", "7", "9")
    assert edited.records == ({"price": 9, "name": "a"}, {"price": "9", "name": "7"})


@pytest.mark.parametrize("render", FORMS)
def test_every_form_has_every_value(render: rendering.Render) -> None:
    call = ToolResult("FindRestaurants", tuple(_list_records()), 9)
    text = render(call, {"city": "Oakland"})
    assert all(str(value) in text for record in call.records for value in record.values())
    assert "9" in text
    assert "Oakland" in text
    empty = render(replace(call, records=(), total=0), {})
    assert "[]" in empty or "no results" in empty


def test_a_call_says_where_its_values_stand() -> None:
    arguments = {"city": "San Jose", "stars": "4"}
    texts = set()
    for seed in range(20):
        text, ranges = render_call("FindRestaurants", arguments, random.Random(seed))
        texts.add(text)
        assert {name: text[start:end] for name, (start, end) in ranges.items()} == arguments
    assert len(texts) == 4


def test_labels_of_swaps_are_those_of_the_log(pairs: ToolPairs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decide every label again: an offer is right if a line of the log has all of it."""
    monkeypatch.setattr(rendering, "FORMS", (rendering.render_bullets,))
    monkeypatch.setattr(rendering, "WEIGHTS", (1.0,))
    wrong_logs = 0
    for seed in range(200):
        pair = pairs.draw(320, random.Random(seed), "swap")
        for row in (pair.supported, pair.unsupported):
            lines = [line for line in row.knowledge[0].splitlines() if line.startswith("- ")]
            assert _is_true(row.response, lines) == bool(row.label), row
            assert bool(row.spans) != bool(row.label)
            assert {part.label for part in row.sentences} <= {0, 1}
        wrong_logs += pair.supported.knowledge != pair.unsupported.knowledge
        (span,) = pair.unsupported.spans
        marked = pair.unsupported.response[span.start : span.end]
        assert marked == marked.strip()
        broken = [part for part in pair.unsupported.sentences if part.label == 0]
        assert [(part.start <= span.start, span.end <= part.end) for part in broken] == [(True, True)]
    assert wrong_logs > 10


def _is_true(response: str, lines: list[str]) -> bool:
    offer = re.fullmatch(r"There is (.+) in (.+)\. It is (\w+)\.", response)
    if offer is None:
        answer = re.fullmatch(r"(.+) has (\d+) stars\.", response)
        assert answer is not None, response
        return any(f"name {answer[1]};" in f"{line};" and f"stars {answer[2]};" in f"{line};" for line in lines)
    name, city, cuisine = offer.groups()
    values = (f"name {name};", f"city {city};", f"cuisine {cuisine};")
    return any(all(value in f"{line};" for value in values) for line in lines)


def test_a_claimed_action_is_right_only_with_its_result(data: Path) -> None:
    booked = _make_row(0, "Your table is booked.", "NOTIFY_SUCCESS", {})
    log = [*json.loads(booked["knowledge"]), {"tool": "ReserveRestaurant", "result": [_list_records()[0]]}]
    row = booked | {"knowledge": json.dumps(log), "record": [1, 0]}
    row["call"] = {"method": "ReserveRestaurant", "arguments": {"city": "San Jose"}}
    write_gzipped(data / "more" / "sgd_turns.jsonl.gz", [*_list_rows(), row])
    pairs = ToolPairs.read(data, "train")
    for seed in range(20):
        pair = pairs.draw(320, random.Random(seed), "claim")
        assert pair.supported.response == pair.unsupported.response
        assert "reserve" in pair.supported.knowledge[0].lower()
        failed = ("[]", "no results", "fail", "error", "declined", "False", "no\n", "success")
        without = pair.unsupported.knowledge[0]
        assert "reserve" not in without.lower() or any(sign in without for sign in failed)


def test_other_kinds_have_one_wrong_side(pairs: ToolPairs) -> None:
    added = pairs.draw(320, random.Random(3), "added")
    (span,) = added.unsupported.spans
    assert span.reason == "addition"
    assert added.unsupported.response[span.start : span.end] not in added.supported.response
    call = pairs.draw(320, random.Random(3), "call")
    assert call.supported.knowledge[0].startswith("user: Find ")
    (span,) = call.unsupported.spans
    assert call.unsupported.response[span.start : span.end] not in call.supported.knowledge[0]


def test_a_draw_depends_on_the_seed_alone(pairs: ToolPairs) -> None:
    first, second = (draw_tool_pair(pairs, 224, random.Random(5)) for _ in range(2))
    assert first == second
    assert first[0].example.labels["consistency"] == "consistent"
    assert first[1].example.labels["consistency"] == "inconsistent"


def test_what_no_turn_gives_is_an_error(pairs: ToolPairs) -> None:
    with pytest.raises(LookupError, match="10 turns gave no pair of 5 tokens"):
        pairs.draw(5, random.Random(1))
    with pytest.raises(ValueError, match="no turns"):
        ToolPairs([])
    assert set(KINDS) == {"swap", "joined", "mixed", "claim", "added", "call"}

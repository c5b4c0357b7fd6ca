"""One plan for equal metrics and options, a new one for anything else, and a bounded number of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from groundwire.engine import Engine, InvalidRequest, LoadOptions, Options
from groundwire.engine.core.core import MAX_PLANS
from groundwire.engine.metrics import METRICS, register
from groundwire.engine.schema.options import Q2Options
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.fake import FakeRuntime
from tests.support.evaluation import CALIBRATION as OF_Q2
from tests.support.fakes import ROLES, world
from tests.support.streams import CALIBRATION
from tests.support.work import count_steps

MAX_WARM_STEPS = 600
"""Bytecode instructions of a plan that was made before, about 10 µs."""


@pytest.mark.parametrize(
    "make",
    [
        lambda engine: engine.plan(),
        lambda engine: engine.plan("fast"),
        lambda engine: engine.plan(["nli", "overlap"]),
        lambda engine: engine.plan(None, Options(deadline_ms=100.0, q2=Q2Options(nli=False, spans=((0, 5),)))),
    ],
    ids=["defaults", "group", "list", "options"],
)
def test_equal_arguments_get_the_same_plan(make: Callable[[Engine], object]) -> None:
    with Engine(world()) as engine:
        assert make(engine) is make(engine)


def test_a_list_and_a_tuple_of_names_get_the_same_plan() -> None:
    with Engine(world()) as engine:
        assert engine.plan(["nli"]) is engine.plan(("nli",))


def test_another_order_or_another_option_is_another_plan() -> None:
    with Engine(world()) as engine:
        plans = [
            engine.plan(["nli", "overlap"]),
            engine.plan(["overlap", "nli"]),
            engine.plan(["nli"]),
            engine.plan(["nli"], Options(deadline_ms=5.0)),
            engine.plan(["nli"], Options(max_windows=3)),
        ]
    assert len(set(map(id, plans))) == len(plans)
    assert [plan.names for plan in plans[:2]] == [("nli", "overlap"), ("overlap", "nli")]


def test_values_that_are_equal_and_of_other_types_share_no_plan() -> None:
    """In Python ``True == 1 == 1.0``: a plan for the first would hide that the others are refused."""
    with Engine(world()) as engine:
        assert engine.plan(None, Options(q2=Q2Options(nli=True))).options.q2.nli is True
        for value in (1, 1.0):
            with pytest.raises(InvalidRequest, match=f"Options.q2.nli is {value}"):
                engine.plan(None, Options(q2=Q2Options(nli=value)))  # type: ignore[arg-type]
        assert engine.plan(None, Options(max_windows=1)).options.max_windows == 1
        for other in (True, 1.5):
            with pytest.raises(InvalidRequest, match=f"Options.max_windows is {other}"):
                engine.plan(None, Options(max_windows=other))  # type: ignore[arg-type]


@pytest.mark.parametrize("metrics", [[], ["psychic"], [True], [["nli"]], {"nli"}, 3])
def test_what_was_refused_is_refused_again(metrics: object) -> None:
    with Engine(world()) as engine:
        for _ in range(2):
            with pytest.raises(InvalidRequest):
                engine.plan(metrics)  # type: ignore[arg-type]


def test_a_newly_registered_metric_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    known = METRICS["overlap"]
    with Engine(world()) as engine:
        before = engine.plan("fast")
        with pytest.raises(InvalidRequest, match="Unknown metric 'mine'"):
            engine.plan("mine")
        monkeypatch.setitem(METRICS, "mine", known)  # removed after the test
        del METRICS["mine"]
        mine = register(dataclasses.replace(known, name="mine", groups=frozenset({"fast"}), order=1_000))
        assert engine.plan("mine").metrics == (mine,)
        assert engine.plan("fast").names == (*before.names, "mine")
        METRICS["mine"] = dataclasses.replace(mine, roles=frozenset({"absent"}))
        with pytest.raises(InvalidRequest, match="needs the roles absent"):
            engine.plan("mine")
        del METRICS["mine"]
        assert engine.plan("fast") is before


def test_the_number_of_plans_is_bounded_and_the_last_ones_used_stay() -> None:
    with Engine(world()) as engine:
        first = engine.plan("nli")
        for limit in range(1, 2 * MAX_PLANS):
            engine.plan("overlap", Options(max_windows=limit))
            assert engine.plan("nli") is first
        assert len(engine.core._plans) == MAX_PLANS
        assert engine.plan("overlap", Options(max_windows=1)).options.max_windows == 1


def test_a_warm_plan_costs_little_and_nothing_for_its_calibration() -> None:
    features = CALIBRATION.fusions[0].features * 200
    large = replace(CALIBRATION, fusions=(replace(CALIBRATION.fusions[0], features=features),))

    def count_warm_steps(calibration: Calibration) -> int:
        with Engine(FakeRuntime(ROLES, calibration=calibration)) as engine:
            options = Options(deadline_ms=100.0)
            engine.plan("fast", options)
            return count_steps(lambda: engine.plan("fast", options))

    steps = count_warm_steps(CALIBRATION)
    assert steps < MAX_WARM_STEPS
    assert count_warm_steps(large) == steps


def test_threads_may_ask_for_plans_at_the_same_time() -> None:
    with Engine(world()) as engine, ThreadPoolExecutor(8) as pool:
        plans = list(
            pool.map(lambda limit: engine.plan("nli", Options(max_windows=limit % 5 + 1)), range(400), chunksize=1)
        )
        assert [plan.options.max_windows for plan in plans] == [limit % 5 + 1 for limit in range(400)]
        assert len(engine.core._plans) == 5


def test_a_number_of_more_than_64_bits_is_refused_and_named() -> None:
    with Engine(FakeRuntime({})) as engine, pytest.raises(InvalidRequest, match="max_windows"):
        engine.plan("overlap", Options(max_windows=2**64))


@pytest.mark.parametrize("metrics", ["default,quotations", ["default", "quotations"], "default, quotations"])
def test_groups_and_names_are_joined(metrics: str | list[str]) -> None:
    with Engine(world(), LoadOptions(calibration=OF_Q2)) as engine:
        assert engine.plan(metrics).names == (*engine.plan().names, "quotations")
        assert engine.plan("default").names == engine.plan().names

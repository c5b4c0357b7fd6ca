"""What of ``make test-arm64`` needs no emulator."""

from __future__ import annotations

import platform
from typing import Any

import msgspec
import pytest

from groundwire.runtime.ort.processor import read_features
from tests.support import arm64, debian
from tests.support.agreement import LABELLED_ROWS, Outcome, Outcomes, compare, read_rows
from tests.support.arm64 import DOT_PRODUCT, MATRIX, PLAIN, Processor

OUTCOME = Outcome("inconsistent", 0.25, [(4, 9, "number")])
HERE = Outcomes("Linux x86_64", "avx512_vnni", False, "1.31.1", "0a", {"a": OUTCOME, "b": Outcome(None, None, [])})


@pytest.mark.parametrize("processor", [PLAIN, DOT_PRODUCT, MATRIX], ids=lambda processor: processor.name)
def test_the_description_of_an_arm_processor_names_its_int8_kernel_first(processor: Processor) -> None:
    assert read_features(processor.describe())[0] == processor.int8_kernel


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label": "consistent"}, "a: inconsistent, there consistent"),
        ({"marks": []}, "a: marks [(4, 9, 'number')], there []"),
        ({"marks": [(4, 9, "negation")]}, "a: marks [(4, 9, 'number')], there [(4, 9, 'negation')]"),
        ({"probability": 0.301}, "a: probability 0.25, there 0.301"),
        ({"probability": None}, "a: probability 0.25, there None"),
    ],
)
def test_each_difference_is_found(change: dict[str, Any], words: str) -> None:
    other = msgspec.structs.replace(HERE, rows=HERE.rows | {"a": msgspec.structs.replace(OUTCOME, **change)})
    assert compare(HERE, other).differences[0] == words


def test_probabilities_may_differ_little_and_less_on_average() -> None:
    def shift(by: float, count: int) -> Outcomes:
        shifted = {str(row): msgspec.structs.replace(OUTCOME, probability=0.25 + by) for row in range(count)}
        return msgspec.structs.replace(HERE, emulated=True, rows={str(row): OUTCOME for row in range(9)} | shifted)

    agreement = compare(shift(0, 9), shift(0.04, 2))
    assert not agreement.differences
    assert agreement.emulated
    assert "9 rows, 0 with other marks, probabilities apart by 0.0400 at most, 0.0089 on average" in str(agreement)
    assert compare(shift(0, 9), shift(0.04, 3)).differences == ["probabilities are 0.0133 apart on average"]


def test_few_responses_may_have_other_marks() -> None:
    rows = {str(row): OUTCOME for row in range(100)}
    marked = {str(row): msgspec.structs.replace(OUTCOME, marks=[]) for row in range(3)}
    here, two, three = (
        msgspec.structs.replace(HERE, rows=rows | dict(list(marked.items())[:count])) for count in (0, 2, 3)
    )
    assert (compare(here, two).other_marks, compare(here, two).differences) == (2, [])
    assert len(compare(here, three).differences) == 3


def test_other_models_are_a_difference() -> None:
    other = msgspec.structs.replace(HERE, models="0b")
    assert compare(HERE, other).differences == ["they have other models"]


def test_a_row_of_one_machine_is_a_difference() -> None:
    other = msgspec.structs.replace(HERE, rows={"a": OUTCOME})
    assert compare(HERE, other).differences == ["b: scored on one machine alone"]


def test_the_rows_are_the_demo_and_the_shortest_labelled_ones() -> None:
    rows = read_rows()
    assert len({row.id for row in rows}) == len(rows) == 16 + LABELLED_ROWS


@pytest.mark.parametrize(("system", "machine"), [("Linux", "aarch64"), ("Darwin", "x86_64")])
def test_a_machine_that_cannot_emulate_arm_raises_an_error_that_says_so(
    system: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(SystemExit, match=f"this is {system} on {machine}"):
        arm64.prepare()


def test_a_machine_without_debians_tools_raises_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="it lacks apt-get and dpkg"):
        debian.check_tools()

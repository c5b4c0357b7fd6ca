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
HERE = Outcomes("Linux x86_64", "avx512_vnni", False, "1.31.1", {"a": OUTCOME, "b": Outcome(None, None, [])})


@pytest.mark.parametrize("processor", [PLAIN, DOT_PRODUCT, MATRIX], ids=lambda processor: processor.name)
def test_the_description_of_an_arm_processor_names_its_int8_kernel_first(processor: Processor) -> None:
    assert read_features(processor.describe())[0] == processor.int8_kernel


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label": "consistent"}, "a: inconsistent"),
        ({"marks": []}, "a: inconsistent"),
        ({"marks": [(4, 9, "negation")]}, "a: inconsistent"),
        ({"probability": 0.2601}, "a: probability 0.25"),
        ({"probability": None}, "a: probability 0.25"),
    ],
)
def test_each_difference_is_found(change: dict[str, Any], words: str) -> None:
    other = msgspec.structs.replace(HERE, rows=HERE.rows | {"a": msgspec.structs.replace(OUTCOME, **change)})
    (difference,) = compare(HERE, other).differences
    assert difference.startswith(words)


def test_near_probabilities_agree() -> None:
    rows = HERE.rows | {"a": msgspec.structs.replace(OUTCOME, probability=0.2599)}
    agreement = compare(HERE, msgspec.structs.replace(HERE, emulated=True, rows=rows))
    assert not agreement.differences
    assert agreement.emulated
    assert "2 rows, 0 differences, probabilities apart by 0.0099 at most, 0.0050 on average" in str(agreement)


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

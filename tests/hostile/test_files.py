"""Files of an operator that are damaged, hostile or huge: calibrations and trusted answers."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine import Engine, LoadOptions
from groundwire.evaluate.calibration.trusted import calibrate_trusted
from groundwire.runtime.errors import GroundwireError
from tests.support.odd_texts import MARKUP, PLAIN, SCRIPTS, SIGNS
from tests.support.streams import CALIBRATION, world

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**63, -0.0, 1e-320, 1e308, -1e308, "", "x", "nli.expected", [], {}, [[]], "é" * 100_000,
    [0.5] * 10_000, {"balanced": {}}, "\ud800",
)  # fmt: skip


def replace_values(value: Any) -> Iterator[Any]:
    """A tree of JSON with each of its parts replaced by each of ``VALUES``, and left out."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {key: other for key, other in value.items() if key != name}
            yield from ({**value, name: changed} for changed in (*VALUES, *replace_values(inner)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield value * 2
            yield from ([*value[:index], changed, *value[index + 1 :]] for changed in (*VALUES, *replace_values(inner)))


def write_calibration(path: Path) -> bytes:
    CALIBRATION.save(path)
    return path.read_bytes()


def test_a_calibration_with_other_values_is_refused_or_usable(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    changed = list(replace_values(json.loads(write_calibration(path))))
    refused = usable = 0
    for calibration in changed:
        path.write_text(json.dumps(calibration))
        try:
            options = LoadOptions(calibration=path)
            with Engine(world(options.loaded_calibration), options) as engine:
                score = engine.score("Honey is blue.", "Honey is golden.")
        except GroundwireError:
            refused += 1
            continue
        assert score.status == "scored", (calibration, score.message)
        probability = score.verdict.probability
        assert probability is None or (math.isfinite(probability) and 0 <= probability <= 1)
        usable += 1
    assert refused > 200
    assert usable > 20


def test_a_damaged_calibration_is_refused_or_read(tmp_path: Path) -> None:
    path, chance = tmp_path / "calibration.json", random.Random(5)
    whole = write_calibration(path)
    damaged = [whole[:end] for end in range(0, len(whole), 40)]
    for _ in range(500):
        start = chance.randrange(len(whole))
        damaged.append(whole[:start] + chance.randbytes(chance.randrange(9)) + whole[start + chance.randrange(9) :])
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            LoadOptions(calibration=path)
        except GroundwireError:
            refused += 1
    assert refused > 200


@pytest.mark.parametrize(
    "content", [b"[" * 20_000_000, b"[" * 1_000_000, b'{"schema":' + b"9" * 1_000_000, b"\xff\xfe"]
)
def test_a_huge_calibration_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "calibration.json"
    path.write_bytes(content)
    with pytest.raises(GroundwireError):
        LoadOptions(calibration=path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a file without end")
def test_a_calibration_without_end_is_refused() -> None:
    with pytest.raises(GroundwireError, match="has more than"):
        LoadOptions(calibration="/dev/zero")


def test_odd_trusted_answers_are_refused_or_used() -> None:
    chance = random.Random(7)
    pieces = (*PLAIN, *SIGNS, *SCRIPTS, *MARKUP)

    def write_text() -> str:
        return " ".join(chance.choice(pieces) for _ in range(chance.randrange(1, 12)))

    refused = 0
    with Engine(world()) as engine:
        for size in (0, 1, 19, 20, 25, 60, 60, 60):
            rows: list[dict[str, Any]] = [{"response": write_text(), "knowledge": write_text()} for _ in range(size)]
            try:
                calibrate_trusted(rows, engine, 0.1)
            except GroundwireError:
                refused += 1
        for wrong in (
            {"response": 7},
            {"knowledge": None},
            {"label": 0},
            {"response": ""},
            {"history": [[]]},
            {"x": 1},
        ):
            rows = [{"response": "Honey is golden.", "knowledge": "Honey is golden."} for _ in range(25)]
            rows[3] |= wrong
            try:
                calibrate_trusted(rows, engine, 0.1)
            except GroundwireError:
                refused += 1
    assert refused > 5

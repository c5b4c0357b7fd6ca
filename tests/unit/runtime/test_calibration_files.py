"""Calibration files: any valid one is read as it was written, and a damaged one is refused or valid."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.runtime.bundles.calibration import (
    Band,
    Calibration,
    Distribution,
    Feature,
    Fusion,
    HeldOut,
    OrderStatistics,
    Profile,
    Scale,
)
from groundwire.runtime.errors import BundleError
from tests.support.evaluation import CALIBRATION

NUMBER = st.floats(allow_nan=False, allow_infinity=False)
SHARE = st.floats(0, 1)
NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
COUNTS = st.integers(0, 2**31)
FEATURES = st.builds(
    Feature,
    name=NAME,
    mean=NUMBER,
    deviation=st.floats(0, exclude_min=True, allow_infinity=False),
    weight=NUMBER,
    needed=st.booleans(),
)
RECORDS = st.lists(SHARE, max_size=4).flatmap(
    lambda values: st.builds(
        OrderStatistics,
        count=st.integers(len(values), 2**31) if values else st.just(0),
        values=st.just(tuple(sorted(values))),
    )
)
DISTRIBUTIONS = st.lists(NUMBER, min_size=1, max_size=4, unique=True).flatmap(
    lambda edges: st.builds(
        Distribution,
        edges=st.just(tuple(sorted(edges))),
        counts=st.lists(COUNTS, min_size=len(edges) + 1, max_size=len(edges) + 1).map(tuple),
    )
)
FUSIONS = st.builds(
    Fusion,
    name=NAME,
    metrics=st.lists(NAME, max_size=3).map(tuple),
    intercept=NUMBER,
    features=st.lists(FEATURES, min_size=1, max_size=3).map(tuple),
    profiles=st.dictionaries(
        st.sampled_from(["balanced", "strict", "lenient"]),
        st.builds(
            Profile,
            threshold=SHARE,
            max_false_positive_rate=st.none() | SHARE,
            false_positive_rate=SHARE,
            false_negative_rate=SHARE,
            unverifiable_rate=SHARE,
            coverage=SHARE,
            risk=SHARE,
            sets=COUNTS,
        ),
        min_size=1,
    ),
    band=st.builds(Band, low=SHARE, high=SHARE),
    held_out=st.none() | st.builds(HeldOut, consistent=RECORDS, inconsistent=RECORDS),
    distributions=st.dictionaries(st.sampled_from(["probability", "words", "overlap"]), DISTRIBUTIONS),
)
CALIBRATIONS = st.builds(
    Calibration,
    fitted_on=st.lists(NAME, max_size=3).map(tuple),
    rows=st.integers(0, 2**53),
    fusions=st.lists(FUSIONS, min_size=1, max_size=2).map(tuple),
    scales=st.dictionaries(NAME, st.builds(Scale, low=NUMBER, high=NUMBER, threshold=SHARE), max_size=3),
    verifiable=st.none() | SHARE,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("calibrations") / "calibration.json"


@given(calibration=CALIBRATIONS)
def test_a_calibration_is_read_as_it_was_written(file: Path, calibration: Calibration) -> None:
    calibration.save(file)
    loaded = Calibration.load(file)
    assert loaded == calibration
    assert loaded.digest() == calibration.digest()


def check_damaged(file: Path, raw: bytes) -> None:
    """A BundleError, or a calibration that is valid: a changed digit makes another one."""
    file.write_bytes(raw)
    try:
        loaded = Calibration.load(file)
    except BundleError:
        return
    loaded.save(file)
    assert Calibration.load(file) == loaded


@given(calibration=CALIBRATIONS, data=st.data())
def test_a_damaged_calibration_is_refused_or_valid(file: Path, calibration: Calibration, data: st.DataObject) -> None:
    calibration.save(file)
    raw = bytearray(file.read_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    check_damaged(file, bytes(raw))
    check_damaged(file, bytes(raw[: data.draw(st.integers(0, len(raw)))]))


@pytest.mark.parametrize("mask", [1, 4, 16, 32, 128])
def test_each_flipped_bit_of_a_calibration_is_refused_or_valid(file: Path, mask: int) -> None:
    CALIBRATION.save(file)
    raw = file.read_bytes()
    for position in range(len(raw)):
        check_damaged(file, raw[:position] + bytes([raw[position] ^ mask]) + raw[position + 1 :])

"""``warmup`` notices a bundle that computes something else here than where it was exported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine import Engine
from groundwire.runtime.bundles.bundle import MANIFEST, Bundle, embedded
from groundwire.runtime.calls import Classified, Classify, Read
from groundwire.runtime.errors import ModelError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.canary import MAX_NUMBERS, check_canary, list_numbers, make_canary

CALL = Classify("nli", ("a",), "b")


def classified(*probabilities: float) -> Classified:
    return Classified("x", {str(i): p for i, p in enumerate(probabilities)}, 0, Read(1, 1, 1))


@pytest.fixture
def recorded(tiny_bundle: Path, tmp_path: Path) -> Path:
    """A copy of the tiny bundle with the canaries of this machine."""
    bundle = shutil.copytree(tiny_bundle, tmp_path / "bundle")
    runtime = LocalRuntime.load(bundle, "cpu", threads=1)
    runtime.bundle.record(runtime.record_canaries())
    return bundle


def edit(bundle: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    change(manifest["canaries"])
    (bundle / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def warm_up(bundle: Path | str, *, verify: bool = True) -> None:
    with Engine(LocalRuntime.load(bundle, "cpu", threads=1, verify=verify)) as engine:
        engine.warmup()


def test_a_bundle_computes_what_it_has_recorded(tiny_bundle: Path, recorded: Path) -> None:
    manifest = Bundle.open(recorded).manifest
    assert manifest.digest() == Bundle.open(tiny_bundle).manifest.digest()
    assert isinstance(manifest.canaries, dict)
    assert manifest.canaries.keys() == manifest.roles.keys()
    warm_up(recorded)


def test_zeroed_weights_are_noticed_without_digests(recorded: Path) -> None:
    (recorded / "weights.bin").write_bytes(bytes((recorded / "weights.bin").stat().st_size))
    with pytest.raises(ModelError, match="Warming up failed: "):
        warm_up(recorded, verify=False)


@pytest.mark.parametrize("numbers", [[1.0, 0.0, 0.0], [0.3, 0.3], []], ids=str)
def test_another_result_fails_the_warm_up_and_names_the_role(recorded: Path, numbers: list[float]) -> None:
    edit(recorded, lambda canaries: canaries["nli"][0].update(numbers=numbers))
    with pytest.raises(ModelError, match="The role 'nli' answers its stored input otherwise here"):
        warm_up(recorded)


def test_a_canary_of_another_input_is_not_compared(recorded: Path) -> None:
    edit(recorded, lambda canaries: canaries["nli"][0].update(numbers=[], input="0" * 12))
    warm_up(recorded)


@pytest.mark.parametrize("name", embedded())
def test_the_embedded_bundles_compute_what_they_have_recorded(name: str) -> None:
    manifest = Bundle.open(name).manifest
    assert isinstance(manifest.canaries, dict)
    assert manifest.canaries.keys() == manifest.roles.keys()
    warm_up(name)


def test_the_tolerance() -> None:
    canary = make_canary(CALL, classified(0.8, 0.2))
    assert canary.numbers == (0.8, 0.2)
    assert check_canary("nli", canary, classified(0.7, 0.3)) is None
    for other in (classified(0.5, 0.5), classified(0.8, 0.2, 0.0), classified(float("nan"), 0.2)):
        assert isinstance(check_canary("nli", canary, other), ModelError)


def test_few_numbers_of_a_long_result_are_kept() -> None:
    numbers = list_numbers(classified(*(i / 100 for i in range(100))))
    assert len(numbers) == MAX_NUMBERS
    assert (numbers[0], numbers[-1]) == (0.0, 0.99)

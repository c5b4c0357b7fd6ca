"""Several bundles in one engine: their roles are merged, and no role may be in two of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine import Engine
from groundwire.runtime.bundles.bundle import MANIFEST, Bundle, open_bundles
from groundwire.runtime.calls import Answer, Answered, Classified, Classify
from groundwire.runtime.errors import BundleError, InvalidRequest
from groundwire.runtime.local import LocalRuntime, merge_roles
from tests.support.evaluation import CALIBRATION


def copy_roles(bundle: Path, target: Path, *roles: str) -> Path:
    """A copy of a bundle with some of its roles, named after its folder."""
    shutil.copytree(bundle, target)
    manifest: dict[str, Any] = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
    manifest["roles"] = {name: role for name, role in manifest["roles"].items() if name in roles}
    manifest["name"] = target.name
    (target / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return target


@pytest.fixture
def cut(tiny_bundle: Path, tmp_path: Path) -> Callable[..., Path]:
    return lambda name, *roles: copy_roles(tiny_bundle, tmp_path / name, *roles)


def test_roles_are_merged_and_answer_as_in_a_single_bundle(tiny_bundle: Path, cut: Callable[..., Path]) -> None:
    calls = {"qa": Answer("who?", ("Bob Ross was a painter.",)), "nli": Classify("nli", ("Bob sang.",), "Bob sang.")}
    alone = LocalRuntime.load(tiny_bundle, "cpu", threads=1)
    both = LocalRuntime.load(cut("reading", "qa", "spans"), "cpu", threads=1, extra=[cut("inference", "nli")])
    assert both.roles == {"qa", "spans", "nli"}
    for role, call in calls.items():
        assert both.run(role, [call], 8) == alone.run(role, [call], 8)
        assert isinstance(both.run(role, [call], 8)[0], Answered | Classified)
    assert both.role_info("nli") == alone.role_info("nli") != both.role_info("qa")
    assert len(both.warm_calls()) == 4


def test_the_identity_names_every_bundle(cut: Callable[..., Path]) -> None:
    folders = cut("reading", "qa"), cut("inference", "nli")
    digests = [Bundle.open(folder).manifest.digest() for folder in folders]
    with Engine.load(folders[0], "cpu", threads=1, extra=folders[1:]) as engine:
        assert engine.core.runtime.identity.bundle == "reading+inference"
        assert f"|bundle:reading+inference@{digests[0]}+{digests[1]}|" in engine.plan(["nli"]).signature
        assert engine.score("Bob sang.", "Bob sang.", metrics=["nli"]).status == "scored"


def test_a_role_in_two_bundles_is_refused_with_both_names(cut: Callable[..., Path]) -> None:
    first, other = cut("first", "qa", "nli"), cut("other", "nli")
    with pytest.raises(BundleError, match=r"Both .*first and .*other have the role 'nli'"):
        LocalRuntime.load(first, "cpu", threads=1, extra=[other])
    with pytest.raises(BundleError, match="have the role"):
        LocalRuntime.load(first, "cpu", threads=1, extra=[first])


def test_one_role_of_a_bundle_takes_the_place_of_another(cut: Callable[..., Path]) -> None:
    first, other = cut("first", "qa", "nli"), cut("other", "qa", "nli", "spans")
    both = LocalRuntime.load(first, "cpu", threads=1, extra=[f"nli={other}"])
    assert both.roles == {"qa", "nli"}
    assert both.identity.bundle == "first+other"
    merged = merge_roles(open_bundles(first, [f"nli={other}"]))
    assert {name: bundle.directory for name, (_, bundle) in merged.items()} == {"qa": first, "nli": other}
    with pytest.raises(BundleError, match="has no role 'critic'; name one of nli, qa, spans"):
        LocalRuntime.load(first, "cpu", threads=1, extra=[f"critic={other}"])


def test_extra_is_a_list_of_bundles_that_exist(cut: Callable[..., Path]) -> None:
    with pytest.raises(InvalidRequest, match="extra is one string; pass a list of bundles"):
        LocalRuntime.load(cut("one", "qa"), "cpu", threads=1, extra="other")
    with pytest.raises(BundleError, match="No bundle 'nowhere'"):
        Engine.load(cut("two", "qa"), "cpu", threads=1, extra=["nowhere"])


def test_the_calibration_is_that_of_the_bundles_that_have_one(cut: Callable[..., Path]) -> None:
    first, other = cut("one", "qa"), cut("other", "nli")
    assert LocalRuntime.load(first, "cpu", threads=1, extra=[other]).calibration is None
    Bundle.open(other).calibrate(CALIBRATION)
    assert LocalRuntime.load(first, "cpu", threads=1, extra=[other]).calibration == CALIBRATION
    assert LocalRuntime.load(other, "cpu", threads=1, extra=[first]).calibration == CALIBRATION


def test_without_a_calibration_the_default_is_what_the_roles_allow(cut: Callable[..., Path]) -> None:
    with Engine.load(cut("inference", "nli"), "cpu", threads=1) as engine:
        names = engine.plan().names
        assert {"nli", "overlap"} <= set(names)
        assert not {"q2", "pmi"} & set(names)
        score = engine.score("Bob sang.", "Bob sang.")
    assert score.metrics["nli"].status == "scored"
    assert (score.verdict.label, score.verdict.probability) == ("unknown", None)

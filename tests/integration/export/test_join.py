"""Classifiers on one encoder become one graph, and what they ask of the same texts one pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from groundwire.engine import Engine
from groundwire.export.options import PAIR_TEMPLATE, ClassifierSettings, RoleOptions, TokenClassifierSettings
from groundwire.export.pipeline import export_bundle, export_role
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ClassifierRole, Template, TokenClassifierRole
from groundwire.runtime.calls import Classify, ClassifyTokens
from groundwire.runtime.errors import BundleError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.loading import load_group
from groundwire.runtime.ort.session import Session
from tests.support import models
from tests.support.zoo import PROFILE

RESPONSE, OTHER, KNOWLEDGE = list(models.sentences())[:3]
PAIR = ("nli", "detector.a", "token_classifier")
CALLS = (
    Classify("nli", (KNOWLEDGE.lower(), OTHER), RESPONSE),
    Classify("detector.a", (KNOWLEDGE, OTHER), RESPONSE),
    ClassifyTokens("token_classifier", (KNOWLEDGE, OTHER), RESPONSE),
    Classify("detector.verifiability", (), RESPONSE),
    Classify("detector.a", (KNOWLEDGE,), OTHER),
)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RoleOptions]:
    """Four heads on one encoder, and a classifier on another one."""
    root = tmp_path_factory.mktemp("heads")
    labels = {"nli": models.LABELS, "detector.a": ("yes", "no"), "detector.verifiability": ("verifiable", "other")}
    encoder: Any = None
    for name, of_head in labels.items():
        models.classifier(root / name, "bert", labels=of_head)
        model = AutoModelForSequenceClassification.from_pretrained(root / name)
        encoder = encoder or model.bert.state_dict()
        model.bert.load_state_dict(encoder)
        model.save_pretrained(root / name)
    models.token_classifier(root / "token_classifier", "bert")
    tokens = AutoModelForTokenClassification.from_pretrained(root / "token_classifier")
    tokens.bert.load_state_dict({name: value for name, value in encoder.items() if not name.startswith("pooler")})
    tokens.save_pretrained(root / "token_classifier")
    models.classifier(root / "detector.other", "bert", seed=5, labels=("yes", "no"))
    supported = {"detector.a": ("yes",), "detector.other": ("yes",), "detector.verifiability": ("verifiable",)}
    supported["token_classifier"] = models.FLAGS[:1]
    return {
        name: RoleOptions(
            str(root / name),
            TokenClassifierSettings(supported=supported[name])
            if name == "token_classifier"
            else ClassifierSettings(
                supported=supported.get(name),
                template=Template("{hypothesis}") if name == "detector.verifiability" else PAIR_TEMPLATE,
            ),
            precision="fp32",
        )
        for name in (*labels, "token_classifier", "detector.other")
    }


@pytest.fixture(scope="module")
def alone(checkpoints: Mapping[str, RoleOptions], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    root = tmp_path_factory.mktemp("alone")
    return {name: export_role(name, option, root / name) for name, option in checkpoints.items()}


@pytest.fixture(scope="module")
def together(checkpoints: Mapping[str, RoleOptions], tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export_bundle(checkpoints, tmp_path_factory.mktemp("together") / "bundle")


def graphs(bundle: Bundle) -> dict[str, tuple[str, str | None]]:
    return {
        name: (role.graph, role.output)
        for name, role in bundle.manifest.roles.items()
        if isinstance(role, ClassifierRole | TokenClassifierRole)
    }


def test_heads_on_one_encoder_are_one_graph(together: Bundle, alone: Mapping[str, Bundle]) -> None:
    shared = ("detector.a", "detector.verifiability", "nli", "token_classifier")
    assert graphs(together) == {name: ("detector.a.onnx", name) for name in shared} | {
        "detector.other": ("detector.other.onnx", None)
    }
    assert sorted(path.name for path in together.directory.glob("*.onnx")) == ["detector.a.onnx", "detector.other.onnx"]
    assert graphs(alone["nli"]) == {"nli": ("nli.onnx", None)}


def test_results_are_those_of_graphs_of_their_own(
    together: Bundle, alone: Mapping[str, Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    run = Session.run
    monkeypatch.setattr(
        Session, "run", lambda session, feeds: rows.append(len(feeds["input_ids"])) or run(session, feeds)
    )
    expected = [
        LocalRuntime.load(alone[call.role].directory, "cpu", threads=1).run(call.role, [call], 8)[0] for call in CALLS
    ]
    runtime = LocalRuntime.load(together.directory, "cpu", threads=1)
    assert {runtime.batch_group(role) for role in (*PAIR, "detector.verifiability")} == {"detector.a"}
    assert runtime.batch_group("detector.other") == "detector.other"
    rows.clear()
    assert runtime.run("detector.a", CALLS, 8) == expected
    # Two windows of three roles, the sentence alone, and the other response.
    assert sum(rows) == 4


def test_an_engine_reads_a_response_once_for_all_heads(together: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    run = Session.run
    with Engine.load(together.directory, "cpu", threads=2) as engine:
        monkeypatch.setattr(
            Session, "run", lambda session, feeds: rows.append(len(feeds["input_ids"])) or run(session, feeds)
        )
        score = engine.score(RESPONSE, KNOWLEDGE, metrics=PAIR)
        assert {result.status for result in score.metrics.values()} == {"scored"}
        assert list(score.timings.stages_ms)[-1] == "detector.a+nli+token_classifier"
        assert sum(rows) == 1
        for name in PAIR:
            assert engine.score(RESPONSE, KNOWLEDGE, metrics=(name,)).metrics[name] == score.metrics[name]


def test_a_role_joins_a_bundle_and_is_replaced_in_it(
    checkpoints: Mapping[str, RoleOptions], alone: Mapping[str, Bundle], tmp_path: Path
) -> None:
    out = tmp_path / "bundle"
    for name in ("nli", "detector.a"):
        bundle = export_role(name, checkpoints[name], out)
    assert graphs(bundle) == {name: ("detector.a.onnx", name) for name in ("nli", "detector.a")}
    nli = bundle.manifest.canaries["nli"]
    bundle = export_role("detector.a", checkpoints["detector.other"], out, force=True)
    assert graphs(bundle) == {"nli": ("nli.onnx", None), "detector.a": ("detector.a.onnx", None)}
    assert bundle.manifest.canaries["nli"] == nli == alone["nli"].manifest.canaries["nli"]
    expected = LocalRuntime.load(alone["nli"].directory, "cpu", threads=1).run("nli", CALLS[:1], 8)
    assert LocalRuntime.load(out, "cpu", threads=1).run("nli", CALLS[:1], 8) == expected


def test_a_head_that_the_graph_lacks_is_refused(together: Bundle, tmp_path: Path) -> None:
    bundle = Bundle.open(together.directory)
    role = msgspec.structs.replace(bundle.manifest.roles["nli"], head="lost")
    with pytest.raises(BundleError, match="the role reads lost"):
        load_group(("nli",), {"nli": (role, bundle)}, PROFILE)

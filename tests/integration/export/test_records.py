"""Labels, tokenizers, presets, options: what the manifest is filled from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundwire.export import (
    PRESETS,
    ClassifierSettings,
    EmbedderSettings,
    QuestionGeneratorSettings,
    RoleOptions,
    SpansSettings,
    export_role,
    labels,
    override,
    preset,
    tokens,
)
from groundwire.export.options import check_precision
from groundwire.export.roles.names import ROLES
from groundwire.export.roles.registry import find_kind
from groundwire.export.texts import EXAMPLES
from groundwire.export.verify.examples import fill_template
from groundwire.runtime.bundles.manifest import Template
from groundwire.runtime.errors import ExportError
from tests.support import models


@pytest.mark.parametrize(
    ("role", "named", "given", "expected"),
    [
        ("nli", ["ENTAILMENT", "neutral", "Contradiction"], None, ("entailment", "neutral", "contradiction")),
        ("nli", ["contradict", "entail", "neutral"], None, ("contradiction", "entailment", "neutral")),
        ("nli", ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], None, ("entailment", "contradiction", "neutral")),
        ("nli", ["supports", "refutes", "not_enough_info"], None, ("entailment", "contradiction", "neutral")),
        ("nli", ["LABEL_0", "LABEL_1", "LABEL_2"], ["c", "n", "e"], ("contradiction", "neutral", "entailment")),
        ("detector.factcc", ["CORRECT", "INCORRECT"], None, ("CORRECT", "INCORRECT")),
        ("detector.x", ["LABEL_0", "LABEL_1"], ["good", "bad"], ("good", "bad")),
    ],
)
def test_labels(role: str, named: list[str], given: list[str] | None, expected: tuple[str, ...]) -> None:
    assert labels.read_labels(role, dict(enumerate(named)), given) == expected


@pytest.mark.parametrize(
    ("role", "named", "given", "message"),
    [
        ("nli", ["LABEL_0", "LABEL_1", "LABEL_2"], None, "does not say what its logits mean"),
        ("detector.x", ["LABEL_0", "LABEL_1"], None, r"--labels contradiction,entailment,neutral"),
        ("nli", ["entailment", "not_entailment"], None, "needs entailment, neutral and contradiction"),
        ("nli", ["a", "b", "c"], ["entailment", "neutral"], r"2 labels given .* has 3 logits"),
        ("detector.x", ["a", "b"], ["same", "same"], "Labels must differ"),
    ],
)
def test_labels_are_never_guessed(role: str, named: list[str], given: list[str] | None, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        labels.read_labels(role, dict(enumerate(named)), given)


def test_tokenizer_without_truncation_and_padding() -> None:
    tokenizer = models.unigrams_t5()
    tokenizer("some text", truncation=True, max_length=4, padding="max_length")
    content = json.loads(tokens.fast_json(tokenizer, "x"))
    assert content["truncation"] is None
    assert content["padding"] is None


def test_a_slow_tokenizer_is_refused_by_name() -> None:
    class Slow:
        pass

    with pytest.raises(ExportError, match=r"my/checkpoint has only a slow tokenizer \(Slow\)"):
        tokens.fast_json(Slow(), "my/checkpoint")


def test_batches_are_what_transformers_makes() -> None:
    tokenizer = models.word_pieces()
    pairs = [("who won the prize?", "Marie Curie won it."), ("when?", "in 1903 and again in 1911, in chemistry.")]
    batch = tokens.Batcher(tokens.fast_json(tokenizer, "x"), 0, 96)([(a, b) for a, b in pairs])
    expected = tokenizer([a for a, _ in pairs], [b for _, b in pairs], padding=True, return_tensors="np")
    for name, values in batch.items():
        np.testing.assert_array_equal(values, expected[name])
    single = tokens.Batcher(tokens.fast_json(models.unigrams_t5(), "x"), 0, 8)(
        [("answer: one  context: two three", None)]
    )
    assert single["input_ids"].shape == (1, 8)
    assert single["input_ids"][0, -1] == 1, "the end token survives truncation"


def test_texts_are_complete() -> None:
    assert len(EXAMPLES) == 64
    for example in EXAMPLES:
        assert example.answer.lower() in example.passage.lower()
        assert example.question.endswith("?")
        assert example.claim.endswith(".")


def test_templates_are_filled() -> None:
    example = EXAMPLES[0]
    template = Template("answer: {answer}  context: {context}")
    assert fill_template(template, example) == (f"answer: {example.answer}  context: {example.passage}", None)
    assert fill_template(Template("{premise}", "{hypothesis}"), example) == (example.passage, example.claim)


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("paper-q2")])
def test_presets_name_every_role_of_q2(name: str) -> None:
    roles = preset(name)
    assert set(roles) == {"qg", "qa", "nli", "spans"}
    labels = roles["nli"].read(ClassifierSettings).labels
    assert labels is not None
    assert set(labels) == {"entailment", "neutral", "contradiction"}
    assert roles["qa"].precision == "int8"


def test_the_preset_of_pmi_knows_the_window() -> None:
    """BLOOM's positions have no end; it was trained on 2,048."""
    assert preset("paper-pmi") == {"lm": RoleOptions("bigscience/bloom-560m", max_tokens=2048)}


def test_overriding_a_role() -> None:
    roles = preset("paper-q2")
    half = override(roles, "qg", precision="fp16", max_tokens=256)
    assert half["qg"].kind == QuestionGeneratorSettings(strip_prefix="question: ")
    assert (half["qg"].precision, half["qg"].max_tokens) == ("fp16", 256)
    assert roles["qg"].precision == "int8", "the preset itself is not changed"
    other = override(roles, "nli", source="my/nli")
    assert other["nli"] == RoleOptions("my/nli", ClassifierSettings()), "the labels were the former checkpoint's"
    kind = ClassifierSettings(labels=("a", "b"))
    assert override(roles, "detector.x", source="d", kind=kind)["detector.x"].kind == kind
    with pytest.raises(ExportError, match=r"no role 'lm'"):
        override(roles, "lm", precision="fp16")


@pytest.mark.parametrize(
    ("role", "kind", "message"),
    [
        (
            "nli",
            EmbedderSettings(layer=2),
            "is EmbedderSettings, but classifier, the kind of 'nli', takes ClassifierSettings;",
        ),
        ("qa", SpansSettings(), "but extractive_qa, the kind of 'qa', has no settings of its own; leave kind out."),
    ],
)
def test_settings_of_another_kind_are_refused(role: str, kind: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=re.escape(message)):
        export_role(role, RoleOptions("missing", kind), tmp_path / "b")


@pytest.mark.parametrize("role", [role for roles in ROLES.values() for role in roles])
def test_every_role_has_one_kind(role: str) -> None:
    kind = find_kind(role.replace("NAME", "mine"))
    assert [name for name, roles in ROLES.items() if role in roles] == [kind.name]


def test_unknown_names() -> None:
    with pytest.raises(ExportError, match=r"Unknown preset 'q3'; presets are paper-q2, paper-q2-small"):
        preset("q3")
    with pytest.raises(ExportError, match=r"Unknown role 'poet'. Roles are qa, qg, nli, detector.NAME, .*embedder"):
        find_kind("poet")
    assert find_kind("critic").name == "token_classifier"
    with pytest.raises(ExportError, match=r"Unknown role 'detector.'"):
        find_kind("detector.")
    with pytest.raises(ExportError, match=r"Unknown precision 'int2'; choose fp32, fp16, fp8, int8 or int4"):
        check_precision("int2")

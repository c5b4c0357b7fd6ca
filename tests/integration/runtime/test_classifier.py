"""Probabilities of exported classifiers against the checkpoints they come from, and the rule over windows."""

from __future__ import annotations

import math
from functools import cache

import msgspec
import numpy as np
import pytest
import torch

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ClassifierRole, Template
from groundwire.runtime.calls import Classified, Classify, Read
from groundwire.runtime.errors import BundleError, TooLong
from groundwire.runtime.models.classifier import Classifier
from groundwire.runtime.ort.session import softmax
from groundwire.runtime.texts.tokenization import TextEncoder, Window
from tests.support import models
from tests.support.zoo import LABELS, PROFILE, Zoo

FAMILIES = list(LABELS)
SENTENCES = list(models.sentences())
LONG = " ".join(SENTENCES)
PAIRS = list(zip(SENTENCES, [*SENTENCES[5:], *SENTENCES[:5]], strict=True))


def role_of(bundle: Bundle, **changes: object) -> ClassifierRole:
    role = bundle.manifest.roles["nli"]
    assert isinstance(role, ClassifierRole)
    return msgspec.structs.replace(role, **changes)


def changed(zoo: Zoo, family: str, **changes: object) -> Classifier:
    """The family's classifier with some fields of its role changed."""
    bundle = zoo.bundle("nli", family)
    return Classifier.load(bundle, role_of(bundle, **changes), PROFILE)


def windows(zoo: Zoo, family: str, first: str, second: str, windowed: int = 0) -> list[Window]:
    bundle = zoo.bundle("nli", family)
    encoder = TextEncoder.load(bundle.file("nli.tokenizer.json"), models.MAX_TOKENS)
    return encoder.encode_windows(first, second, windowed, role_of(bundle).stride)


def probabilities(zoo: Zoo, family: str, window: Window) -> list[float]:
    """The checkpoint's, in the order of its logits."""
    return _probabilities(zoo, family, tuple(window.ids), tuple(window.type_ids))


@cache  # the orders of labels read the same windows
@torch.no_grad()
def _probabilities(zoo: Zoo, family: str, ids: tuple[int, ...], type_ids: tuple[int, ...]) -> list[float]:
    model, _ = zoo.torch("nli", family)
    types = {} if family == "roberta" else {"token_type_ids": torch.tensor([type_ids])}
    return model(input_ids=torch.tensor([ids]), **types).logits[0].double().softmax(-1).tolist()


def classified(outcome: object) -> Classified:
    assert isinstance(outcome, Classified)
    return outcome


@pytest.mark.parametrize("family", FAMILIES)
def test_probabilities_and_labels_are_those_of_the_checkpoint(zoo: Zoo, family: str) -> None:
    model, _ = zoo.torch("nli", family)
    seen = set()
    outcomes = zoo.classifier(family).run([Classify("nli", (premise,), other) for premise, other in PAIRS], 1)
    for (premise, hypothesis), result in zip(PAIRS, map(classified, outcomes), strict=True):
        (window,) = windows(zoo, family, premise, hypothesis)
        expected = probabilities(zoo, family, window)
        assert list(result.probabilities.values()) == pytest.approx(expected, abs=1e-5)
        assert list(result.probabilities) == [model.config.id2label[i] for i in range(3)] == list(LABELS[family])
        assert result.label == model.config.id2label[expected.index(max(expected))]
        assert (result.window, result.read) == (0, Read(1, len(premise), len(premise)))
        seen.add(result.label)
    assert seen == set(LABELS[family])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_order_of_premise_and_hypothesis_counts(zoo: Zoo, family: str) -> None:
    forward, backward = zoo.classifier(family).run([Classify("nli", (a,), b) for a, b in (PAIRS[0], PAIRS[0][::-1])], 1)
    assert classified(forward).probabilities != classified(backward).probabilities


def choose(table: list[list[float]], labels: tuple[str, ...], order: tuple[str, ...]) -> tuple[str, int]:
    """The rule, label by label: the first that any window has as its most probable, where it is most probable."""
    for label in order:
        column = labels.index(label)
        having = [i for i, row in enumerate(table) if row.index(max(row)) == column]
        if having:
            return label, max(having, key=lambda i: table[i][column])
    raise AssertionError("some label is always the most probable")


@pytest.mark.parametrize(
    ("changes", "order"),
    [
        ({}, ("entailment", "contradiction", "neutral")),
        ({"window_order": ("contradiction", "neutral", "entailment")}, ("contradiction", "neutral", "entailment")),
        ({"labels": ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")}, ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")),
        (
            {"labels": ("a", "b", "c"), "window_order": ("c", "a", "b")},
            ("c", "a", "b"),
        ),
    ],
    ids=["inference", "given order", "other labels", "other labels in a given order"],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_windows_are_decided_by_the_documented_rule(
    zoo: Zoo, family: str, changes: dict[str, tuple[str, ...]], order: tuple[str, ...]
) -> None:
    labels = changes.get("labels", LABELS[family])
    calls = [Classify("nli", (SENTENCES[i], LONG[60 * i : 90 * i + 80]), SENTENCES[-i]) for i in range(14)]
    choices = set()
    for call, outcome in zip(calls, changed(zoo, family, **changes).run(calls, 100), strict=True):
        result = classified(outcome)
        table = [
            probabilities(zoo, family, window)
            for premise in call.premises
            for window in windows(zoo, family, premise, call.hypothesis)
        ]
        assert len(table) > 1
        assert (result.label, result.window) == choose(table, labels, order)
        assert list(result.probabilities) == list(labels)
        assert list(result.probabilities.values()) == pytest.approx(table[result.window], abs=1e-5)
        total = sum(map(len, call.premises))
        assert result.read == Read(len(table), total, total)
        choices.add((result.label, result.window > 0))
    assert len(choices) > 1


@pytest.mark.parametrize(
    ("table", "label", "window"),
    [
        ([[0.4, 0.45, 0.15], [0.0, 0.1, 0.9], [0.3, 0.3, 0.4]], "contradiction", 1),
        ([[0.4, 0.45, 0.15], [0.0, 0.1, 0.9], [0.4, 0.3, 0.3], [0.5, 0.2, 0.3]], "entailment", 3),
        ([[0.4, 0.5, 0.1], [0.45, 0.55, 0.0]], "neutral", 1),
        ([[0.2, 0.2, 0.6], [0.2, 0.2, 0.6]], "contradiction", 0),
    ],
)
def test_a_label_counts_where_it_is_the_most_probable(
    zoo: Zoo, table: list[list[float]], label: str, window: int
) -> None:
    """Entailment comes first, but only where it is the most probable label of a window."""
    call, read = Classify("nli", ("some", "passages"), "it"), Read(len(table), 12, 12)
    result = zoo.classifier("albert").choose_label(call, np.array(table), read)
    assert (result.label, result.window) == (label, window)
    assert list(result.probabilities.values()) == table[window]
    assert result.read == read


def test_the_premise_may_be_the_second_text(zoo: Zoo) -> None:
    turned = changed(zoo, "bert", template=Template("{hypothesis}", "{premise}"))
    call = Classify("nli", (LONG,), SENTENCES[0])
    result = classified(turned.run([call], 100)[0])
    table = [probabilities(zoo, "bert", window) for window in windows(zoo, "bert", SENTENCES[0], LONG, windowed=1)]
    assert result.read.windows == len(table) > 5
    assert list(result.probabilities.values()) == pytest.approx(table[result.window], abs=1e-5)


def test_a_template_of_one_text(zoo: Zoo) -> None:
    single = changed(zoo, "bert", template=Template("{hypothesis} because {premise}"))
    model, tokenizer = zoo.torch("nli", "bert")
    with torch.no_grad():
        logits = model(**tokenizer("it is {red} because he said so", return_tensors="pt")).logits[0]
    (result,) = single.run([Classify("nli", ("he said so",), "it is {red}")], 1)
    assert list(classified(result).probabilities.values()) == pytest.approx(logits.softmax(-1).tolist(), abs=1e-5)
    (long,) = single.run([Classify("nli", (LONG,), "it is red")], 100)
    assert isinstance(long, TooLong)


def test_more_windows_than_allowed_is_an_error_of_that_call_alone(zoo: Zoo) -> None:
    long, short = Classify("nli", (SENTENCES[0], LONG), SENTENCES[1]), Classify("nli", (SENTENCES[2],), SENTENCES[1])
    count = 1 + len(windows(zoo, "albert", LONG, SENTENCES[1]))
    classifier = zoo.classifier("albert")
    assert classified(classifier.run([long, short], count)[0]).read.windows == count
    refused, fine = classifier.run([long, short], count - 1)
    assert isinstance(refused, TooLong)
    assert f"more than {count - 1} windows of {models.MAX_TOKENS} tokens" in str(refused)
    assert fine == classifier.run([short], count)[0]


def test_a_hypothesis_that_fills_the_window_is_an_error_of_that_call_alone(zoo: Zoo) -> None:
    calls = [Classify("nli", (LONG,), LONG), Classify("nli", (SENTENCES[0],), SENTENCES[1])]
    refused, fine = zoo.classifier("bert").run(calls, 400)
    assert isinstance(refused, TooLong)
    classified(fine)


def test_a_window_order_of_unknown_labels_is_refused(zoo: Zoo) -> None:
    with pytest.raises(BundleError, match=r"window_order .*'yes'.* names labels that the role lacks"):
        changed(zoo, "bert", window_order=("yes", "neutral"))


def test_softmax_of_large_logits() -> None:
    rows = softmax(np.array([[1000.0, 999.0], [-1000.0, -1000.0]], dtype=np.float32))
    share = 1 / (1 + math.exp(-1))
    assert rows.tolist() == [pytest.approx([share, 1 - share]), [0.5, 0.5]]

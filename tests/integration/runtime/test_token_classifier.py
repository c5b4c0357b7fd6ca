"""Labels of exported token classifiers against the checkpoints they come from, and the rule over windows."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
import torch

from groundwire.runtime.bundles.manifest import Template, TokenClassifierRole
from groundwire.runtime.calls import ClassifiedTokens, ClassifyTokens, Read
from groundwire.runtime.errors import BundleError, ModelError, TooLong
from groundwire.runtime.models.classifier import TokenClassifier
from groundwire.runtime.texts.tokenization import Window
from tests.support import models
from tests.support.zoo import PROFILE, Zoo

FAMILIES = list(models.TOKEN_CLASSIFIERS)
SENTENCES = list(models.sentences())
PAIRS = list(zip(SENTENCES, [*SENTENCES[5:], *SENTENCES[:5]], strict=True))
LONG = " ".join(SENTENCES)


def classified(outcome: object) -> ClassifiedTokens:
    assert isinstance(outcome, ClassifiedTokens)
    return outcome


def role_of(zoo: Zoo, family: str) -> TokenClassifierRole:
    role = zoo.bundle("token_classifier", family).manifest.roles["token_classifier"]
    assert isinstance(role, TokenClassifierRole)
    return role


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_probabilities_are_those_of_the_checkpoint(zoo: Zoo, family: str) -> None:
    model, tokenizer = zoo.torch("token_classifier", family)
    calls = [ClassifyTokens("token_classifier", (premise,), text) for premise, text in PAIRS]
    decisions = set()
    for (premise, text), result in zip(PAIRS, map(classified, zoo.token_classifier(family).run(calls, 1)), strict=True):
        inputs = tokenizer(premise, text, return_tensors="pt", return_offsets_mapping=True)
        offsets = inputs.pop("offset_mapping")[0].tolist()
        if family == "modernbert":  # its tokenizer is loaded without the model's list of inputs
            inputs.pop("token_type_ids")
        positions = [i for i, sequence in enumerate(inputs.sequence_ids()) if sequence == 1]
        expected = model(**inputs).logits[0].double().softmax(-1)[positions]
        assert [(token.start, token.end) for token in result.tokens] == [tuple(offsets[i]) for i in positions]
        probabilities = np.array([token.probabilities for token in result.tokens])
        assert probabilities == pytest.approx(expected.numpy(), abs=1e-5)
        decisions |= set(probabilities.argmax(1).tolist())
    assert decisions == {0, 1}, "both labels must occur"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_labels_do_not_depend_on_the_batch(zoo: Zoo, family: str, precision: str) -> None:
    model = zoo.token_classifier(family, precision)
    calls = [ClassifyTokens("token_classifier", (premise,), text) for premise, text in PAIRS[:24]]
    together = model.run(calls, 1)
    for call, result in zip(calls, map(classified, together), strict=True):
        (alone,) = model.run([call], 1)
        for token, other in zip(result.tokens, classified(alone).tokens, strict=True):
            assert token.probabilities == pytest.approx(other.probabilities, abs=1e-6)


def test_long_knowledge_is_read_in_windows(zoo: Zoo) -> None:
    (result,) = map(
        classified,
        zoo.token_classifier("bert").run([ClassifyTokens("token_classifier", (LONG, "short"), SENTENCES[0])], 64),
    )
    assert result.read.windows > 2
    assert result.read.characters == result.read.total == len(LONG) + len("short")
    (error,) = zoo.token_classifier("bert").run([ClassifyTokens("token_classifier", (LONG,), SENTENCES[0])], 1)
    assert isinstance(error, TooLong)


def test_the_window_that_supports_a_token_most_decides_it(zoo: Zoo) -> None:
    window = Window(
        [1, 7, 2, 8, 9, 2], [0] * 6, [None, 0, None, 1, 1, None], [(0, 0), (0, 1), (0, 0), (0, 2), (3, 5), (0, 0)]
    )
    tables = [np.array([[0.5, 0.5]] * 3 + [[a, 1 - a], [b, 1 - b]] + [[0.5, 0.5]]) for a, b in ((0.9, 0.2), (0.3, 0.4))]
    call = ClassifyTokens("token_classifier", ("x", "y"), "ab cd")
    result = classified(
        zoo.token_classifier("bert").choose_labels(call, [(window, table) for table in tables], Read(2, 2, 2))
    )
    assert [token.probabilities[0] for token in result.tokens] == [0.9, 0.4]
    assert result.read == Read(2, 2, 2)


def test_a_broken_graph_is_an_error(zoo: Zoo) -> None:
    window = Window([1, 8, 2], [0] * 3, [None, 1, None], [(0, 0), (0, 2), (0, 0)])
    broken = zoo.token_classifier("bert").choose_labels(
        ClassifyTokens("token_classifier", ("x",), "ab"), [(window, np.full((3, 2), np.nan))], Read(1, 1, 1)
    )
    assert isinstance(broken, ModelError)


def test_a_template_or_label_that_does_not_fit_is_refused(zoo: Zoo) -> None:
    bundle, role = zoo.bundle("token_classifier", "bert"), role_of(zoo, "bert")
    with pytest.raises(BundleError, match="supported"):
        TokenClassifier.load(bundle, msgspec.structs.replace(role, supported="fine"), PROFILE)
    odd = TokenClassifier.load(
        bundle, msgspec.structs.replace(role, template=Template("{premise}", "so: {hypothesis}")), PROFILE
    )
    (error,) = odd.run([ClassifyTokens("token_classifier", ("a",), "b")], 1)
    assert isinstance(error, BundleError)

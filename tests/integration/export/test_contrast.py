"""PMI-Decode's rule in the step graph, on given logits, against the formula token by token."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import pytest

from groundwire.export.roles.generation.contrast import FLOOR, NUCLEUS, add_contrast
from groundwire.export.session import CpuSession
from tests.reference.pmi_decode import contrast

Array = npt.NDArray[Any]
VOCABULARY = 2 * NUCLEUS
ALPHAS, MASSES = (0.0, 0.25, 0.5, 1.0), (0.05, 0.6, 0.75, 0.9, 1.0)
NONE = -np.inf
PEAKED = [0.5, 0.3, 0.15, 0.05]


def rule(vocabulary: int) -> CpuSession:
    """A graph of nothing but the rule."""
    given = ir.Value(name="given", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["n", "k", vocabulary]))
    node = ir.node("Identity", [given])
    logits = node.outputs[0]
    logits.type, logits.shape = given.type, given.shape
    graph = ir.Graph([given], [logits], nodes=[node], opset_imports={"": 20}, name="rule")
    return CpuSession(add_contrast(ir.Model(graph, ir_version=10), vocabulary))


@pytest.fixture(scope="module")
def large() -> CpuSession:
    return rule(VOCABULARY)


@pytest.fixture(scope="module")
def small() -> CpuSession:
    return rule(4)


def score_tokens(
    session: CpuSession, contexts: list[Array], alpha: list[float], top_p: list[float], banned: Array | None = None
) -> dict[str, Array]:
    """The graph's outputs in the order of the vocabulary, [B, K, V] each; ``contexts`` are logits [B, K, V]."""
    sources, beams, vocabulary = contexts[0].shape
    outputs = session(
        {
            "given": np.concatenate(contexts).astype(np.float32),
            "count": np.array([vocabulary]),
            "alpha": np.array(alpha, np.float32),
            "top_p": np.array(top_p, np.float32),
            "banned": np.full((sources, beams, 1), -1) if banned is None else banned,
        }
    )
    order = np.argsort(outputs["candidates"], axis=-1)
    ordered = np.sort(outputs["scores"], axis=-1)[..., ::-1]
    assert np.array_equal(ordered, outputs["scores"]) or np.isnan(outputs["scores"]).any()
    return {name: np.take_along_axis(outputs[name], order, axis=-1) for name in ("scores", "log_probs", "cpmi")}


def log_softmax(logits: Array) -> Array:
    peak = logits.max(-1, keepdims=True)
    result: Array = logits - peak - np.log(np.exp(logits - peak).sum(-1, keepdims=True))
    return result


@pytest.mark.parametrize("spread", [0.5, 3.0], ids=["flat", "peaked"])
def test_the_formula(large: CpuSession, spread: float) -> None:
    """Flat logits have top-p sets beyond the first few hundred tokens, peaked ones within."""
    rng = np.random.default_rng(3)
    pairs = [(alpha, mass) for alpha in ALPHAS for mass in MASSES]
    given, alone = (spread * rng.standard_normal((len(pairs), 2, VOCABULARY)) for _ in range(2))
    given[:, 0, :40] = alone[:, 0, 20:60] = NONE  # some ruled out by one, some by both
    alone[:, :, 40:60] = 0.0
    outputs = score_tokens(large, [given, alone], *map(list, zip(*pairs, strict=True)))
    a, b = log_softmax(given), log_softmax(alone)
    assert not any(np.isnan(values).any() for values in outputs.values())
    for row, (alpha, mass) in enumerate(pairs):
        for beam in range(2):
            want = contrast(a[row, beam].tolist(), b[row, beam].tolist(), alpha, mass)
            np.testing.assert_allclose(outputs["scores"][row, beam], want, atol=2e-4)
    np.testing.assert_allclose(outputs["log_probs"], a, atol=2e-5)
    kept = np.isfinite(outputs["scores"]).sum(-1)
    assert kept.min() >= 1
    assert (kept > NUCLEUS).any()
    assert (kept < NUCLEUS).any()


def test_plain_decoding_is_exact(large: CpuSession) -> None:
    """alpha 0 and top_p 1: the same numbers with one context, and whatever a second one says."""
    rng = np.random.default_rng(4)
    given, alone = rng.standard_normal((2, 3, 2, VOCABULARY))
    alone[0, 0, 0] = NONE
    single = score_tokens(large, [given], [0.0] * 3, [1.0] * 3)
    double = score_tokens(large, [given, alone], [0.0] * 3, [1.0] * 3)
    assert np.array_equal(single["scores"], single["log_probs"])
    assert np.array_equal(single["scores"], double["scores"])


@pytest.mark.parametrize(
    ("given", "alone", "alpha", "top_p", "scores", "cpmi"),
    [
        # Ruled out by both contexts: out, and the difference is -inf, not NaN.
        ([0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], 0.0, 1.0, [-0.6931, -0.6931, NONE, NONE], [0, 0, NONE, NONE]),
        ([0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], 1.0, 1.0, [0, 0, NONE, NONE], [0, 0, NONE, NONE]),
        # Ruled out with the knowledge alone: out too.
        ([0.5, 0.5, 0.0, 0.0], [0.25] * 4, 1.0, 1.0, [0.6931, 0.6931, NONE, NONE], [0.6931, 0.6931, NONE, NONE]),
        # Ruled out without the knowledge alone: as if it had the least log-probability there.
        ([0.25] * 4, [0.5, 0.5, 0.0, 0.0], 1.0, 1.0, [-0.6931, -0.6931, -FLOOR, -FLOOR], [-0.6931] * 2 + [-FLOOR] * 2),
        ([0.25] * 4, [0.5, 0.5, 0.0, 0.0], 0.0, 1.0, [-1.3863] * 4, [-0.6931] * 2 + [-FLOOR] * 2),
        # The set ends with the token that reaches top_p; the first token is always inside.
        (PEAKED, [0.25] * 4, 0.0, 0.6, [-0.6931, -1.2040, NONE, NONE], [0.6931, 0.1823, -0.5108, -1.6094]),
        (PEAKED, [0.25] * 4, 0.0, 0.01, [-0.6931, NONE, NONE, NONE], [0.6931, 0.1823, -0.5108, -1.6094]),
        # Tokens as probable as the last one inside are inside.
        ([0.4, 0.2, 0.2, 0.2], [0.25] * 4, 0.0, 0.5, [-0.9163] + [-1.6094] * 3, [0.47] + [-0.2231] * 3),
    ],
)  # fmt: skip
def test_by_hand(
    small: CpuSession,
    given: list[float],
    alone: list[float],
    alpha: float,
    top_p: float,
    scores: list[float],
    cpmi: list[float],
) -> None:
    with np.errstate(divide="ignore"):
        logits = [np.log(np.array([[row]])) for row in (given, alone)]
    outputs = score_tokens(small, logits, [alpha], [top_p])
    # FLOOR leaves only a few exact decimals.
    np.testing.assert_allclose(outputs["scores"][0, 0], scores, atol=1e-3, rtol=1e-4)
    np.testing.assert_allclose(outputs["cpmi"][0, 0], cpmi, atol=1e-3, rtol=1e-4)


def test_banned_tokens_leave_room_for_others(small: CpuSession) -> None:
    """What is banned is out before the top-p set is taken, so that something is left."""
    given = np.log(np.array([[[0.7, 0.2, 0.07, 0.03], [0.7, 0.2, 0.07, 0.03]]]))
    banned = np.array([[[0, -1], [0, 1]]])
    outputs = score_tokens(small, [given, np.zeros_like(given)], [0.0], [0.6], banned)
    assert np.isfinite(outputs["scores"][0]).tolist() == [[False, True, False, False], [False, False, True, False]]
    assert outputs["scores"][0, 0, 1] == pytest.approx(np.log(0.2), abs=1e-5)  # not made up for


@pytest.mark.parametrize("context", [0, 1])
def test_what_is_not_a_number_is_seen(small: CpuSession, context: int) -> None:
    """Whatever the tokens that are looked at, one of their numbers is NaN or above all."""
    logits = [np.zeros((2, 1, 4)), np.zeros((2, 1, 4))]
    logits[context][0, 0, 2] = np.nan
    outputs = score_tokens(small, logits, [0.25, 0.25], [0.6, 0.6])
    seen = np.isnan(outputs["scores"][0]) | np.isnan(outputs["cpmi"][0]) | (outputs["scores"][0] == np.inf)
    assert seen.all()
    assert all(np.isfinite(values[1]).all() for values in outputs.values())


def test_sources_do_not_see_each_other(large: CpuSession) -> None:
    """One of them needs the whole vocabulary sorted, the other does not: the same numbers together and alone."""
    rng = np.random.default_rng(5)
    given, alone = rng.standard_normal((2, 2, 3, VOCABULARY))
    given[1] *= 6.0
    together = score_tokens(large, [given, alone], [0.25, 0.5], [0.9, 0.6])
    for row, (alpha, mass) in enumerate(((0.25, 0.9), (0.5, 0.6))):
        alone_outputs = score_tokens(large, [given[row : row + 1], alone[row : row + 1]], [alpha], [mass])
        assert all(np.array_equal(alone_outputs[name][0], together[name][row]) for name in alone_outputs)

"""The fit behind a verdict: weights of the right sign, rates that unseen rows have, thresholds worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

pytest.importorskip("sklearn")

from groundwire.engine.schema.results import MetricResult
from groundwire.engine.verdict.decision import calibrated, decide
from groundwire.evaluate.calibration import fusion
from groundwire.evaluate.calibration.fusion import Choice, Example, calibrate, fit, profiles
from groundwire.runtime.errors import InvalidRequest


def rows(count: int = 400, seed: int = 0, name: str = "one", **noise: float) -> list[Example]:
    """Rows whose numbers are the label and noise; ``noise`` gives each number's spread, negative ones turn it round."""
    rng = np.random.default_rng(seed)
    out = []
    for index in range(count):
        label = index % 2
        numbers = {
            key: float((label if spread > 0 else -label) + abs(spread) * rng.normal()) for key, spread in noise.items()
        }
        out.append(Example(name, f"g{index // 4}", label, numbers))
    return out


def test_without_bounds_and_penalty_at_work_it_is_logistic_regression() -> None:
    examples = rows(q2=0.8, pmi=1.2)
    x = np.array([list(example.numbers.values()) for example in examples])
    x = (x - x.mean(0)) / x.std(0)
    y = np.array([example.label for example in examples])
    peer = LogisticRegression(C=np.inf, tol=1e-8).fit(x, y)
    found = fit(examples, ("q2", "pmi"), 0.0)
    assert found.weight == pytest.approx(peer.coef_[0], abs=2e-3)
    assert found.intercept == pytest.approx(peer.intercept_[0], abs=2e-3)


def test_of_equal_weights_those_that_every_row_has_are_needed() -> None:
    """A metric that now and then has nothing to say must not leave every such response without a verdict."""
    examples = [
        one._replace(numbers={k: v for k, v in one.numbers.items() if k != "q2" or index % 10})
        for index, one in enumerate(rows(q2=1.0, pmi=1.0, overlap_precision=1.0))
    ]
    found = calibrate(examples, ("q2", "pmi", "overlap_precision"), Choice(penalties=(1000.0,)))
    assert {one.name: one.needed for one in found.features} == {"pmi": True, "overlap_precision": True, "q2": False}


def test_a_penalty_draws_the_weights_to_one_another() -> None:
    """With their own sign each, and to the weight that one number in place of all would have."""
    examples = [
        Example(one.set, one.group, one.label, {"q2": one.numbers["q2"], "q2.no_answer": one.numbers["no"]})
        for one in rows(q2=0.5, no=-1.5)
    ]
    apart = [np.ptp(np.abs(fit(examples, ("q2", "q2.no_answer"), penalty).weight)) for penalty in (0, 0.1, 1, 1000)]
    assert apart == sorted(apart, reverse=True)
    assert apart[0] > 1
    assert apart[-1] < 0.01
    equal = fit(examples, ("q2", "q2.no_answer"), 1e4)
    assert equal.weight[0] > 0 > equal.weight[1]
    summed = [
        Example(one.set, one.group, one.label, {"sum": float(margin)})
        for one, margin in zip(examples, equal.margins([one.numbers for one in examples]), strict=True)
    ]
    alone = fit(summed, ("sum",), 0.0)
    # Its standardized sum wants to be as large as it is.
    assert alone.weight[0] / alone.deviation[0] == pytest.approx(1.0, abs=0.02)


def test_a_number_on_the_wrong_side_counts_nothing() -> None:
    found = fit(rows(q2=0.8, pmi=-0.5), ("q2", "pmi"), 0.01)
    assert found.weight[1] == 0
    assert found.weight[0] > 0.5
    turned = rows(**{"q2": 0.8, "q2.no_answer": -0.5})
    assert fit(turned, ("q2", "q2.no_answer"), 0.01).weight[1] < -0.5


def test_a_missing_number_counts_as_its_mean() -> None:
    model = fit(rows(q2=0.8, pmi=1.2), ("q2", "pmi"), 0.01)
    whole, part = model.probabilities([{"q2": 0.7, "pmi": float(model.mean[1])}, {"q2": 0.7}])
    assert part == pytest.approx(whole)


def test_every_set_and_class_counts_the_same() -> None:
    few, many = rows(40, 1, "few", q2=0.5), rows(400, 2, "many", q2=0.5)
    weights = fusion._weights([*few, *many[:200]])
    assert weights[:40].sum() == pytest.approx(weights[40:].sum()) == pytest.approx(0.5)


def test_the_calibration_says_what_the_fit_says() -> None:
    examples = [*rows(200, 1, "a", q2=0.6, pmi=1.0, **{"nli.worst": 0.9}), *rows(200, 2, "b", q2=0.7, pmi=0.9)]
    found = calibrate(examples, ("q2", "pmi", "verifiability"))
    assert found.fitted_on == ("a", "b")
    assert found.metrics == ("q2", "pmi", "verifiability")
    # Half of the rows lack it, so it is not read.
    assert {feature.name for feature in found.features} == {"q2", "pmi"}
    # The weightier of the two has half of the weight.
    assert [feature.needed for feature in found.features] == [True, False]
    model, _ = fusion.choose(examples, Choice())
    row = examples[3].numbers
    verdict = decide({n: MetricResult(n, "scored", row[n]) for n in ("q2", "pmi")}, found, "balanced")
    assert verdict.probability == pytest.approx(float(model.probabilities([row])[0]), abs=1e-4)


def test_the_stated_rates_are_those_of_unseen_rows() -> None:
    fitted = calibrate(rows(2000, 3, q2=0.7, pmi=1.1), ("q2", "pmi"))
    fresh = rows(4000, 4, q2=0.7, pmi=1.1)
    for name, point in fitted.profiles.items():
        verdicts = [
            decide({n: MetricResult(n, "scored", v) for n, v in e.numbers.items()}, fitted, name).label for e in fresh
        ]
        alarms = np.mean([v == "inconsistent" for v, e in zip(verdicts, fresh, strict=True) if e.label == 1])
        misses = np.mean([v == "consistent" for v, e in zip(verdicts, fresh, strict=True) if e.label == 0])
        assert alarms == pytest.approx(point.false_positive_rate, abs=0.05)
        assert misses == pytest.approx(point.false_negative_rate, abs=0.05)
    points = fitted.profiles
    assert points["lenient"].threshold <= points["balanced"].threshold <= points["strict"].threshold
    assert points["strict"].false_negative_rate <= 0.1
    assert points["lenient"].false_positive_rate <= 0.05


def test_profiles_by_hand() -> None:
    probabilities = np.array([0.1, 0.2, 0.4, 0.6, 0.7, 0.9])
    labels = np.array([0.0, 0.0, 1.0, 0.0, 1.0, 1.0])
    found = profiles(probabilities, labels, np.full(6, 1 / 6))
    # Between 0.2 and 0.4 one of three wrong ones is missed; from 0.65 on one of three right ones is an alarm.
    assert found["balanced"].threshold == pytest.approx(0.3)
    assert (found["balanced"].false_negative_rate, found["balanced"].false_positive_rate) == (
        pytest.approx(1 / 3, abs=1e-4),
        0,
    )
    assert found["strict"].threshold == pytest.approx(0.65)
    assert (found["strict"].false_negative_rate, found["strict"].false_positive_rate) == (
        0,
        pytest.approx(1 / 3, abs=1e-4),
    )
    assert found["lenient"].threshold == pytest.approx(0.3)


def test_a_scale_has_the_bounds_and_the_best_threshold_of_its_set() -> None:
    examples = [Example("one", str(i), int(i >= 30), {"pmi": i - 20.0}) for i in range(60)]
    scale = calibrate(examples, ("pmi",)).scales["pmi"]
    assert (scale.low, scale.high) == (-20, 39)
    assert scale.threshold == pytest.approx(30 / 59)


def test_a_scale_rises_and_ranks_as_the_metric_does() -> None:
    examples = rows(600, 5, pmi=1.0)
    scale = calibrate(examples, ("pmi",)).scales["pmi"]
    assert len(scale.knots) <= fusion.KNOTS
    assert all(a[0] < b[0] and a[1] <= b[1] for a, b in zip(scale.knots, scale.knots[1:], strict=False))
    values = [example.numbers["pmi"] for example in examples]
    labels = [example.label for example in examples]
    assert roc_auc_score(labels, [calibrated(value, scale) for value in values]) > roc_auc_score(labels, values) - 0.02


def test_a_set_left_out_is_ranked_by_what_the_others_teach() -> None:
    examples = [*rows(200, 1, "a1", q2=0.8, token_classifier=0.4), *rows(200, 2, "a2", q2=0.8, token_classifier=-0.4)]
    examples += rows(200, 3, "b", q2=0.8, token_classifier=0.1)
    scorers = fusion.leave_one_out(examples, {"a1": "a", "a2": "a", "b": "b"})
    assert set(scorers) == {"a1", "a2", "b"}
    only_b = scorers["a2"]([{"q2": 0.5, "token_classifier": 0.0}, {"q2": 0.5, "token_classifier": 1.0}])
    assert only_b[1] > only_b[0]


@pytest.mark.parametrize("examples", [[], rows(30, q2=0.5), [e for e in rows(200, q2=0.5) if e.label]])
def test_too_few_rows_are_refused(examples: list[Example]) -> None:
    with pytest.raises(InvalidRequest, match="at least 20 of each"):
        calibrate(examples, ("q2",))


def test_rows_without_numbers_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="No metric scored"):
        calibrate([example._replace(numbers={}) for example in rows(q2=0.5)], ("q2",))


def test_the_size_of_the_weights_is_fitted_anew() -> None:
    examples = rows(600, 6, q2=0.8, pmi=1.0)
    loose, tight = (fusion.scaled(fit(examples, ("q2", "pmi"), p), examples) for p in (0.0, 10.0))
    numbers = [example.numbers for example in examples]
    assert tight.probabilities(numbers) == pytest.approx(loose.probabilities(numbers), abs=0.15)
    # Calibrated: in the middle of a class's share, whatever the penalty.
    for model in (loose, tight):
        assert model.probabilities(numbers).mean() == pytest.approx(0.5, abs=0.01)
        high = model.probabilities(numbers) > 0.8
        assert np.mean([e.label for e, h in zip(examples, high, strict=True) if h]) > 0.8


def test_numbers_that_knowledge_left_out_lowers_are_not_read_unasked() -> None:
    examples = rows(200, 7, q2=0.8, rouge_l=0.3)
    assert fusion.readable(examples) == ("q2",)
    assert fusion.readable(rows(200, 7, rouge_l=0.3)) == ("rouge_l",)
    asked = calibrate(examples, ("q2", "rouge_l"), Choice(features=("q2", "rouge_l")))
    assert {feature.name for feature in asked.features} == {"q2", "rouge_l"}

"""The fit of a verdict: weights of the right sign, rates on unseen examples, thresholds computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

pytest.importorskip("sklearn")

from groundwire.engine.schema.results import MetricResult
from groundwire.evaluate.calibration import fusion
from groundwire.evaluate.calibration.fusion import FusionOptions, LabelledFeatures, fit_model, smooth_labels
from groundwire.evaluate.calibration.operating_points import fit_calibration
from groundwire.evaluate.calibration.profiles import keep_order_statistics
from groundwire.runtime.bundles.calibration import OrderStatistics
from groundwire.runtime.errors import InvalidRequest
from tests.support.labelled import draw_examples, with_features
from tests.support.verdicts import decide


def test_without_bounds_and_penalty_at_work_it_is_logistic_regression() -> None:
    examples = draw_examples(q2=0.8, pmi=1.2)
    x = np.array([list(example.features.values()) for example in examples])
    x = (x - x.mean(0)) / x.std(0)
    # 200 of 200 examples of a class count as 201 of 202: each example is there with both labels.
    targets = smooth_labels(np.array([float(example.label) for example in examples]))
    assert sorted(set(targets)) == pytest.approx([1 / 202, 201 / 202])
    both, weights = np.repeat([1, 0], len(examples)), np.concatenate([targets, 1 - targets])
    peer = LogisticRegression(C=np.inf, tol=1e-8).fit(np.concatenate([x, x]), both, weights)
    model = fit_model(examples, ("q2", "pmi"), 0.0)
    assert model.weight == pytest.approx(peer.coef_[0], abs=2e-3)
    assert model.intercept == pytest.approx(peer.intercept_[0], abs=2e-3)


def test_of_equal_weights_those_that_every_example_has_are_needed() -> None:
    """A metric that sometimes has no value must not leave every such response without a verdict."""
    examples = [
        with_features(example, {k: v for k, v in example.features.items() if k != "q2" or index % 10})
        for index, example in enumerate(draw_examples(q2=1.0, pmi=1.0, overlap_precision=1.0))
    ]
    calibration = fit_calibration(examples, ("q2", "pmi", "overlap_precision"), FusionOptions(penalties=(1000.0,)))
    assert {example.name: example.needed for example in calibration.fusions[0].features} == {
        "pmi": True,
        "overlap_precision": True,
        "q2": False,
    }


def test_a_penalty_draws_the_weights_to_one_another() -> None:
    """With their own sign each, and to the weight that one feature in place of all would have."""
    examples = [
        LabelledFeatures(
            example.set,
            example.group,
            example.label,
            {"q2": example.features["q2"], "q2.no_answer": example.features["no"]},
        )
        for example in draw_examples(q2=0.5, no=-1.5)
    ]
    distances = [
        np.ptp(np.abs(fit_model(examples, ("q2", "q2.no_answer"), penalty).weight)) for penalty in (0, 0.1, 1, 1000)
    ]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 1
    assert distances[-1] < 0.01
    equal = fit_model(examples, ("q2", "q2.no_answer"), 1e4)
    assert equal.weight[0] > 0 > equal.weight[1]
    summed = [
        LabelledFeatures(example.set, example.group, example.label, {"sum": float(margin)})
        for example, margin in zip(
            examples, equal.predict_logits([example.features for example in examples]), strict=True
        )
    ]
    alone = fit_model(summed, ("sum",), 0.0)
    # Its standardized sum wants to be as large as it is.
    assert alone.weight[0] / alone.deviation[0] == pytest.approx(1.0, abs=0.02)


def test_a_feature_on_the_wrong_side_counts_nothing() -> None:
    model = fit_model(draw_examples(q2=0.8, pmi=-0.5), ("q2", "pmi"), 0.01)
    assert model.weight[1] == 0
    assert model.weight[0] > 0.5
    turned = draw_examples(**{"q2": 0.8, "q2.no_answer": -0.5})
    assert fit_model(turned, ("q2", "q2.no_answer"), 0.01).weight[1] < -0.5


def test_a_missing_feature_counts_as_its_mean() -> None:
    model = fit_model(draw_examples(q2=0.8, pmi=1.2), ("q2", "pmi"), 0.01)
    whole, part = model.predict_probabilities([{"q2": 0.7, "pmi": float(model.mean[1])}, {"q2": 0.7}])
    assert part == pytest.approx(whole)


def test_every_set_and_class_counts_the_same() -> None:
    few, many = draw_examples(40, 1, "few", q2=0.5), draw_examples(400, 2, "many", q2=0.5)
    weights = fusion.weigh_examples([*few, *many[:200]])
    assert weights[:40].sum() == pytest.approx(weights[40:].sum()) == pytest.approx(0.5)


def test_the_calibration_says_what_the_fit_says() -> None:
    examples = [
        *draw_examples(200, 1, "a", q2=0.6, pmi=1.0, **{"nli.worst": 0.9}),
        *draw_examples(200, 2, "b", q2=0.7, pmi=0.9),
    ]
    calibration = fit_calibration(examples, ("q2", "pmi", "verifiability"))
    assert calibration.fitted_on == ("a", "b")
    assert calibration.metrics == ("q2", "pmi", "verifiability")
    # Half of the examples lack it, so it is not read.
    assert {feature.name for feature in calibration.fusions[0].features} == {"q2", "pmi"}
    # The weightier of the two has half of the weight.
    assert [feature.needed for feature in calibration.fusions[0].features] == [True, False]
    model, _ = fusion.select_model(examples, FusionOptions())
    example = examples[3].features
    verdict = decide({n: MetricResult(n, "scored", example[n]) for n in ("q2", "pmi")}, calibration, "balanced")
    assert verdict.probability == pytest.approx(float(model.predict_probabilities([example])[0]), abs=1e-4)


@pytest.mark.no_cover
def test_the_stated_rates_are_those_of_unseen_examples() -> None:
    fitted = fit_calibration(draw_examples(2000, 3, q2=0.7, pmi=1.1), ("q2", "pmi"))
    fresh = draw_examples(2000, 4, q2=0.7, pmi=1.1)
    for name, point in fitted.fusions[0].profiles.items():
        verdicts = [
            decide({n: MetricResult(n, "scored", v) for n, v in e.features.items()}, fitted, name).label for e in fresh
        ]
        false_positive_rate = np.mean(
            [v == "inconsistent" for v, e in zip(verdicts, fresh, strict=True) if e.label == 1]
        )
        false_negative_rate = np.mean([v == "consistent" for v, e in zip(verdicts, fresh, strict=True) if e.label == 0])
        assert false_positive_rate == pytest.approx(point.false_positive_rate, abs=0.05)
        assert false_negative_rate == pytest.approx(point.false_negative_rate, abs=0.05)
    points = fitted.fusions[0].profiles
    assert points["lenient"].threshold < points["balanced"].threshold
    assert [points[name].max_false_positive_rate for name in ("balanced", "lenient", "strict")] == [None, 0.05, None]
    assert points["strict"].false_negative_rate <= 0.16
    assert {point.sets for point in points.values()} == {1}


def test_order_statistics_are_thinned_by_rank_and_rounded_down() -> None:
    assert keep_order_statistics(np.array([0.3, 0.12345678, 0.2])) == OrderStatistics(
        count=3, values=(0.123456, 0.2, 0.3)
    )
    assert keep_order_statistics(np.array([])) == OrderStatistics(count=0, values=())
    many = np.random.default_rng(0).permutation(np.arange(1, 2501)) / 2500
    kept = keep_order_statistics(many)
    assert (kept.count, len(kept.values)) == (2500, 1000)
    assert kept.values[:3] == (2 / 2500, 5 / 2500, 7 / 2500)
    assert kept.values[-1] == 1


def test_the_record_is_of_examples_that_get_a_verdict() -> None:
    """An example without a needed feature has no probability, so it says nothing about those that have one."""
    examples = draw_examples(200, 1, q2=0.6, pmi=1.0)
    lacking = [
        with_features(example, {"pmi": example.features["pmi"]}) if index % 4 == 1 else example
        for index, example in enumerate(examples)
    ]
    fusion_of = fit_calibration(lacking, ("q2", "pmi"), FusionOptions(needed=("q2",))).fusions[0]
    assert fusion_of.held_out is not None
    assert (fusion_of.held_out.consistent.count, fusion_of.held_out.inconsistent.count) == (50, 100)


def keep_features(example: LabelledFeatures, names: tuple[str, ...]) -> LabelledFeatures:
    return with_features(example, {name: example.features[name] for name in names if name in example.features})


def test_fast_metrics_have_a_fusion_of_their_own() -> None:
    examples = draw_examples(400, 1, q2=0.5, token_classifier=0.9, overlap_precision=0.9)
    metrics = ("q2", "token_classifier", "overlap_precision", "verifiability")
    calibration = fit_calibration(examples, metrics)
    full, fast = calibration.fusions
    assert (full.name, full.metrics) == ("full", metrics)
    assert (fast.name, fast.metrics) == ("fast", metrics[1:])
    assert calibration.metrics == metrics
    results = {name: MetricResult(name, "scored", 0.9) for name in metrics}
    assert decide(results, calibration, "balanced").fusion == "full"
    del results["q2"]
    verdict = decide(results, calibration, "balanced")
    assert (verdict.fusion, verdict.absent) == ("fast", ())
    assert verdict.threshold == fast.profiles["balanced"].threshold
    # Nothing but fast metrics, or none of them: one fusion.
    for names in (metrics[1:], ("q2",)):
        left = [keep_features(example, names) for example in examples]
        assert [fusion.name for fusion in fit_calibration(left, names).fusions] == ["full"]


@pytest.mark.no_cover
def test_the_promise_holds_for_fits_on_many_draws() -> None:
    """Thresholds are drawn from folds, and used with the fit on all of them: that this changes little is measured."""
    options = FusionOptions(penalties=(1.0,))
    rates = []
    for seed in range(40):
        fusion_of = fit_calibration(draw_examples(80, seed, q2=0.8, pmi=1.2), ("q2", "pmi"), options).fusions[0]
        fresh = [example for example in draw_examples(400, 1000 + seed, q2=0.8, pmi=1.2) if example.label]
        logits = np.array(
            [sum(f.weight * (e.features[f.name] - f.mean) / f.deviation for f in fusion_of.features) for e in fresh]
        )
        probabilities = 1 / (1 + np.exp(-logits - fusion_of.intercept))
        rates.append((probabilities < fusion_of.profiles["lenient"].threshold).mean())
    spread = np.std(rates) / np.sqrt(len(rates))
    assert 0.05 - 1 / 41 - 3 * spread <= np.mean(rates) <= 0.05 + 3 * spread


def test_a_scale_has_the_bounds_and_the_best_threshold_of_its_set() -> None:
    examples = [LabelledFeatures("one", str(i), int(i >= 30), {"pmi": i - 20.0}) for i in range(60)]
    scale = fit_calibration(examples, ("pmi",)).scales["pmi"]
    assert (scale.low, scale.high) == (-20, 39)
    assert scale.threshold == pytest.approx(30 / 59)


def test_a_set_left_out_is_ranked_by_what_the_others_teach() -> None:
    examples = [
        *draw_examples(200, 1, "a1", q2=0.8, token_classifier=0.4),
        *draw_examples(200, 2, "a2", q2=0.8, token_classifier=-0.4),
    ]
    examples += draw_examples(200, 3, "b", q2=0.8, token_classifier=0.1)
    predictors = fusion.leave_one_out(examples, {"a1": "a", "a2": "a", "b": "b"})
    assert set(predictors) == {"a1", "a2", "b"}
    tests = [LabelledFeatures("a2", "g", 1, {"q2": 0.5, "token_classifier": value}) for value in (0.0, 1.0)]
    only_b = predictors["a2"](tests)
    assert only_b[1] > only_b[0]


@pytest.mark.parametrize(
    "examples", [[], draw_examples(30, q2=0.5), [e for e in draw_examples(200, q2=0.5) if e.label]]
)
def test_too_few_examples_are_refused(examples: list[LabelledFeatures]) -> None:
    with pytest.raises(InvalidRequest, match=r"at least 20 of each\. Label \d+ more consistent and \d+ more"):
        fit_calibration(examples, ("q2",))


def test_rows_without_numbers_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="No metric scored"):
        fit_calibration([example._replace(features={}) for example in draw_examples(q2=0.5)], ("q2",))


def test_features_that_tell_nothing_apart_are_refused_and_make_no_fast_fusion() -> None:
    with pytest.raises(InvalidRequest, match="No value of pmi is higher for consistent examples"):
        fit_calibration(draw_examples(200, 5, pmi=-0.5), ("pmi",))
    calibration = fit_calibration(draw_examples(200, 5, q2=0.5, pmi=-0.5), ("q2", "pmi"))
    assert [fusion.name for fusion in calibration.fusions] == ["full"]


def test_the_size_of_the_weights_is_fitted_anew() -> None:
    examples = draw_examples(600, 6, q2=0.8, pmi=1.0)
    loose, tight = (fusion.rescale_model(fit_model(examples, ("q2", "pmi"), p), examples) for p in (0.0, 10.0))
    features = [example.features for example in examples]
    assert tight.predict_probabilities(features) == pytest.approx(loose.predict_probabilities(features), abs=0.15)
    # Calibrated: in the middle of a class's share, whatever the penalty.
    for model in (loose, tight):
        assert model.predict_probabilities(features).mean() == pytest.approx(0.5, abs=0.01)
        high = model.predict_probabilities(features) > 0.8
        assert np.mean([e.label for e, h in zip(examples, high, strict=True) if h]) > 0.8


def test_numbers_that_knowledge_left_out_lowers_are_not_read_unasked() -> None:
    examples = draw_examples(200, 7, q2=0.8, rouge_l=0.3)
    assert fusion.choose_features(examples) == ("q2",)
    assert fusion.choose_features(draw_examples(200, 7, rouge_l=0.3)) == ("rouge_l",)
    asked = fit_calibration(examples, ("q2", "rouge_l"), FusionOptions(features=("q2", "rouge_l")))
    assert {feature.name for feature in asked.fusions[0].features} == {"q2", "rouge_l"}

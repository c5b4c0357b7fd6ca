"""Labelled examples whose features are their label and noise."""

from __future__ import annotations

import numpy as np

from groundwire.engine.schema.results import MetricResult, Request
from groundwire.evaluate.calibration.fusion import LabelledFeatures


def draw_examples(count: int = 400, seed: int = 0, name: str = "one", **noise: float) -> list[LabelledFeatures]:
    """Examples whose features are the label and noise; ``noise`` has their spreads, negative to invert."""
    rng = np.random.default_rng(seed)
    out = []
    for index in range(count):
        label = index % 2
        features = {
            key: float((label if spread > 0 else -label) + abs(spread) * rng.normal()) for key, spread in noise.items()
        }
        out.append(
            with_features(
                LabelledFeatures(name, f"g{index // 4}", label, {}, request=Request("Well.", ("Knowledge.",))), features
            )
        )
    return out


def with_features(example: LabelledFeatures, features: dict[str, float]) -> LabelledFeatures:
    """The example with these numbers, and the results of metrics that have them as values."""
    results = {name: MetricResult(name, "scored", value) for name, value in features.items() if "." not in name}
    return example._replace(features=features, results=results)

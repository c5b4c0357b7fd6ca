"""Which of a calibration's fusions draws a verdict."""

from __future__ import annotations

from collections.abc import Collection

from groundwire.runtime.calibration import Calibration, Fusion

from .features import name_metric


def choose_fusion(calibration: Calibration, metrics: Collection[str]) -> Fusion:
    """The fusion for a request that asks for ``metrics``.

    Of those whose needed features are numbers of these metrics, the one that reads most of them, and of those, the one
    that misses least; where none has all that it needs, the one that lacks the fewest metrics.
    """

    def rank(fusion: Fusion) -> tuple[int, int, int]:
        lacking = {name_metric(feature.name) for feature in fusion.features if feature.needed}.difference(metrics)
        read = sum(name_metric(feature.name) in metrics for feature in fusion.features)
        return len(lacking), -read, len(fusion.features) - read

    return min(calibration.fusions, key=rank)

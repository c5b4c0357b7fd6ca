"""A calibration from labelled rows in memory, as ``groundwire calibrate`` fits it from files."""

from __future__ import annotations

from collections.abc import Sequence

from groundwire.engine import Engine, default_engine
from groundwire.runtime.bundles.calibration import Calibration

from ..datasets import Rows, read_rows
from ..scores.scoring import APART
from .features import collect_features
from .fusion import FusionOptions, check_classes
from .operating_points import fit_calibration


def calibrate(
    rows: Rows,
    engine: Engine | None = None,
    metrics: str | Sequence[str] = "all",
    options: FusionOptions | None = None,
    *,
    name: str = "labelled",
) -> Calibration:
    """Fit verdicts to labelled responses.

    Args:
        rows: A file of JSON Lines or CSV, examples, or mappings with ``response``, ``knowledge``, ``label`` (1 or 0, or
            its words) and perhaps ``history``; at least 20 of each label.
        engine: The engine that scores them; None takes ``default_engine``.
        metrics: What the verdict may read, as for ``Engine.score``.
        options: How to fit.
        name: Name of the rows in the calibration.

    Returns:
        The calibration, which ``LoadOptions(calibration=…)`` takes.

    Raises:
        InvalidRequest: Rows are unusable or too few, or no metric separates the labels.
    """
    examples = read_rows(rows)
    check_classes([example.label for example in examples])
    engine = engine or default_engine()
    requests = (example.request for example in examples)
    scores = list(engine.score_many(requests, metrics=metrics, options=APART))
    computed = tuple(dict.fromkeys(metric for score in scores for metric in score.metrics))
    return fit_calibration(collect_features({name: examples}, {name: scores}), computed, options)

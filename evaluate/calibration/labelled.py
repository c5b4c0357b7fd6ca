"""A calibration from labelled rows in memory, as ``groundwire calibrate`` fits it from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groundwire.engine import Engine, default_engine
from groundwire.runtime.bundles.calibration import Calibration

from ..datasets import Rows, read_rows
from ..scores.scoring import APART
from .choosing import choose_calibration
from .features import collect_features
from .fusion import FusionOptions, check_classes


def calibrate(
    rows: Rows,
    engine: Engine | None = None,
    metrics: str | Sequence[str] = "all",
    options: FusionOptions | None = None,
    *,
    name: str = "labelled",
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Calibration:
    """Fit verdicts to labelled responses.

    The weights and thresholds of the engine's own calibration are kept, unless others err less by two standard
    errors on rows that were left out of the fit.

    Args:
        rows: A file of JSON Lines or CSV, examples, or mappings with ``response``, ``knowledge``, ``label`` (1 or 0, or
            its words) and perhaps ``history``; at least 20 of each label.
        engine: The engine that scores them; None takes ``default_engine``.
        metrics: What the verdict may read, as for ``Engine.score``.
        options: How to fit.
        name: Name of the rows in the calibration.
        force: Whether to return a calibration, too, that errs more on these rows than the engine's own.
        progress: Called with the number of scores so far, as by ``Engine.score_many``.

    Returns:
        The calibration, which ``LoadOptions(calibration=…)`` takes.

    Raises:
        InvalidRequest: Rows are unusable or too few, no metric separates the labels, or the engine's own calibration
            errs less.
    """
    examples = read_rows(rows)
    check_classes([example.label for example in examples])
    engine = engine or default_engine()
    requests = (example.request for example in examples)
    scores = list(engine.score_many(requests, metrics=metrics, options=APART, progress=progress))
    computed = tuple(dict.fromkeys(metric for score in scores for metric in score.metrics))
    labelled = collect_features({name: examples}, {name: scores})
    choice = choose_calibration(labelled, computed, options, engine.core.calibration)
    if not force:
        choice.check()
    return choice.calibration

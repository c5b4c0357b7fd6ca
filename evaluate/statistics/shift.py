"""Whether responses look like the responses that a calibration was fitted on: its promise is about these.

Compared are consistent responses, which the bound on the false positive rate is about: the verdict's probability, their
length, and how many of their words the knowledge has (``groundwire.monitor.shift``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from groundwire.engine import Score
from groundwire.engine.verdict import choose_fusion
from groundwire.monitor.records import MIN_RESPONSES, Band, Shift
from groundwire.monitor.shift import compare_responses, describe_texts
from groundwire.runtime.bundles.calibration import Calibration

from ..datasets.examples import Example
from ..scores.metric_values import VERDICT, collect_metric_values


def compare_with_calibration(
    examples: Sequence[Example], scores: Sequence[Score], calibration: Calibration | None
) -> tuple[Shift, ...]:
    """The shifts of the consistent examples whose verdict has a probability; none where the calibration describes
    nothing."""
    verdict = collect_metric_values(examples, scores, calibration).get(VERDICT)
    if calibration is None or verdict is None:
        return ()
    responses = [
        describe_texts(example.response, example.knowledge) | {"probability": float(probability)}
        for example, probability in zip(examples, verdict.values, strict=True)
        if example.label == 1 and np.isfinite(probability)
    ]
    metrics = {name for score in scores for name in score.metrics}
    return compare_responses(choose_fusion(calibration, metrics).distributions, responses)


def explain_shift(shifts: Sequence[Shift]) -> str:
    """What the shifts mean for the promise, in a sentence or two."""
    worst = max((shift.band for shift in shifts), key=get_args(Band).index)
    if worst == "alike":
        return "The consistent responses look like those of the calibration."
    names = " and ".join(shift.quantity for shift in shifts if shift.band == worst)
    if worst == "too few to tell":
        count = min(shift.responses for shift in shifts)
        return (
            f"{count} consistent responses are too few to tell whether they look like those of the calibration; it "
            f"takes {MIN_RESPONSES}."
        )
    if worst == "shifted":
        return (
            f"The consistent responses differ somewhat from those of the calibration in {names}: its bounds on the "
            "false positive rate may not hold."
        )
    return (
        f"The consistent responses differ from those of the calibration in {names}: its bounds on the false positive "
        "rate do not apply to them. Calibrate on responses of this kind."
    )

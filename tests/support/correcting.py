"""A fake world for corrections: an inference model that goes by words, and Q² as in ``fakes``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from groundwire.engine import Engine
from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion
from groundwire.runtime.calls import Classified, Classify, Read
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome
from tests.support.verdicts import make_profile

METRICS = ("nli", "values", "overlap")
CALIBRATION = Calibration(
    fitted_on=("dev",),
    rows=100,
    fusions=(
        Fusion(
            name="full",
            metrics=METRICS,
            intercept=0.0,
            features=(Feature(name="nli.expected", mean=0.5, deviation=0.25, weight=1.0, needed=True),),
            profiles={"balanced": make_profile(0.5, 0.1, 0.1)},
        ),
    ),
    scales={},
)
_LIGHT = frozenset({"a", "an", "the", "is", "was", "has"})


def entail(call: Classify) -> Outcome:
    """A text is entailed if the premises have all of its words, negations as often; it is contradicted otherwise."""
    known, stated = (list_words(text) for text in (" ".join(call.premises), call.hypothesis))
    wrong = not set(stated) - _LIGHT <= set(known) or ("not" in known) != ("not" in stated)
    label = "contradiction" if wrong else "entailment"
    shares = {name: float(name == label) for name in ("entailment", "neutral", "contradiction")}
    return Classified(label, shares, 0, Read(1, 1, 1))


def list_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


ROLES = {"nli": entail}


def make_engine(calibration: Calibration | None = CALIBRATION, **roles: Callable[[Any], Outcome]) -> Engine:
    """An engine over the fake world, with further roles, or with others."""
    return Engine(FakeRuntime(ROLES | roles, calibration=calibration))

"""What tests of a service with Groundwire need: an engine without models, whose verdicts the test chooses.

>>> with make_engine(lambda response, knowledge: 0.1 if "blue" in response else 0.9) as engine:
...     score = engine.score("Honey is golden. It is blue.", "Honey is golden.")
>>> score.verdict.label, [span.text for span in score.unsupported]
('inconsistent', ['It is blue.'])
"""

from __future__ import annotations

from collections.abc import Callable

from groundwire.engine import Engine
from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion, Profile
from groundwire.runtime.calls import Classified, Classify, Read
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import RoleInfo

__all__ = ["FakeRuntime", "make_engine"]

_ROLE = "detector.test"
_LABELS = ("consistent", "inconsistent")
_CALIBRATION = Calibration(
    fitted_on=("test",),
    rows=0,
    fusions=(
        Fusion(
            name="test",
            metrics=(_ROLE,),
            intercept=0.0,
            features=(Feature(name=_ROLE, mean=0.0, deviation=1.0, weight=1.0, needed=True, logit=True),),
            profiles={
                name: Profile(
                    threshold=0.5,
                    false_positive_rate=0.0,
                    false_negative_rate=0.0,
                    unverifiable_rate=0.0,
                    coverage=0.0,
                    risk=0.0,
                    sets=0,
                )
                for name in ("balanced", "strict", "lenient")
            },
        ),
    ),
    scales={},
    verifiable=None,
)


def make_engine(rate: Callable[[str, tuple[str, ...]], float]) -> Engine:
    """Make an engine that asks a function in place of models.

    Everything else is the product's own: checks of arguments, plans, deadlines, streams, errors and records.

    Args:
        rate: Gets a text and the passages of its knowledge, and returns the probability, 0–1, that the text is
            consistent with them; from 0.5 on it is called so. It is asked about a response and about each of its
            sentences, and the least consistent sentence decides. It is called on another thread.

    Returns:
        An engine with the metric ``detector.test`` as its default.
    """

    def classify(call: Classify) -> Classified:
        probability = rate(call.hypothesis, call.premises)
        shares = dict(zip(_LABELS, (probability, 1.0 - probability), strict=True))
        return Classified(_LABELS[probability < 0.5], shares, 0, Read(1, len(call.premises), 1), probability)

    roles = {_ROLE: RoleInfo(_LABELS, _LABELS[:1])}
    return Engine(FakeRuntime({_ROLE: classify}, role_info=roles, calibration=_CALIBRATION))


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)

"""What a bundle knows about its metrics' values: their calibration, how to fuse them, where to draw the line.

Numbers only, fitted on labelled development sets and stored in the manifest or in a user's own file; what they mean is
computed in ``groundwire.engine.verdict.decision``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from .decode import decode_json
from .errors import BundleError, InvalidRequest
from .upgrade import SCHEMA, upgrade_calibration

Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
ProfileName: TypeAlias = Literal["balanced", "strict", "lenient"]


class Scale(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The calibration of one metric."""

    low: float
    high: float
    """Smallest and largest value on the development set: 0 and 1 of the min-max form (PMI-Faith, table 9)."""
    threshold: Share
    """On the min-max form, 0–1: from here on (inclusive) a response counts as consistent. It has the best F1 on the
    development set, and decides ``MetricResult.decision``."""


class Feature(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One input of the fusion: ``weight · (value − mean) / deviation`` is added to the logit."""

    name: str
    """A metric, or a number of its explanation (``groundwire.engine.verdict.features`` lists them)."""
    mean: float
    deviation: Annotated[float, msgspec.Meta(gt=0)]
    weight: float
    needed: bool = False
    """Without it there is no verdict; another feature that is missing counts as its mean."""


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An operating point and what it costs, as measured when it was fitted."""

    threshold: Share
    """Probability, 0–1, from which a response is called consistent."""
    false_positive_rate: Share
    """Share, 0–1, of consistent responses called inconsistent."""
    false_negative_rate: Share
    """Share, 0–1, of inconsistent responses called consistent."""


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything a verdict needs besides the metrics."""

    schema: int = SCHEMA
    fitted_on: tuple[str, ...]
    """Names of the labelled sets."""
    rows: Annotated[int, msgspec.Meta(ge=0)]
    """How many labelled responses they have."""
    metrics: tuple[str, ...]
    """The metrics that the fusion reads; the default of ``Engine.score``."""
    intercept: float
    features: Annotated[tuple[Feature, ...], msgspec.Meta(min_length=1)]
    """At least one: without evidence there is no verdict."""
    profiles: Annotated[dict[ProfileName, Profile], msgspec.Meta(min_length=1)]
    scales: dict[str, Scale]
    """By metric."""
    verifiable: Share | None = 0.5
    """Verifiability below which a response is ``unverifiable``; None never says so."""

    @classmethod
    def load(cls, path: Path) -> Calibration:
        """Read a file that ``save`` wrote; BundleError when it is missing, damaged or newer."""
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise BundleError(f"The calibration {path} cannot be read ({error.strerror}).") from error
        calibration = decode_json(
            raw,
            cls,
            lambda reason: BundleError(f"{path} is no calibration: {reason}. Write one with Calibration.save."),
            upgrade_calibration,
        )
        if calibration.schema > SCHEMA:
            raise BundleError(
                f"{path} has schema {calibration.schema}; this version of Groundwire reads up to {SCHEMA}. "
                "Upgrade groundwire, or calibrate again."
            )
        return calibration

    def save(self, path: Path) -> None:
        """Write the file ``load`` reads."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")

    def digest(self) -> str:
        """Eight hexadecimal digits that change with any number."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:8]

    def profile(self, name: ProfileName) -> Profile:
        """The operating point ``name``; InvalidRequest when the calibration lacks it."""
        if name not in self.profiles:
            raise InvalidRequest(f"The calibration has no profile {name!r}; it has {', '.join(self.profiles)}.")
        return self.profiles[name]

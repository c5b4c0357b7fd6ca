"""What becomes of labelled responses: the rates that ``evaluate``, ``calibrate`` and ``adapt`` all state.

Positive is a response that is delivered as inconsistent. One that is called unverifiable is not, whatever its
probability, and one without a verdict (``unknown``) is in no rate.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from .estimates import Bools

Counted: TypeAlias = tuple[Bools, Bools]
"""Responses, and the responses that they are a share of, both [N]."""


class DeliveredLabels(NamedTuple):
    """Labels of people, and what a verdict says, of N responses."""

    consistent: Bools
    """[N]: labelled consistent."""
    inconsistent: Bools
    """[N]: labelled inconsistent; a response without a label is neither."""
    positive: Bools
    """[N]: called inconsistent."""
    unverifiable: Bools
    """[N]: called unverifiable."""
    decided: Bools
    """[N]: whether there is a verdict."""

    @property
    def false_positives(self) -> Counted:
        """Responses of the false positive rate."""
        whole = self.consistent & self.decided
        return self.positive & whole, whole

    @property
    def found(self) -> Counted:
        """Responses of the power, the share of inconsistent responses that are called so."""
        whole = self.inconsistent & self.decided
        return self.positive & whole, whole

    @property
    def missed(self) -> Counted:
        """Responses of the false negative rate, 1 minus the power."""
        part, whole = self.found
        return whole & ~part, whole

    @property
    def missed_unverifiable(self) -> Counted:
        """The part of the missed ones that is called unverifiable."""
        whole = self.inconsistent & self.decided
        return self.unverifiable & whole, whole

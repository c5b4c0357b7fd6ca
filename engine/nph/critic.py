"""The call that asks Neural Path Hunter's critic about a response."""

from __future__ import annotations

from collections.abc import Sequence

from groundwire.runtime.calls import ClassifyTokens
from groundwire.runtime.triples import SEPARATOR, Triple, linearise

ROLE = "critic"
TURNS = 3
"""Last turns of the history that the critic reads, as in the paper."""


def critic_call(triples: Sequence[Triple], history: Sequence[str], response: str) -> ClassifyTokens:
    """The call that has the critic read a response.

    Triples and turns are one premise: of several, a token classifier believes the one that supports a word most, and a
    turn that names an entity would excuse every claim about it.
    """
    return ClassifyTokens(ROLE, (SEPARATOR.join(filter(None, (linearise(triples), *history[-TURNS:]))),), response)

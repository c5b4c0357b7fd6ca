"""Neural Path Hunter's critic: which names of the response do the triples not support?

Source: Dziri et al. 2021, §3.2 and appendix E: a token classifier over the triples, the history and the response, whose
response is hallucinated as soon as one token is. The paper's score is the share of hallucinated responses; here a
response's value is 1 minus the highest probability that one of its words is hallucinated, so that any threshold can be
drawn later.
"""

from __future__ import annotations

from collections.abc import Sequence

from groundwire.runtime.calls import ClassifyTokens
from groundwire.runtime.triples import SEPARATOR, Triple, linearise

from ..schema.explanations import CriticExplanation, UnsupportedSpan
from ..schema.options import Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.words import flag_tokens
from .base import Metric, RoleInfos, WordEvidence
from .mentions import find_all_mentions, find_mentions, max_probabilities
from .requests import ReadRequest

__all__ = [
    "ROLE",
    "TURNS",
    "critic_call",
    "find_all_mentions",
    "find_mentions",
    "flag_tokens",
    "max_probabilities",
]
"""The door of ``groundwire.repair.nph``: how the critic is asked, and what its answers say."""
ROLE = "critic"
TURNS = 3
"""Last turns of the history that the critic reads, as in the paper."""


def critic_call(triples: Sequence[Triple], history: Sequence[str], response: str) -> ClassifyTokens:
    """Return the call in which the critic reads a response.

    Triples and turns are joined into one premise. A token classifier takes the maximum over several premises, and a
    turn that names an entity would then hide every error about it.
    """
    return ClassifyTokens(ROLE, (SEPARATOR.join(filter(None, (linearise(triples), *history[-TURNS:]))),), response)


def critic(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """The probability, 0–1, that no word of the response is hallucinated; the knowledge as text is not read."""
    if not request.triples:
        return MetricResult(
            "critic", "nothing_to_verify", message="The critic reads triples and the request has none; pass triples."
        )
    (answer,) = yield [critic_call(request.triples, request.history, request.response)]
    tokens = flag_tokens(answer, role_info(ROLE))
    flagged = find_mentions(request.response, tokens, options.critic.threshold)
    return MetricResult(
        "critic",
        "scored",
        1.0 - max((token.probability for token in tokens if token.start < token.end), default=0.0),
        explanation=CriticExplanation(flagged, tokens),
        unsupported=tuple(
            UnsupportedSpan(mention.text, mention.start, mention.end, "detected", "", "critic") for mention in flagged
        ),
        coverage=answer.read.share,
    )


METRICS = (
    Metric(
        name="critic",
        title="Neural Path Hunter critic",
        description="names that the request’s triples do not support",
        compute=critic,
        roles=frozenset({ROLE}),
        groups=frozenset({"paper"}),
        order=102,
        words=WordEvidence(1.0, precision=2),
    ),
)

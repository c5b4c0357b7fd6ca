"""Packs scores for an audit, and verifies packets by scoring their requests again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from groundwire.engine import Engine, Options, Request, Score
from groundwire.engine.extend import Knowledge, Triples, make_request, to_request
from groundwire.runtime.errors import InvalidRequest

from .packet import check_packet, compare_scores, compare_settings, compare_texts, conclude, make_packet
from .records import EvidencePacket, Verification, VerificationStatus


class Auditor:
    """Documents what the scores of an engine depend on, and checks such documents.

    >>> packet = Auditor(engine).pack(score, response, knowledge)                              # doctest: +SKIP
    >>> Auditor(engine).verify(packet, Request(response, (knowledge,))).status                 # doctest: +SKIP
    'verified'
    """

    def __init__(self, engine: Engine) -> None:
        """Use the models of ``engine``, from any thread.

        Args:
            engine: The engine that made the scores, or that verifies them. The caller closes it.
        """
        self._engine = engine

    def pack(
        self,
        score: Score,
        response: str,
        knowledge: Knowledge = (),
        *,
        history: Sequence[str] = (),
        triples: Triples = (),
        scoring: Options | None = None,
        created: datetime | None = None,
        texts: bool = False,
    ) -> EvidencePacket:
        """Make one document of what a score depends on, and what it was.

        Args:
            score: A score of this engine.
            response: The text that was scored.
            knowledge: The knowledge that it was scored with.
            history: The history that it was scored with.
            triples: The triples that it was scored with.
            scoring: The options that it was scored with.
            created: A time with a time zone; None is now.
            texts: Whether the packet has the texts; otherwise it has their digests, and quotes nothing of them.

        Returns:
            The packet.

        Raises:
            InvalidRequest: The score has other settings, is of another response, or has no results.
        """
        if not isinstance(score, Score) or not score.metrics:
            raise InvalidRequest("score has no results; pass a Score of this engine whose status is not invalid.")
        plan = self._engine.plan(tuple(score.metrics), scoring)
        request = make_request(response, knowledge, history, plan.options, triples)
        return make_packet(score, request, plan, self._engine.core.runtime.identity, created, texts=texts)

    def verify(self, packet: EvidencePacket, request: Request | None = None) -> Verification:
        """Score the request of a packet again and compare everything. A deadline of its options is not kept.

        Args:
            packet: The packet.
            request: The texts, where the packet does not have them.

        Returns:
            How the comparison ended, with every difference.

        Raises:
            InvalidRequest: This engine cannot compute the packet's metrics.
        """
        if contradictions := check_packet(packet):
            return conclude("changed", contradictions)
        plan = self._engine.plan(packet.metrics, replace(packet.options, deadline_ms=None, priority=0))
        settings = compare_settings(packet, plan, self._engine.core.runtime.identity)
        request = packet.texts if request is None else request
        if request is None:
            return conclude("no_texts", settings=settings)
        request = to_request(request, plan.options)
        if other_texts := compare_texts(packet, request):
            return conclude("other_texts", other_texts, settings)
        score = self._engine.submit(request, plan).result()
        differences = compare_scores(packet, score, same_settings=not settings)
        status: VerificationStatus = "verified" if not differences else "other_settings" if settings else "different"
        return conclude(status, differences, settings)

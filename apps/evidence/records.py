"""What documents a score for an audit: the packet, and what its verification says."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeAlias

import msgspec

from groundwire.engine import Options, Request, Score
from groundwire.engine.schema.base import Record
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.protocol import Identity

Digest: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
"""SHA-256, in hexadecimal digits."""


class RequestDigests(Record, frozen=True, forbid_unknown_fields=True):
    """Digests of what was scored, each of its JSON form: a string, or a list of them."""

    response: Digest
    knowledge: Digest
    history: Digest
    triples: Digest


class EvidencePacket(Record, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that a score depends on and what it was, in one JSON document (``Engine.evidence``)."""

    schema: Literal[1] = 1
    created: datetime
    """As the caller says, else when the packet was made; in UTC."""
    versions: dict[str, str]
    """Of Groundwire, Python and the libraries that compute values, by name."""
    identity: Identity
    """The bundles with their digests, and the precision and device that they ran with."""
    calibration: Digest | None
    """Digest of the calibration that drew the verdict."""
    metrics: tuple[str, ...]
    """Those that were asked for, in order."""
    options: Options
    request: RequestDigests
    score: Score
    """Without its texts, messages and explanations, unless ``texts`` are there."""
    score_digest: Digest
    """The digest of the complete score, without its timings and its signature."""
    texts: Request | None = None
    """What was scored, if the caller wants it in the packet."""
    digest: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$")] = ""
    """Digest of all other fields. It reveals changes by accident or by hand. Someone who alters a packet on purpose can
    recompute it; ``Auditor.verify`` or a signature over the file reveals that too."""

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read the form that ``to_json`` writes, however its fields are ordered and spaced.

        Unknown and duplicate fields are rejected: other programs would read another value than this one.

        Args:
            text: The document, in UTF-8.

        Returns:
            The packet.

        Raises:
            InvalidRequest: The document does not fit; the message names the field.
        """
        packet = super().from_json(text)
        if json.loads(text, object_pairs_hook=_refuse_repeated) != json.loads(packet.to_json()):
            raise InvalidRequest(
                "Not the JSON form of EvidencePacket: it has a field that is unknown, or in another form than "
                "Groundwire writes. Take the file that was written."
            )
        return packet


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidRequest(
            f"Not the JSON form of EvidencePacket: of the fields {', '.join(fields)}, one is repeated."
        )
    return fields


class Difference(Record, frozen=True):
    """Where a packet and what was recomputed are not the same."""

    field: str
    """A path, such as ``score.metrics.q2.value``."""
    packet: str
    """What the packet says, as JSON; empty where it says nothing."""
    here: str
    """What was computed now."""


VerificationStatus: TypeAlias = Literal["verified", "changed", "different", "other_texts", "other_settings", "no_texts"]
"""``verified``: the same request was scored again and everything is the same. ``changed``: the packet is not as it was
made. ``different``: under the same settings, something else was computed. ``other_texts``: the texts differ from
the packet's. ``other_settings``: something else was computed, and with another version, bundle or device, which may be
why. ``no_texts``: the packet is as it was made; without the texts nothing was computed again."""


class Verification(Record, frozen=True):
    """Result of verifying a packet."""

    status: VerificationStatus
    message: str
    differences: tuple[Difference, ...] = ()
    """Differences between the results, between the texts, or inside the packet."""
    settings: tuple[Difference, ...] = ()
    """Versions, bundles, device and calibration that differ from the packet's; also where the results are the
    same."""

"""Evidence packets: what a score depends on in one document, and a verification of it.

>>> from groundwire.evidence import Auditor, EvidencePacket
"""

from __future__ import annotations

from .auditor import Auditor
from .records import Difference, EvidencePacket, RequestDigests, Verification

__all__ = ["Auditor", "Difference", "EvidencePacket", "RequestDigests", "Verification"]

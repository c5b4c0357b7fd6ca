"""Captured steps of response generation, whose sources have one or two contexts."""

from __future__ import annotations

from .decoder import CapturedDecoder
from .shapes import BEAM_ROWS, list_sizes


class CapturedResponseDecoder(CapturedDecoder):
    """A response generator's encoder and step."""

    def count_sources(self, beams: int, contexts: int, width: int) -> int:
        """The most sources of a width that decode together; 0 if not even one does."""
        rows = next(profile.max_rows for profile in self.encoder.plan.profiles if profile.width == width)
        return min(BEAM_ROWS // beams, rows) // contexts

    def find_width(self, tokens: int) -> int:
        """The padded width of sources with at most so many tokens."""
        return next(width for width in self.encoder.plan.widths if width >= tokens)

    def list_sizes(self, beams: int, contexts: int, width: int) -> tuple[int, ...]:
        """Powers of two and the most."""
        most = self.count_sources(beams, contexts, width)
        return list_sizes(most) if most else ()

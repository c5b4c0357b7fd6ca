"""Captured steps of question generation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..bundles.manifest import ShapePlan
from ..ort.session import pack
from ..texts.tokenization import Window
from .decoder import CapturedDecoder, CapturedSteps, count_sources
from .shapes import list_sizes, plan_strict


class CapturedQuestionDecoder(CapturedDecoder):
    """A question generator's encoder and step. Questions come before all else in a score, so its kernels are urgent."""

    urgent = True

    def start_batches(self, windows: Sequence[Window], beams: int) -> Iterator[tuple[NDArray[np.int64], CapturedSteps]]:
        """Encode sources that will decode with so many beams, batch by batch: their indices and steps."""
        plan = self._plan(beams)
        for indices, _, feeds in pack(self.encoder, windows, self.role.pad_id, self.runnable.profile, plan):
            with self.lock:
                yield indices, self.start(feeds, beams)

    def list_sizes(self, beams: int, contexts: int, width: int) -> tuple[int, ...]:
        """Powers of two; with ``strict`` one size of one width."""
        profiles = [profile.max_rows for profile in self._plan(beams).profiles if profile.width == width]
        return list_sizes(profiles[0], strict=self.runnable.profile.strict) if profiles else ()

    def _plan(self, beams: int) -> ShapePlan:
        """The batches of sources that decode with so many beams: at most a power of two, as all shapes but the last."""
        most, plan = count_sources(beams), self.encoder.plan
        if self.runnable.profile.strict:
            return plan_strict(plan.widths[-1], most)
        return msgspec.structs.replace(plan, max_rows=most, usual_rows=most)

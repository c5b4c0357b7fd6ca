"""The interface of a checkpoint's outputs on the fixed texts, with which the outputs of graphs are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from groundwire.runtime.bundles.manifest import Parity

from ..session import Arrays, CpuSession

SessionOpener: TypeAlias = Callable[[ir.Model], CpuSession]
"""Opens the session of a graph that is compared."""


class ReferenceOutputs(Protocol):
    """A checkpoint's outputs on the fixed texts."""

    def compare(self, graphs: Sequence[ir.Model], open_session: SessionOpener = CpuSession) -> Parity:
        """Return the parity report of ``graphs``, which are in the order of ``Conversion.graphs``.

        ``open_session`` is called for each of them, in that order.
        """
        ...

    def probe(self, sessions: Sequence[CpuSession], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        """Return the logits of loaded graphs on a few of the texts; each graph gets its ``extra`` inputs too."""
        ...

"""Generating models as two graphs: the source encoded once, and one decoding step of all beams.

``split_model`` knows the families; ``build_generation_graphs`` traces both halves and gives them the signatures of
docs/reference/graphs.md.
"""

from .family import Halves, split_model
from .fused_operators import FUSED_HEAD_DIMS
from .graphs import build_fused_step, build_generation_graphs

__all__ = ["FUSED_HEAD_DIMS", "Halves", "build_fused_step", "build_generation_graphs", "split_model"]

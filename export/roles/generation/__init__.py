"""Encoder-decoders as two graphs: the source encoded once, and one decoding step of all beams.

``split`` knows the families; ``graphs`` traces both halves and gives them the signatures of docs/architecture.md.
"""

from .family import Halves, split
from .graphs import graphs

__all__ = ["Halves", "graphs", "split"]

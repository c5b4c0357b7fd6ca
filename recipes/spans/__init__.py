"""The span finder's pipeline: a small English spaCy model for edited text and for lower-cased chat alike.

Parts of speech and Universal Dependencies come from UD English EWT and GUM, names from five corpora mapped to four
types (``common.treebanks``), numbers and dates from rules (``rules``). Everything is trained on altered copies of the
texts (``augment``).
"""

from ..common import extra as _extra  # noqa: F401 - says what to install
from .recipe import train_span_finder

__all__ = ["train_span_finder"]

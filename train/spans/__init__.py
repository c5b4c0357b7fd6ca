"""The span finder's pipeline: a small English spaCy model for edited text and for lower-cased chat alike.

Parts of speech and Universal Dependencies from UD English EWT and GUM, names from five corpora mapped to four types
(``sources``), numbers and dates by rule (``rules``), everything trained on altered copies of the texts (``augment``).
"""

from .recipe import train

__all__ = ["train"]

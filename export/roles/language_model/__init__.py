"""Causal language models as one graph that scores texts behind prefixes.

``decoder.py`` is the model with its keys and values outside, the same for every family; ``gpt2.py`` and ``bloom.py``
say which of a checkpoint's modules play which part; ``whole.py`` takes any other causal model as transformers runs it,
prefix and text together. ``graph.py`` traces either and gives it the signature of docs/architecture.md.
"""

from .graph import Scoring, scoring

__all__ = ["Scoring", "scoring"]

"""Causal language models as one graph that scores texts after prefixes.

``decoder.py`` is the model with its keys and values as inputs and outputs, the same for every family; ``gpt2.py``,
``bloom.py`` and ``llama.py`` map a checkpoint's modules to its parts; ``whole.py`` takes any other causal model as
transformers runs it, prefix and text together. ``graph.py`` traces either and gives it the signature of
docs/reference/graphs.md.
"""

from .graph import ScoringGraph, build_decoder, build_scoring_graph

__all__ = ["ScoringGraph", "build_decoder", "build_scoring_graph"]

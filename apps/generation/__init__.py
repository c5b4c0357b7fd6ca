"""Generation of responses that rest on knowledge (PMI-Decode, Nandwani et al. 2023)."""

from __future__ import annotations

from groundwire.runtime.calls import BeamSampling, BeamSearch, DelayedBeamSearch, Greedy, Sampling

from .options import GenerationOptions
from .pipeline import GenerationStream, Generator
from .records import GeneratedResponse, GeneratedToken, Generation

__all__ = [
    "BeamSampling",
    "BeamSearch",
    "DelayedBeamSearch",
    "GeneratedResponse",
    "GeneratedToken",
    "Generation",
    "GenerationOptions",
    "GenerationStream",
    "Generator",
    "Greedy",
    "Sampling",
]

"""Streams of responses that are checked while they are written: ``Guard(engine).open(knowledge, policy)``."""

from __future__ import annotations

from .door import Guard
from .policies import Correct, Fallback, Policy, Redact, Refine, Regenerate, TurnPolicy
from .records import Blocked, EarlyVerdict, FinalEvent, Release, SentenceEvent
from .stream import ResponseStream

__all__ = [
    "Blocked",
    "Correct",
    "EarlyVerdict",
    "Fallback",
    "FinalEvent",
    "Guard",
    "Policy",
    "Redact",
    "Refine",
    "Regenerate",
    "Release",
    "ResponseStream",
    "SentenceEvent",
    "TurnPolicy",
]

"""Stored results of a role's warm-up calls: does the bundle compute here what it computed where it was exported?

Digests show that files are intact. They do not show that a processor's or a GPU's kernels, or another version of a
library, compute the same from them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..bundles.manifest import Canary
from ..calls import Call
from ..errors import ModelError
from ..protocol import Outcome

TOLERANCE = 0.25
"""Largest difference of a number, as a share of the largest absolute one of the result. Kernels of other instruction
sets round int8 otherwise; zeroed weights, a wrong tokenizer or a broken kernel are beyond it."""
MAX_NUMBERS = 32
"""Numbers kept of one result, evenly spaced."""


def make_canary(call: Call, outcome: Outcome) -> Canary:
    """The canary of a call and its result."""
    return Canary(input=digest_call(call), numbers=list_numbers(outcome))


def digest_call(call: Call) -> str:
    """Twelve hexadecimal digits of a call: a later version may warm up with others."""
    content = msgspec.json.encode([type(call).__name__, call], order="deterministic")
    return hashlib.sha256(content).hexdigest()[:12]


def list_numbers(outcome: Any) -> tuple[float, ...]:
    """The floating-point numbers of a result, in order; at most ``MAX_NUMBERS``, rounded to six digits."""
    numbers = np.array(_flatten(outcome), dtype=np.float64)
    chosen = np.linspace(0, len(numbers) - 1, min(len(numbers), MAX_NUMBERS)).round().astype(int)
    return tuple(round(float(number), 6) for number in numbers[chosen])


def check_canary(role: str, canary: Canary, outcome: Outcome) -> ModelError | None:
    """A ModelError when the result differs from the stored one; None when it is the same within ``TOLERANCE``."""
    numbers = list_numbers(outcome)
    if len(numbers) == len(canary.numbers):
        expected = np.array(canary.numbers)
        scale = float(np.abs(expected).max(initial=0.0))
        worst = float(np.abs(np.array(numbers) - expected).max(initial=0.0))
        if worst <= TOLERANCE * scale:  # never with NaN
            return None
        difference = f"by {worst:.3f} of {scale:.3f}"
    else:
        difference = f"in length: {len(numbers)} numbers instead of {len(canary.numbers)}"
    return ModelError(
        f"The role {role!r} answers its stored input otherwise here than where it was exported, {difference}. Verify "
        "the bundle (groundwire bundle verify) and the installation (groundwire doctor), or export it again here."
    )


def _flatten(value: Any) -> Sequence[float]:
    if isinstance(value, bool | float):
        return [float(value)]
    if isinstance(value, np.ndarray):
        return [float(number) for number in value.ravel()]
    if isinstance(value, msgspec.Struct):
        return _flatten(msgspec.structs.astuple(value))
    if isinstance(value, dict):
        return _flatten(tuple(value.values()))
    if isinstance(value, tuple | list):
        return [number for item in value for number in _flatten(item)]
    return []

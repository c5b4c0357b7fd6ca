"""A computation that asks models: a generator of rounds of model calls.

It yields a round, a list of calls, and is resumed with the list of their results. When a call fails, its error is
raised at the ``yield``. A part that several computations share is a generator too, used by ``yield from``.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, TypeVar

from groundwire.runtime.calls import Call

T = TypeVar("T")
Round: TypeAlias = Sequence[Call]
Steps: TypeAlias = Generator[Round, list[Any], T]

"""Responses to measure with: the built-in examples or one's own, and endless different ones made of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from groundwire.engine import Request

EXAMPLES = Path(__file__).with_name("dialogues.jsonl")
"""``examples/dialogues.jsonl`` of the repository, which installations do not have."""
SYLLABLES = ("ba", "dor", "fen", "gil", "har", "jo", "ken", "lu", "mar", "nel", "ot", "pas", "ra", "sim", "ta", "vin")


def read_examples() -> tuple[Request, ...]:
    """The built-in examples: short dialogues in English, with one or two passages of knowledge."""
    requests = []
    for line in EXAMPLES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        knowledge = row["knowledge"]
        passages = (knowledge,) if isinstance(knowledge, str) else tuple(knowledge)
        requests.append(Request(row["response"], passages, tuple(row["history"])))
    return tuple(requests)


def vary_requests(requests: Sequence[Request]) -> Iterator[Request]:
    """Yield the requests as they are, then again and again with a made-up name before each response.

    No two are equal, so hardly a model call is answered from an earlier one.
    """
    yield from requests
    for number in itertools.count():
        for request in requests:
            yield msgspec.structs.replace(request, response=f"{make_name(number)}, {request.response}")


def make_name(number: int) -> str:
    """The ``number``-th made-up name, of two syllables or more."""
    parts: list[str] = []
    for _ in range(max(2, len(f"{number:x}"))):
        number, syllable = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[syllable])
    return "".join(parts).capitalize()

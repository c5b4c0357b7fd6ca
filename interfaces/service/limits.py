"""What a request may hold, what it costs, and the options that it is run with."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from groundwire.engine import Options, Triple
from groundwire.runtime.calls import BeamSampling, BeamSearch, Decoding, DelayedBeamSearch, Sampling

from .problems import Refusal
from .records import Knowledge, Triples
from .settings import Settings

CHARS_PER_TOKEN = 4
"""Of English text, about."""
USUAL_SEQUENCES = 5
"""That Q²'s usual decoding continues at the same time."""


def check_size(name: str, size: int, limit: int, unit: str = "characters", path: str = "") -> None:
    """Raise Refusal ``too_large`` if a field has more than the limit."""
    if size > limit:
        raise Refusal(
            "too_large",
            f"{name} has {size} {unit}; this server allows {limit}. Send less, or start it with a larger limit.",
            path or f"$.{name}",
        )


def check_turn(
    settings: Settings, responses: Sequence[str], knowledge: Knowledge, history: Sequence[str], triples: Triples = ()
) -> None:
    """Raise Refusal ``too_large`` if texts, or their number, exceed the limits."""
    for response in responses:
        check_size("response", len(response), settings.max_response_chars)
    passages = (knowledge,) if isinstance(knowledge, str) else knowledge
    check_size("knowledge", len(passages), settings.max_passages, "passages")
    check_size("knowledge", sum(map(len, passages)), settings.max_knowledge_chars)
    check_size("history", len(history), settings.max_turns, "turns")
    check_size("history", sum(map(len, history)), settings.max_history_chars)
    check_size("triples", len(triples), settings.max_triples, "triples")
    check_size("triples", sum(map(_count_chars, triples)), settings.max_knowledge_chars)


def _count_chars(triple: Triple | tuple[str, str, str]) -> int:
    parts = triple if isinstance(triple, tuple) else (triple.subject, triple.predicate, triple.object)
    return sum(map(len, parts))


def estimate_tokens(texts: Sequence[str | Sequence[str]], passes: int, decoding: Decoding | None = None) -> int:
    """About how many tokens models read for these texts: every pass reads them all.

    ``passes`` is the number of metrics, or of candidates; ``decoding`` multiplies it where it continues more sequences
    than usual.
    """
    chars = sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts)
    wide = max(1.0, count_sequences(decoding) / USUAL_SEQUENCES)
    return max(1, round(chars / CHARS_PER_TOKEN * max(1, passes) * wide))


def count_sequences(decoding: Decoding | None) -> int:
    """Sequences that decoding continues at the same time, 1–64: the engine refuses more."""
    return min(max(_count_sequences(decoding), 1), 64)


def _count_sequences(decoding: Decoding | None) -> int:
    if isinstance(decoding, BeamSearch | BeamSampling | DelayedBeamSearch):
        return decoding.num_beams
    return decoding.num_return_sequences if isinstance(decoding, Sampling) else 1


def bound_options(options: Options, settings: Settings, left_ms: float) -> Options:
    """The options of a request within what the server allows: its deadline, its limits on texts.

    Raises Refusal ``invalid`` for a priority that is too high.
    """
    if options.priority > settings.max_priority:
        raise Refusal(
            "invalid",
            f"options.priority is {options.priority}; this server allows {settings.max_priority} and below.",
            "$.options.priority",
        )
    return replace(
        options,
        deadline_ms=left_ms,
        max_response_chars=min(options.max_response_chars, settings.max_response_chars),
        max_knowledge_chars=min(options.max_knowledge_chars, settings.max_knowledge_chars),
        max_history_chars=min(options.max_history_chars, settings.max_history_chars),
    )

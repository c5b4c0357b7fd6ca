"""What determined a score, in one line (after sacrebleu's signatures)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import msgspec

from groundwire.runtime.backend import Identity

from .options import Options

_NOT_DECISIVE = frozenset({"deadline_ms", "max_response_chars", "max_knowledge_chars", "questions_at_once"})


def signature(identity: Identity, metrics: tuple[str, ...], options: Options) -> str:
    """Version, bundle and its digest, precision, device, metrics, and every option that is not the default.

    >>> signature(Identity("compact", "0123456789ab", "int8", "cpu"), ("q2",), Options())  # doctest: +ELLIPSIS
    'groundwire:...|bundle:compact@0123456789ab|precision:int8|device:cpu|metrics:q2|options:default'
    """
    changed = [f"{name}={value}" for name, value in _changes(msgspec.to_builtins(options), _DEFAULTS)]
    return "|".join(
        (
            f"groundwire:{version('groundwire')}",
            f"bundle:{identity.bundle}@{identity.digest}",
            f"precision:{identity.precision}",
            f"device:{identity.device}",
            f"metrics:{'+'.join(metrics)}",
            f"options:{','.join(changed) or 'default'}",
        )
    )


def _changes(given: dict[str, Any], default: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        usual = default.get(name) if isinstance(default, dict) else None
        if name in _NOT_DECISIVE or value == usual:
            continue
        if isinstance(value, dict):
            yield from _changes(value, usual, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value).replace(" ", "")


_DEFAULTS = msgspec.to_builtins(Options())

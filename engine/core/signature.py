"""What determined a score, in one line (after sacrebleu's signatures)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from groundwire.runtime.protocol import Identity
from groundwire.runtime.version import VERSION

from ..schema.options import Options

_NOT_DECISIVE = frozenset(
    {
        "deadline_ms",
        "priority",
        "tenant",
        "max_response_chars",
        "max_knowledge_chars",
        "max_history_chars",
        "questions_at_once",
    }
)


def signature(
    identity: Identity, metrics: tuple[str, ...], options: Options, calibration_digest: str | None = None
) -> str:
    """Version, bundle and its digest, precision, device, metrics, every option that is not the default, calibration.

    A long value is given as its digest.

    >>> signature(Identity("compact", "0123456789ab", "int8", "cpu"), ("q2",), Options())  # doctest: +ELLIPSIS
    'groundwire:...|bundle:compact@0123456789ab|precision:int8|device:cpu|metrics:q2|options:default'
    """
    changed = [f"{name}={value}" for name, value in _changes(msgspec.to_builtins(options), _DEFAULTS)]
    return "|".join(
        (
            f"groundwire:{VERSION}",
            f"bundle:{identity.bundle}@{identity.digest}{'' if identity.verified else '(unverified)'}",
            f"precision:{identity.precision}",
            f"device:{identity.device}{f'/{identity.kernel}' if identity.kernel else ''}",
            f"metrics:{'+'.join(metrics)}",
            f"options:{','.join(changed) or 'default'}",
            *([f"calibration:{calibration_digest}"] if calibration_digest else []),
        )
    )


def _changes(values: dict[str, Any], default: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        usual = default.get(name) if isinstance(default, dict) else None
        if name in _NOT_DECISIVE or value == usual:
            continue
        if isinstance(value, dict):
            yield from _changes(value, usual, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _short(str(value))


def _short(value: str) -> str:
    """``value``, or its digest when it would not fit a line: documents are settings too."""
    if len(value) <= _SHOWN:
        return value.replace(" ", "")
    return f"sha256:{hashlib.sha256(value.encode()).hexdigest()[:12]}"


_SHOWN = 80
"""Characters of a setting that a signature spells out."""
_DEFAULTS = msgspec.to_builtins(Options())

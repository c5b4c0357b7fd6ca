"""The error tree of Groundwire.

::

    GroundwireError
    ├── InvalidRequest       (also ValueError)  the response, knowledge, history or an option is not usable
    ├── BundleError                             a bundle is missing, damaged, or newer than this version reads
    ├── DeviceError                             a device or execution provider cannot be used
    ├── ExportError                             a checkpoint cannot be turned into a bundle role
    │   └── ParityError                         the exported graph is too far from its checkpoint
    ├── ModelError                              a model failed while it ran
    ├── ServerError                             a model server lacks a model, or answers otherwise than it should
    │   └── ServerUnavailable                   it cannot be reached, is not ready, or gives no answer in time
    ├── TooLong                                 a text does not fit the windows a model may read
    │   └── Unreadable                          too much of a text is unknown to a model's tokenizer
    ├── OutputError                             results cannot be written, as on a full disk
    ├── Overloaded                              more requests wait than the engine accepts
    ├── EngineClosed                            the engine was closed
    └── StreamClosed                            a stream was closed, or is finished

A message says what was given, what is allowed, and what to do. Errors of other libraries are translated at one boundary
each, with ``raise … from error``.
"""

from __future__ import annotations

import re

_NO_MEMORY = re.compile(
    r"Failed to allocate memory(?: for requested buffer of size (\d+))?|bad_alloc|out of memory|Cannot allocate memory"
    r"|failed to map segment",
    re.IGNORECASE,
)


class GroundwireError(Exception):
    """Base of every error Groundwire raises on purpose."""


class InvalidRequest(GroundwireError, ValueError):
    """The response, knowledge, history or an option is not usable."""


class BundleError(GroundwireError):
    """A bundle is missing, damaged, or newer than this version reads."""


class DeviceError(GroundwireError):
    """A device or execution provider cannot be used."""


class ExportError(GroundwireError):
    """A checkpoint cannot be turned into a bundle role."""


class ParityError(ExportError):
    """An exported graph is too far from its checkpoint, so it was not saved."""


class ModelError(GroundwireError):
    """A model failed while it ran."""


class ServerError(GroundwireError):
    """A model server lacks a model, or answers otherwise than the protocol and the graph say."""


class ServerUnavailable(ServerError):
    """A model server cannot be reached, is not ready, or gives no answer in time; a later attempt may succeed."""


class TooLong(GroundwireError):
    """A text does not fit the windows a model may read; nothing was cut."""


class Unreadable(TooLong):
    """Too much of a text is unknown to a model's tokenizer, so its answer would be about the rest.

    As with a text that is too long, the model cannot read what it is asked about: the status is ``truncated``.
    """


class OutputError(GroundwireError):
    """Results cannot be written: the disk is full, or the file may not be changed."""


class Overloaded(GroundwireError):
    """More requests, or tokens, wait than the engine accepts; try again after ``retry_after_s`` seconds."""

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        """Say when there may be room.

        Args:
            message: The request, and the bound that it exceeds.
            retry_after_s: Whole seconds, 1–60, until there is room.
        """
        super().__init__(message)
        self.retry_after_s = retry_after_s
        """Whole seconds, 1–60, until there is room at the rate at which requests were finished so far."""


class EngineClosed(GroundwireError):
    """The engine was closed."""


class StreamClosed(GroundwireError):
    """A stream was closed, or is finished, and takes no more text."""


def describe_shortage(error: BaseException) -> str:
    """Say that a library's error is for want of memory, and of how much if it says so; empty for other errors.

    >>> describe_shortage(RuntimeError("bfc_arena.cc:360 Failed to allocate memory for requested buffer of size 16"))
    'memory is short (16 bytes could not be allocated)'
    >>> describe_shortage(ImportError("libx.so: failed to map segment from shared object"))
    'memory is short'
    """
    match = _NO_MEMORY.search(str(error))
    if match is None and not isinstance(error, MemoryError):
        return ""
    size = f" ({int(match[1]):,} bytes could not be allocated)" if match is not None and match[1] else ""
    return f"memory is short{size}"

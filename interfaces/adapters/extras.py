"""The gate of a module that needs a package of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Import what ``extra`` brings in this block; an ImportError says what to install."""
    try:
        yield
    except ImportError as error:
        module = extra.replace("-", "_")
        raise ImportError(
            f"groundwire.adapters.{module} cannot import what it needs ({error}); "
            f"install it with: pip install 'groundwire[{extra}]'"
        ) from error

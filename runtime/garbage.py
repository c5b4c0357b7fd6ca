"""Garbage collections of a process that has loaded its models and only answers requests from then on."""

from __future__ import annotations

import gc


def freeze_objects() -> None:
    """Collect garbage, then leave every object that is alive out of all later collections.

    A loaded engine has 250,000 objects. Python looks at all of them about once in a thousand responses, and no thread
    runs meanwhile. Call it only in a process that is Groundwire's own: no object that is alive now is ever collected
    as part of a cycle.
    """
    gc.collect()
    gc.freeze()

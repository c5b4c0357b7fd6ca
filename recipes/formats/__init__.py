"""Labelled sets in their authors' formats, which ``groundwire.evaluate.datasets`` reads when this package is installed.

A format is a module of this package and a line of ``FORMATS``: whether a file looks like it, and how it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from groundwire.evaluate.datasets.source import Format

from .begin import BEGIN
from .dnli import DNLI
from .factual import FACTUAL
from .faithdial import FAITHDIAL
from .opendialkg import OPENDIALKG
from .q2 import Q2
from .usr import USR, USR_Q2

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "q2": Q2,
        "begin": BEGIN,
        "factual": FACTUAL,
        "usr": USR,
        "usr-q2": USR_Q2,
        "dnli": DNLI,
        "opendialkg": OPENDIALKG,
        "faithdial": FAITHDIAL,
    }
)
"""By name, in the order in which a file is tried."""

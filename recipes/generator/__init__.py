"""The recipe of response generators, the embedded bundle of one, and PMI-Faith's table of decoding settings."""

from ..common import extra as _extra  # noqa: F401 - says what to install

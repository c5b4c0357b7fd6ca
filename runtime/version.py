"""The version of the installed distribution, which scores and answers name."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("groundwire")
except PackageNotFoundError:  # a checkout that is not installed
    VERSION = "0+checkout"

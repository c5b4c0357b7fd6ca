"""Lets tests run on another native module: ``GROUNDWIRE_NATIVE=FILE pytest -p tests.support.native_module``.

A build with sanitizers needs their runtime library in the process first (LD_PRELOAD): ``cpp_ext/checks/full.sh``.
"""

from __future__ import annotations

import importlib.util
import os
import sys

if path := os.environ.get("GROUNDWIRE_NATIVE"):
    spec = importlib.util.spec_from_file_location("groundwire.runtime._native", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"GROUNDWIRE_NATIVE is {path}, which is no extension module")
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

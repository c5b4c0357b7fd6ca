"""Torch stays out of these tests: spaCy would import it, which takes two seconds of each process."""

from __future__ import annotations

from groundwire.runtime.interpreter import leave_torch_out

leave_torch_out()

"""Memory that was freed is not kept."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from groundwire.runtime.resources import trim_memory

def read_resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

blocks = [bytes(100_000) for _ in range(2_000)]
last = bytes(100_000)
blocks.clear()
before = read_resident()
trim_memory()
print(before - read_resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc is asked")
def test_freed_memory_goes_back_to_the_system() -> None:
    output = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(output.stdout) > 100_000_000

"""Too little memory is said before models are loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from groundwire.runtime.resources import MEBIBYTE, RESIDENT_MB, find_memory_limits, warn_of_limits


def write_group(directory: Path, limit: str, usage: int) -> Path:
    (directory / "memory.max").write_text(f"{limit}\n")
    (directory / "memory.current").write_text(f"{usage * MEBIBYTE}\n")
    return directory


@pytest.mark.parametrize(
    ("limit", "files", "warns"),
    [("max", 10**9, False), (str(MEBIBYTE * 1024), 100, False), (str(MEBIBYTE * 1024), 300, True)],
)
def test_a_control_group_that_is_too_small_is_warned_of(
    tmp_path: Path, limit: str, files: int, warns: bool, recwarn: pytest.WarningsRecorder
) -> None:
    warn_of_limits(files * MEBIBYTE, write_group(tmp_path, limit, 100))
    messages = [str(warning.message) for warning in recwarn]
    assert len(messages) == warns
    for message in messages:
        assert (
            f"may take 924 MiB of memory (its control group); with these models it needs about {RESIDENT_MB + files}"
            in message
        )


def test_a_group_of_the_first_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text(str(64 * MEBIBYTE))
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text(str(60 * MEBIBYTE))
    assert 4 in [limit.mebibytes for limit in find_memory_limits(tmp_path)]


@pytest.mark.parametrize(
    ("lines", "left"),
    [("anon 9\ninactive_file {}\n", 44), ("inactive_file 0\ntotal_inactive_file {}\n", 44), ("odd\n", 4)],
)
def test_pages_of_files_are_no_lack(tmp_path: Path, lines: str, left: int) -> None:
    write_group(tmp_path, str(64 * MEBIBYTE), 60)
    (tmp_path / "memory.stat").write_text(lines.format(40 * MEBIBYTE))
    assert left in [limit.mebibytes for limit in find_memory_limits(tmp_path)]


@pytest.mark.parametrize("line", ["0::/system.slice/a.service", "4:memory:/system.slice/a.service"])
def test_the_group_of_a_service_and_those_around_it_count(tmp_path: Path, line: str) -> None:
    (tmp_path / "process").write_text(f"{line}\n")
    root = tmp_path / ("memory" if "memory" in line else "") / "system.slice"
    (root / "a.service").mkdir(parents=True)
    write_group(root / "a.service", "max", 10)
    write_group(root, str(MEBIBYTE * 512), 500)
    assert 12 in [limit.mebibytes for limit in find_memory_limits(tmp_path, tmp_path / "process")]


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited by Linux")
def test_a_process_with_too_little_address_space_says_what_it_needs(tmp_path: Path) -> None:
    program = """
import resource
from pathlib import Path
from groundwire.runtime.resources import warn_of_limits
resource.setrlimit(resource.RLIMIT_AS, (1500 << 20, 1500 << 20))
warn_of_limits(150 << 20, Path("nowhere"))
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "may take 1500 MiB of address space (ulimit -v); with these models it needs about 2050" in output.stderr

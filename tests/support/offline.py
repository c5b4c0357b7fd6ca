"""Runs Python in a process that the kernel kills when it opens a network socket, whatever language asks for it.

    python tests/support/offline.py -m groundwire.cli doctor

A filter of system calls (seccomp) stays with the process, its threads and its children. It shows a machine without
IPv6, because urllib3 asks for that when it is imported, and lets sockets within the machine (``AF_UNIX``) through.
With ``--listen`` first, the process may listen and answer, as a server does: it is killed when it connects, or sends to
an address, as a look-up of a name does. Linux on x86-64 and ARM64.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import subprocess
import sys
from pathlib import Path

SOCKET = {"x86_64": 41, "aarch64": 198}.get(platform.machine())
"""The number of the system call ``socket``; None where the filter does not know the machine."""
CONNECT, SEND = {"x86_64": (42, 44), "aarch64": (203, 206)}.get(platform.machine(), (None, None))
"""Those of ``connect`` and ``sendto``."""
AVAILABLE = sys.platform == "linux" and SOCKET is not None
ROOT = Path(__file__).parents[2]

_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL_PROCESS, _NO_SUCH_FAMILY = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EAFNOSUPPORT
_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_NUMBER, _FIRST_ARGUMENT, _FIFTH_ARGUMENT = 0, 16, 48
"""Offsets in the kernel's ``struct seccomp_data``."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def run_offline(arguments: list[str], home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with ``arguments`` and ``HOME=home``; the return code is -31 (SIGSYS) if it opened a socket.

    The environment has what a program needs to start, ``environment``, and nothing else.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    return subprocess.run(
        [sys.executable, __file__, *arguments],
        env=kept | {"HOME": str(home), "PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def forbid_network() -> None:
    """Let the kernel kill this process when it, or what it starts, opens a socket that leaves the machine."""
    _filter(
        (_LOAD_WORD, 0, 0, _NUMBER),
        (_JUMP_IF_EQUAL, 0, 5, SOCKET),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_IF_EQUAL, 3, 0, socket.AF_UNIX),
        (_JUMP_IF_EQUAL, 1, 0, socket.AF_INET6),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_RETURN, 0, 0, _NO_SUCH_FAMILY),
        (_RETURN, 0, 0, _ALLOW),
    )


def forbid_connections() -> None:
    """Let the kernel kill this process when it, or what it starts, connects or sends to an address."""
    _filter(
        (_LOAD_WORD, 0, 0, _NUMBER),
        (_JUMP_IF_EQUAL, 3, 0, CONNECT),
        (_JUMP_IF_EQUAL, 0, 3, SEND),
        (_LOAD_WORD, 0, 0, _FIFTH_ARGUMENT),
        (_JUMP_IF_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_RETURN, 0, 0, _ALLOW),
    )


def _filter(*instructions: tuple[int, int, int, int | None]) -> None:
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    program = _Program(len(instructions), code)
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SET_SECCOMP, _FILTER, ctypes.byref(program))):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "The kernel refuses the filter of system calls")


if __name__ == "__main__":
    program = sys.argv[1:]
    if program[:1] == ["--listen"]:
        forbid_connections()
        del program[0]
    else:
        forbid_network()
    os.execv(sys.executable, [sys.executable, *program])

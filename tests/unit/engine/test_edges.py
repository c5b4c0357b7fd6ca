"""Where Python, the machine and the terminal end: what is refused, and what is spelt out."""

from __future__ import annotations

import subprocess
import sys

import pytest

from groundwire.engine import Engine, InvalidRequest
from groundwire.engine.text.normalization import UNSHOWABLE

IN_SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
created = interpreters.create()
code = '''
try:
    import groundwire.engine
except ImportError as error:
    print(error, flush=True)
'''
(getattr(interpreters, "exec", None) or interpreters.run_string)(created, code)
"""


def test_a_subinterpreter_is_refused_at_the_import() -> None:
    done = subprocess.run([sys.executable, "-c", IN_SUBINTERPRETER], capture_output=True, text=True, timeout=60)
    assert "does not run in a subinterpreter" in done.stdout, done.stderr


@pytest.mark.parametrize("threads", [0, 1025, 10**9])
def test_a_number_of_threads_that_no_machine_has_is_the_callers_mistake(threads: int) -> None:
    with pytest.raises(InvalidRequest, match=r"threads is \d+; allowed are whole numbers from 1 to 1024"):
        Engine.load(threads=threads)


def test_every_mark_that_turns_text_round_is_spelt_out() -> None:
    marks = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    assert UNSHOWABLE.sub("", marks) == ""

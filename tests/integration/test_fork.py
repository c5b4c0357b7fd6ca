"""Processes that are forked from one with a loaded engine: a typed error or an engine of their own, never a hang."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys

import pytest

import groundwire
from groundwire.engine import Engine

TEXTS = ("Bob Ross hosted the show.", "Bob Ross was its creator and host.")
CHILD = """
import gc, os, sys
import groundwire
from groundwire.engine import Engine, EngineClosed

texts = ("Bob Ross hosted the show.", "Bob Ross was its creator and host.")
engine = Engine.load(device="cpu")
value = groundwire.score(*texts, metrics=["nli"]).value
assert engine.score(*texts, metrics=["nli"]).value == value
child = os.fork()
if child == 0:
    try:
        engine.score(*texts)
    except EngineClosed as error:
        assert "Load the engine after the fork" in str(error)
        assert not engine.core.is_open
    else:
        os._exit(3)
    engine.close()
    del engine
    gc.collect()
    assert groundwire.score(*texts, metrics=["nli"]).value == value
    sys.exit(7)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
assert engine.score(*texts, metrics=["nli"]).value == value
engine.close()
"""


def score_in_child(texts: tuple[str, str]) -> float | None:
    return groundwire.score(*texts, metrics=["nli"]).value


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks with the module's own engine loaded")
def test_a_forked_process_gets_an_error_from_the_old_engine_and_loads_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], timeout=240, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods_load_an_engine_in_every_process(method: str) -> None:
    with Engine.load(device="cpu") as engine:
        value = engine.score(*TEXTS, metrics=["nli"]).value
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.apply_async(score_in_child, (TEXTS,)).get(240) == value

"""Captures run alone."""

from __future__ import annotations

import threading
import time

import pytest

from groundwire.runtime.ort.gate import CaptureGate


def test_runs_are_together_and_a_capture_is_alone() -> None:
    gate, both = CaptureGate(), threading.Barrier(2, timeout=60)
    inside = threading.Event()
    seen: list[bool] = []

    def run_beside() -> None:
        with gate.run():
            both.wait()

    def capture() -> None:
        with gate.capture():
            seen.append(inside.is_set())

    beside = threading.Thread(target=run_beside)
    beside.start()
    with gate.run(), gate.run():  # a run may start another
        both.wait()  # passes only if the other thread runs at the same time
        inside.set()
        capturing = threading.Thread(target=capture)
        capturing.start()
        capturing.join(0.05)
        assert not seen
        inside.clear()
    capturing.join(60)
    beside.join(60)
    assert seen == [False]
    with gate.capture():
        pass


def test_a_capture_that_waits_goes_before_runs_that_have_not_begun() -> None:
    gate, order = CaptureGate(), list[str]()

    def capture() -> None:
        with gate.capture():
            order.append("capture")

    def run() -> None:
        with gate.run():
            order.append("run")

    with gate.run():
        capturing = threading.Thread(target=capture)
        capturing.start()
        while not gate._waiting:
            time.sleep(0.001)
        running = threading.Thread(target=run)
        running.start()
        running.join(0.05)
        with gate.run():  # what has begun goes on
            order.append("inner")
    for thread in (capturing, running):
        thread.join(60)
    assert order == ["inner", "capture", "run"]


def test_a_capture_inside_of_a_run_is_an_error() -> None:
    gate = CaptureGate()
    with gate.run(), pytest.raises(RuntimeError, match="would wait for its end"), gate.capture():
        pass
    with gate.capture(), gate.run():
        pass


def test_memory_is_freed_when_no_capture_is_open() -> None:
    gate, freed = CaptureGate(), list[str]()
    with gate.capture():
        gate.release(lambda: freed.append("in a capture"))
        assert not freed
    assert freed == ["in a capture"]
    with gate.run():
        gate.release(lambda: freed.append("in a run"))
    assert freed == ["in a capture", "in a run"]


def test_a_failed_capture_lets_others_run() -> None:
    gate = CaptureGate()
    try:
        with gate.capture():
            raise ValueError
    except ValueError:
        pass
    with gate.run():
        pass

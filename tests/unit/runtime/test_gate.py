"""Captures run alone."""

from __future__ import annotations

import threading

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


def test_a_failed_capture_lets_others_run() -> None:
    gate = CaptureGate()
    try:
        with gate.capture():
            raise ValueError
    except ValueError:
        pass
    with gate.run():
        pass

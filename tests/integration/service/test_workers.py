"""A service whose worker processes are all gone, or hang."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from groundwire.engine import Engine
from groundwire.engine.processes import runtime, watchdog
from groundwire.engine.processes.runtime import ProcessRuntime
from groundwire.service import health
from groundwire.service.application import app
from groundwire.service.front import Front
from tests.support import worker_engines
from tests.support.service import HONEY, connect, wait_until

BODY = HONEY | {"metrics": "nli"}
PATIENT = {"Groundwire-Deadline-Ms": "60000"}
"""For the first score of a process."""


@pytest.fixture(autouse=True)
def allow_slow_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first score of a process takes longer where other work has the processors."""
    monkeypatch.setattr(health, "PROBE_MS", 300_000.0)


def list_pids(engine: Engine) -> list[int]:
    workers = engine.core.runtime
    assert isinstance(workers, ProcessRuntime)
    return [process.pid for process in workers._ready]


def forget_probe(front: Front) -> None:
    """As if its last score were old."""
    front.service.readiness._probed_at = None


@pytest.mark.anyio
async def test_a_service_without_workers_says_so_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = tmp_path / "allowed"
    allowed.touch()
    monkeypatch.setenv(worker_engines.ALLOWED, str(allowed))
    with worker_engines.open_processes(2, "load_if_allowed") as engine:
        front = app(engine)
        await front.warm()
        async with connect(front) as client:
            assert (await client.get("/readyz")).status_code == 200
            allowed.unlink()
            for pid in list_pids(engine):
                os.kill(pid, signal.SIGKILL)
            await wait_until(lambda: not engine.core.processes)
            started = time.monotonic()
            for answer in (await client.get("/readyz"), await client.post("/score", json=BODY)):
                assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
                assert "No worker process computes" in answer.json()["detail"]
                assert answer.headers["retry-after"] == "1"
            assert time.monotonic() - started < health.WAIT_SECONDS
            assert (await client.get("/healthz")).status_code == 200
            text = (await client.get("/metrics")).text
            for line in ("groundwire_ready 0.0", "groundwire_processes 0.0", "groundwire_configured_processes 2.0"):
                assert line in text
            allowed.touch()
            await wait_until(lambda: engine.core.processes > 0)
            assert (await client.post("/score", json=BODY, headers=PATIENT)).status_code == 200


@pytest.mark.anyio
async def test_a_request_whose_workers_are_all_killed_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = tmp_path / "allowed"
    allowed.touch()
    monkeypatch.setenv(worker_engines.ALLOWED, str(allowed))
    with worker_engines.open_processes(2, "load_if_allowed") as engine:
        front = app(engine)
        await front.warm()
        async with connect(front) as client:
            allowed.unlink()
            pids = list_pids(engine)
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            asking = asyncio.create_task(client.post("/score", json=BODY, headers=PATIENT))
            await wait_until(lambda: any(process.unanswered for process in engine.core.runtime._ready))
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            answer = await asking
            assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
            assert answer.headers["retry-after"] == "1"
            allowed.touch()


@pytest.mark.anyio
async def test_a_service_whose_workers_hang_is_not_ready_until_they_are_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "TICK_SECONDS", 0.2)
    monkeypatch.setattr(watchdog, "SILENT_TICKS", 1_000)
    with worker_engines.open_processes(2) as engine:
        front = app(engine)
        await front.warm()
        async with connect(front) as client:
            for pid in list_pids(engine):
                os.kill(pid, signal.SIGSTOP)
            forget_probe(front)
            with monkeypatch.context() as patched:
                patched.setattr(health, "WAIT_SECONDS", 0.5)
                for _ in range(2):
                    answer = await client.get("/readyz")
                    assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
                    assert "is not finished after 0.5 s" in answer.json()["detail"]
                patched.setattr(watchdog, "SILENT_TICKS", 5)
                await wait_until(lambda: not engine.core.processes)
            await wait_until(lambda: engine.core.processes == 2)
            assert (await client.post("/score", json=BODY, headers=PATIENT)).status_code == 200
            assert "groundwire_process_restarts_total 2.0" in (await client.get("/metrics")).text

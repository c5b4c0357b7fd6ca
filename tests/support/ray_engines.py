"""Engines that actors of Ray load by name, in processes of their own."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import ray

from groundwire.engine import Engine
from groundwire.runtime.errors import ModelError
from groundwire.runtime.protocol import Outcome
from tests.support.adapters import open_engine
from tests.support.streams import classify


def load_noted(folder: str) -> Engine:
    """An engine over slow fake models, whose process and node are noted in a folder."""
    node = ray.get_runtime_context().get_node_id()
    (Path(folder) / f"{os.getpid()}.{node}").touch()

    def classify_slowly(call: Any) -> Outcome:
        time.sleep(0.02)
        return classify(call)

    return open_engine(nli=classify_slowly)


def load_broken(folder: str) -> Engine:
    """An engine whose model fails while the folder has a file ``broken``."""

    def classify_or_fail(call: Any) -> Outcome:
        return ModelError("out of memory") if (Path(folder) / "broken").exists() else classify(call)

    return open_engine(nli=classify_or_fail)


def load_fast() -> Engine:
    """An engine over fake models."""
    return open_engine()

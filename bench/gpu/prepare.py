"""Makes a role's random checkpoint and exports it, on its share of the processors."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import msgspec

from groundwire.export import RoleOptions, export_role
from groundwire.export.roles.names import TARGET_KINDS, find_kind_name
from groundwire.export.verify import language_model
from groundwire.runtime.bundles.bundle import MANIFEST, Bundle
from groundwire.runtime.bundles.manifest import TargetRole
from groundwire.runtime.resources import usable_cores

from ..support import models, spans
from .setup import READER, SPANS, Setup
from .stages import Save, Skipped

TEXTS = 16
"""Texts that an exported graph is compared on, of 64."""
SHARES = {"qa": 6.0, "nli": 3.0, "lm": 3.0, "embedder": 2.0, "qg": 2.0}
"""How the processors are shared; other roles count 1."""


class Exported(msgspec.Struct, frozen=True):
    """A role's graphs."""

    model: str
    precision: str
    checkpoint_seconds: float
    export_seconds: float
    graph_mb: float
    logit_error: float | None
    """Largest error of a logit on the gate's texts, in standard deviations; reported, as random weights prove nothing.
    """
    threads: int


def prepare_spans(setup: Setup, save: Save) -> None:
    """Copy the span finder of the embedded bundle, so that responses have as many spans as real ones."""
    out = setup.bundles / SPANS
    if (out / MANIFEST).exists():
        return
    embedded = Bundle.open("compact")
    role = embedded.manifest.roles[SPANS]
    source = spans.pipeline(setup.work / "spans") if setup.tiny else embedded.file(role.path)  # type: ignore[union-attr]
    export_role(SPANS, RoleOptions(str(source)), out)


def prepare_reader(setup: Setup, save: Save) -> None:
    """Export graphs for the GPU of the embedded reader's weights, unless they are there."""
    if setup.tiny or setup.target is None:
        raise Skipped("the embedded reader is not tiny, and a CPU has its own graphs")
    from groundwire.recipes.reader.bundle import export_reader_bundle

    embedded, out = Bundle.open(READER).directory, setup.bundles / READER
    if not (out / MANIFEST).exists():
        export_reader_bundle(
            embedded,
            out,
            lambda role, stage: print(f"{role}: {stage}", flush=True),
            precision="fp16",
            target=setup.target,
        )


def prepare(setup: Setup, save: Save, role: str) -> None:
    """Write the checkpoint and the bundle of ``role``, unless they are there."""
    threads = _take_processors(setup, role)
    import torch

    torch.set_num_threads(threads)
    started = time.perf_counter()
    folder = models.checkpoint(setup.work, setup.size, role)
    written = time.perf_counter()
    out = setup.bundles / role
    if not (out / MANIFEST).exists():
        # A role without graphs for CUDA runs its own there.
        target = setup.target if find_kind_name(role) in TARGET_KINDS["cuda"] else None
        options = RoleOptions(str(folder), precision=setup.precision, allow_unverified=True, target=target)
        with fewer_gate_texts(TEXTS):
            export_role(role, options, out, watch=lambda role, stage: print(f"{role}: {stage}", flush=True))
    opened = Bundle.open(out)
    record = opened.manifest.roles[role]
    of_target = record.find_target("cuda") if setup.target and isinstance(record, TargetRole) else None
    parity = (of_target or record).parity  # type: ignore[union-attr]
    save(
        Exported(
            models.NAMES[role],
            (of_target or record).precision,  # type: ignore[union-attr]
            round(written - started, 1),
            round(time.perf_counter() - written, 1),
            round(models.graph_bytes(opened, role) / 1e6, 1),
            None if parity is None else parity.max_logit_error / parity.logit_std,
            threads,
        )
    )


@contextmanager
def fewer_gate_texts(count: int) -> Iterator[None]:
    """Inside the block an export is compared with its checkpoint on ``count`` texts: random weights prove nothing."""
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("groundwire.export") and hasattr(module, "EXAMPLES"):
                stack.enter_context(mock.patch.object(module, "EXAMPLES", module.EXAMPLES[:count]))
        stack.enter_context(mock.patch.object(language_model, "APART", count // 2))
        yield


def _take_processors(setup: Setup, role: str) -> int:
    """Bind this process to its share of the processors, so that exports at the same time do not wait for each other."""
    processors = sorted(os.sched_getaffinity(0))
    weights = [SHARES.get(name, 1.0) for name in setup.roles]
    ends = [round(end / sum(weights) * len(processors)) for end in itertools.accumulate(weights)]
    index = setup.roles.index(role)
    share = processors[ends[index - 1] if index else 0 : ends[index]] or [processors[index % len(processors)]]
    os.sched_setaffinity(0, share)
    return usable_cores()

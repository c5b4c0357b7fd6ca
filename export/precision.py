"""The lowest precision whose graphs still agree with their checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import onnx_ir as ir

from groundwire.runtime.bundle import Parity, Precision
from groundwire.runtime.errors import ParityError

from .options import Gate, RoleOptions
from .passes import quantize, to_half
from .verify import Reference
from .verify.sensitivity import by_sensitivity

_RETRIED = 3
"""Largest float weights of a mixed graph that are tried in int8 again."""


@dataclass(frozen=True)
class Lowered:
    """Graphs at the precision they passed their gate at."""

    graphs: tuple[ir.Model, ...]
    precision: Precision
    parity: Parity


def lower(
    graphs: Sequence[ir.Model],
    reference: Reference,
    options: RoleOptions,
    *,
    keep_in_half: tuple[str, ...] = (),
    begins: Callable[[], None] = lambda: None,
) -> Lowered:
    """Lower float32 ``graphs`` as far as ``options`` ask and the gate lets them.

    int8 that fails is tried with its most sensitive weights in float (``mixed``), then fp32 is taken; fp16 that fails
    becomes fp32. With ``allow_unverified`` nothing else is tried and the certificate says ``waived``. ``keep_in_half``
    names modules that stay float32 in fp16 graphs; ``begins`` is called when verification begins. ParityError when even
    fp32 is off: then the conversion is wrong, not the rounding.
    """
    tried: list[str] = []

    def attempt(
        precision: Precision, made: tuple[ir.Model, ...], gate: Gate, kept: Sequence[str] = ()
    ) -> Lowered | None:
        begins()
        parity = msgspec.structs.replace(reference.compare(made), kept_float=tuple(kept))
        failures = gate.failures(parity)
        if failures and options.allow_unverified:
            return Lowered(made, precision, msgspec.structs.replace(parity, gate="waived"))
        if failures:
            tried.append(f"{precision}: {'; '.join(failures)}")
            return None
        return Lowered(made, precision, parity)

    done: Lowered | None = None
    if options.precision == "fp16":
        halved = tuple(_copy(graph, lambda m: to_half(m, keep_in_half)) for graph in graphs)
        done = attempt("fp16", halved, options.gate)
    elif options.precision == "int8":
        done = attempt("int8", tuple(_copy(graph, quantize) for graph in graphs), options.gate)
        done = done or _mixed(graphs, reference, lambda made, kept: attempt("mixed", made, options.gate, kept))
    done = done or attempt("fp32", tuple(graphs), Gate.exact())
    if done is None:
        raise ParityError(
            f"The graphs of {options.source!r} do not agree with the checkpoint ({' | '.join(tried)}). "
            "If the weights are random, as in a benchmark, pass --allow-unverified; else the architecture differs from "
            "what the exporter knows."
        )
    return done


def _mixed(
    graphs: Sequence[ir.Model],
    reference: Reference,
    attempt: Callable[[tuple[ir.Model, ...], Sequence[str]], Lowered | None],
) -> Lowered | None:
    """int8 with as few weights in float as the gate needs, up to half of them.

    Weights come back in the order of their effect, in doubling steps, then the last step is bisected. Whatever is large
    among them, an embedding table mostly, is then tried in int8 again, because it may have come along for nothing.
    """
    order = [name for _, name in by_sensitivity(graphs, reference)]

    def keeping(kept: Sequence[str]) -> Lowered | None:
        return attempt(tuple(_copy(graph, lambda m: quantize(m, frozenset(kept))) for graph in graphs), kept)

    most = len(order) // 2
    failed, passed, best = 0, len(order), None
    while best is None and failed < most:
        count = min(max(1, 2 * failed), most)
        best = keeping(order[:count])
        failed, passed = (failed, count) if best else (count, passed)
    while best is not None and passed - failed > 1:
        middle = (failed + passed) // 2
        better = keeping(order[:middle])
        best, failed, passed = (better, failed, middle) if better else (best, middle, passed)
    if best is not None:
        sizes = {name: _bytes(graphs, name) for name in best.parity.kept_float}
        for name in sorted(sizes, key=lambda name: -sizes[name])[:_RETRIED]:
            best = keeping([other for other in best.parity.kept_float if other != name]) or best
    return best


def _bytes(graphs: Sequence[ir.Model], name: str) -> int:
    found = (graph.graph.initializers.get(name) for graph in graphs)
    return max(value.const_value.nbytes for value in found if value is not None and value.const_value is not None)


def _copy(graph: ir.Model, change: Callable[[ir.Model], None]) -> ir.Model:
    copy = graph.clone()
    change(copy)
    return copy

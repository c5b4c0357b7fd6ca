"""The lowest precision whose graphs still agree with their checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import onnx_ir as ir

from groundwire.runtime.bundles.manifest import Parity, Precision, Ranges
from groundwire.runtime.errors import ParityError

from .options import Gate, RoleOptions
from .passes import add_quantization, quantize, quantize_blocks, round_to_half, to_half
from .verify import ReferenceOutputs
from .verify.ranges import HALF_LIMIT, STATES, Magnitudes, measure_magnitudes
from .verify.sensitivity import rank_by_sensitivity

_RETRIED = 3
"""Largest float weights of a mixed graph that are tried in int8 again."""


@dataclass(frozen=True)
class VerifiedGraphs:
    """Graphs, at the precision at which they passed their gate."""

    graphs: tuple[ir.Model, ...]
    precision: Precision
    parity: Parity


def reduce_precision(
    graphs: Sequence[ir.Model],
    reference: ReferenceOutputs,
    options: RoleOptions,
    *,
    keep_in_half: Sequence[tuple[str, ...]] = (),
    on_verify: Callable[[], None] = lambda: None,
) -> VerifiedGraphs:
    """Reduce float32 ``graphs`` to the precision that ``options`` ask for, if they pass the gate there.

    int4 that fails is tried as int8. int8 that fails is tried with its most sensitive weights in float (``mixed``),
    then fp32 is taken; fp16 that fails, or whose states do not fit float16, becomes fp32. fp16 graphs are compared with
    each result rounded to float16.
    Graphs for a target are quantized as it takes them, and int8 or fp8 that fails becomes fp16. With
    ``allow_unverified`` only the first precision is tried and the parity report says ``waived``. ``keep_in_half`` names
    modules of each graph that stay float32 in fp16; ``on_verify`` is called when each verification begins. ParityError
    when even fp32 fails: then the conversion is wrong, not the rounding.
    """
    tried: list[str] = []

    def attempt(
        precision: Precision,
        candidate: tuple[ir.Model, ...],
        gate: Gate,
        in_float: Sequence[str] = (),
        ranges: Ranges | None = None,
    ) -> VerifiedGraphs | None:
        on_verify()
        compared = candidate if ranges is None else tuple(map(round_to_half, candidate))
        parity = msgspec.structs.replace(
            reference.compare(compared), kept_float=tuple(in_float), ranges=msgspec.UNSET if ranges is None else ranges
        )
        failures = gate.failures(parity)
        if failures and options.allow_unverified:
            return VerifiedGraphs(candidate, precision, msgspec.structs.replace(parity, gate="waived"))
        if failures:
            tried.append(f"{precision}: {'; '.join(failures)}")
            return None
        return VerifiedGraphs(candidate, precision, parity)

    def attempt_half() -> VerifiedGraphs | None:
        on_verify()
        magnitudes = measure_magnitudes(graphs, reference)
        ranges = _describe_ranges(magnitudes)
        if states := sorted(name for name in ranges.kept_float if name.startswith(STATES)):
            tried.append(f"fp16: {states[0]} reaches {ranges.kept_float[states[0]]:.4g}, beyond {HALF_LIMIT:.0f}")
            return None

        def halve(candidates: Sequence[ir.Model]) -> tuple[ir.Model, ...]:
            halved = tuple(graph.clone() for graph in candidates)
            names = keep_in_half or [()] * len(halved)
            for graph, in_float, of_graph in zip(halved, names, magnitudes, strict=True):
                to_half(graph, in_float, _find_large(of_graph))
            return halved

        if options.precision in ("int8", "fp8"):
            quantized = _change_copies(
                graphs,
                magnitudes,
                lambda graph, of_graph: add_quantization(graph, options.precision, of_graph, HALF_LIMIT),  # type: ignore[arg-type]
            )
            verified = attempt(options.precision, halve(quantized), options.gate, (), ranges)
            if verified is not None:
                return verified
        return attempt("fp16", halve(graphs), options.gate, ranges=ranges)

    verified: VerifiedGraphs | None = None
    if options.precision == "fp16" or (options.target is not None and options.precision != "fp32"):
        verified = attempt_half()
    elif options.precision == "int4":
        verified = attempt("int4", tuple(_change_copy(graph, quantize_blocks) for graph in graphs), options.gate)
    if verified is None and options.precision in ("int8", "int4") and options.target is None:
        verified = attempt("int8", tuple(_change_copy(graph, quantize) for graph in graphs), options.gate)
        verified = verified or _search_mixed(
            graphs, reference, lambda candidate, float_names: attempt("mixed", candidate, options.gate, float_names)
        )
    verified = verified or attempt("fp32", tuple(graphs), Gate.exact())
    if verified is None:
        raise ParityError(
            f"The graphs of {options.source!r} do not agree with the checkpoint ({' | '.join(tried)}). "
            "If the weights are random, as in a benchmark, pass --set allow_unverified=true; else the exporter does "
            "not convert this architecture correctly."
        )
    return verified


def _describe_ranges(magnitudes: Sequence[Magnitudes]) -> Ranges:
    """Return what exceeds the limit in any of a role's graphs, and the largest of the rest."""
    large: Magnitudes = {}
    for of_graph in magnitudes:
        large |= {name: max(value, large.get(name, 0.0)) for name, value in _find_large(of_graph).items()}
    rest = [value for of_graph in magnitudes for value in of_graph.values() if value <= HALF_LIMIT]
    return Ranges(HALF_LIMIT, max(rest, default=0.0), dict(sorted(large.items())))


def _find_large(magnitudes: Magnitudes) -> Magnitudes:
    return {name: value for name, value in magnitudes.items() if value > HALF_LIMIT}


def _search_mixed(
    graphs: Sequence[ir.Model],
    reference: ReferenceOutputs,
    attempt: Callable[[tuple[ir.Model, ...], Sequence[str]], VerifiedGraphs | None],
) -> VerifiedGraphs | None:
    """Return int8 graphs with as few weights in float as the gate needs, up to half of them; None when that fails.

    Weights return to float in the order of their effect, in doubling steps, then the last step is bisected. The largest
    of them, an embedding table mostly, are then tried in int8 again, because they may not have been needed.
    """
    order = [name for _, name in rank_by_sensitivity(graphs, reference)]

    def keep_float(in_float: Sequence[str]) -> VerifiedGraphs | None:
        return attempt(
            tuple(_change_copy(graph, lambda m: quantize(m, frozenset(in_float))) for graph in graphs), in_float
        )

    most = len(order) // 2
    failed, passed, best = 0, len(order), None
    while best is None and failed < most:
        count = min(max(1, 2 * failed), most)
        best = keep_float(order[:count])
        failed, passed = (failed, count) if best else (count, passed)
    while best is not None and passed - failed > 1:
        middle = (failed + passed) // 2
        better = keep_float(order[:middle])
        best, failed, passed = (better, failed, middle) if better else (best, middle, passed)
    if best is not None:
        sizes = {name: _count_bytes(graphs, name) for name in best.parity.kept_float}
        for name in sorted(sizes, key=lambda name: -sizes[name])[:_RETRIED]:
            best = keep_float([other for other in best.parity.kept_float if other != name]) or best
    return best


def _count_bytes(graphs: Sequence[ir.Model], name: str) -> int:
    values = (graph.graph.initializers.get(name) for graph in graphs)
    return max(value.const_value.nbytes for value in values if value is not None and value.const_value is not None)


def _change_copies(
    graphs: Sequence[ir.Model], magnitudes: Sequence[Magnitudes], change: Callable[[ir.Model, Magnitudes], None]
) -> tuple[ir.Model, ...]:
    return tuple(
        _change_copy(graph, lambda copy, of_graph=of_graph: change(copy, of_graph))  # type: ignore[misc]
        for graph, of_graph in zip(graphs, magnitudes, strict=True)
    )


def _change_copy(graph: ir.Model, change: Callable[[ir.Model], None]) -> ir.Model:
    copy = graph.clone()
    change(copy)
    return copy

"""Joins graphs that compute mostly the same: heads on one encoder become outputs of one graph."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

import onnx_ir as ir
from onnx_ir.passes import common

SHARED = 0.9
"""Share of its nodes that a graph must have in common with another to be joined with it."""


def join_graphs(graphs: Mapping[str, ir.Model]) -> list[tuple[ir.Model, tuple[str, ...]]]:
    """Join what shares an encoder; every graph has one output, which takes its key as its name.

    Returns the graphs that result, each with the keys whose outputs it has, in order. A graph that shares nothing is
    returned as it is, its output under its own name. The graphs given may be changed.
    """
    joined: list[tuple[ir.Model, tuple[str, ...]]] = []
    for key in sorted(graphs):
        for index, (model, keys) in enumerate(joined):
            both = _merge(model, graphs[key], keys, key)
            if both is not None:
                joined[index] = both, (*keys, key)
                break
        else:
            joined.append((graphs[key], (key,)))
    return joined


def select_output(model: ir.Model, name: str | None) -> ir.Model:
    """Return a copy that computes the output ``name`` alone, under the name that unjoined graphs give it: logits."""
    copy = model.clone()
    outputs = copy.graph.outputs
    if name is not None:
        named = [output for output in outputs if output.name == name]
        outputs[:] = named
        common.RemoveUnusedNodesPass()(copy)
        named[0].name = "logits"
    return copy


def _merge(model: ir.Model, other: ir.Model, keys: tuple[str, ...], key: str) -> ir.Model | None:
    """Both graphs in one, or None when they share too little."""
    inputs = {value.name: value for value in model.graph.inputs}
    if inputs.keys() != {value.name for value in other.graph.inputs}:
        return None
    both, guest = model.clone(), other.clone()
    graph = both.graph
    inputs = {value.name: value for value in graph.inputs}
    size = len(graph)
    for value in guest.graph.inputs:
        ir.convenience.replace_all_uses_with(value, inputs[value.name])
    outputs = list(guest.graph.outputs)
    nodes = list(guest.graph)
    weights = list(guest.graph.initializers.values())
    guest.graph.outputs.clear()
    guest.graph.initializers.clear()
    guest.graph.remove(nodes)
    taken = {*graph.initializers, *(str(node.name) for node in graph)}
    # A graph that was joined before has such names already.
    prefix = next(f"{key}.{n}." for n in count() if not any(name.startswith(f"{key}.{n}.") for name in taken))
    for number, weight in enumerate(weights):
        weight.name = f"{prefix}weight.{number}"
        graph.register_initializer(weight)
    for number, node in enumerate(nodes):
        node.name = f"{prefix}node.{number}"
        for position, value in enumerate(node.outputs):
            value.name = f"{prefix}value.{number}.{position}"
    graph.extend(nodes)
    graph.outputs.extend(outputs)
    common.DeduplicateHashedInitializersPass()(both)
    common.CommonSubexpressionEliminationPass()(both)
    common.RemoveUnusedNodesPass()(both)
    if len(graph) - size > (1 - SHARED) * len(nodes):
        return None
    for output, name in zip(graph.outputs, (*keys, key), strict=True):
        output.name = name
    return both

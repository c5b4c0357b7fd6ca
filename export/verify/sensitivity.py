"""Ranks weights by the error that int8 brings: the order in which mixed precision keeps them in float.

Every weight is tried alone: the rest of the model is float, and its effect is the change of the logits. The error that
a product makes by itself says little: in a trained six-layer classifier the product with the smallest one (0.7 % of its
own output) moved the logits most, because it writes next to an outlier of the residual stream.

One session per weight would be slow, so one graph has both forms of every product, selected by a switch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ..passes.int8 import DEFAULT, Quantizer, Scheme, list_quantizable
from ..session import CpuSession
from .outcome import ReferenceOutputs

SWITCHES = "int8.switches"
"""Input of a switching graph: for each weight, whether it is int8; bool [N]."""


def rank_by_sensitivity(
    graphs: Sequence[ir.Model], reference: ReferenceOutputs, scheme: Scheme = DEFAULT
) -> list[tuple[float, str]]:
    """Return (effect, weight name) of every weight of the float ``graphs`` that int8 takes, largest effect first.

    The effect is the root mean square change of the logits on a few of the fixed texts.
    """
    switched = [add_switches(graph, scheme) for graph in graphs]
    sessions = [CpuSession(graph) for graph, _ in switched]
    names = [weights for _, weights in switched]

    def logits(chosen: str | None) -> npt.NDArray[np.float32]:
        switches = [{SWITCHES: np.array([name == chosen for name in weights])} for weights in names]
        return reference.probe(sessions, switches)

    exact = logits(None)
    every = dict.fromkeys(name for weights in names for name in weights)
    effects = {name: float(np.sqrt(np.square(logits(name) - exact).mean())) for name in every}
    return sorted(((effect, name) for name, effect in effects.items()), reverse=True)


def add_switches(graph: ir.Model, scheme: Scheme = DEFAULT) -> tuple[ir.Model, list[str]]:
    """Return a copy of ``graph`` with both forms of its weights, and their names in the order of the switches."""
    copy = graph.clone()
    names = list_quantizable(copy, scheme)
    _Switcher(copy, scheme, names).run()
    return copy, names


class _Switcher(Quantizer):
    """Adds the int8 form of a weight beside the float one instead of replacing it."""

    def __init__(self, model: ir.Model, scheme: Scheme, names: list[str]) -> None:
        super().__init__(model, scheme)
        self._names = names
        self._switches = ir.Value(name=SWITCHES, type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([len(names)]))
        model.graph.inputs.append(self._switches)

    def replace(self, node: ir.Node, weight: ir.Value, result: ir.Value) -> None:
        """Choose between ``result`` and the output of ``node`` by the weight's switch."""
        index = self._names.index(str(weight.name))
        position = self.constant(f"switch_{index}", np.array(index, np.int64))
        graph, former = node.graph, node.outputs[0]
        assert graph is not None
        switch = ir.node("Gather", [self._switches, position], {"axis": 0})
        choice = ir.node("Where", [switch.outputs[0], result, former])
        name, visible = former.name, former.is_graph_output()
        chosen = choice.outputs[0]
        chosen.type, chosen.shape = former.type, former.shape
        ir.convenience.replace_all_uses_with(former, chosen, replace_graph_outputs=True)
        choice.replace_input_with(2, former)
        graph.insert_after(node, [switch, choice])
        if visible:
            former.name, chosen.name = f"{name}.float", name

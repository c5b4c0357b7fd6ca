"""PMI-Decode's rule inside the decoding step (Nandwani et al. 2023, §4.2, and their code).

With a the log-probabilities given document and history, and b those given the history alone::

    score = alpha · (a - b) + (1 - alpha) · a = a - alpha · b     inside the top-p set of a, -inf outside

No score is NaN unless the model's own numbers are: b is bounded below, so a token that only the second context
rules out is far better, not infinitely; alpha 0 then gives a, exactly; and what a rules out is -inf, whatever b is.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ...passes.head import initializer

NUCLEUS = 256
"""Most probable tokens among which the top-p set is searched first. That of a trained model is nearly always smaller;
when one of a batch is larger, the whole vocabulary is sorted in that step, with the same result for the others."""
FLOOR = -30000.0
"""Least log-probability given the history alone; float16 holds it."""


def add_contrast(model: ir.Model, vocabulary: int) -> ir.Model:
    """Replace the logits [C · B, K, V] of C contexts by the ``count`` best candidates of every beam.

    New inputs: ``count`` [1]; ``alpha`` and ``top_p`` [B], one for each source; ``banned`` [B, K, N], tokens that may
    not follow, filled up with -1. New outputs [B, K, count], best first: ``scores``, ``candidates``, ``log_probs`` (a)
    and ``cpmi`` (a - b). The first context has the document, the last does not: with C = 1 they are the same, and
    with alpha 0 that is plain decoding.
    """
    return _Contrast(model, vocabulary).run()


class _Contrast:
    def __init__(self, model: ir.Model, vocabulary: int) -> None:
        self._model = model
        self._graph = model.graph
        self._vocabulary = vocabulary
        self._constants: dict[str, ir.Value] = {}

    def run(self) -> ir.Model:
        graph = self._graph
        logits = graph.outputs[0]
        count = self._input("count", ir.DataType.INT64, [1])
        alpha = self._input("alpha", ir.DataType.FLOAT, ["contrasted"])
        top_p = self._input("top_p", ir.DataType.FLOAT, ["contrasted"])
        banned = self._input("banned", ir.DataType.INT64, ["contrasted", "beams", "banned"])
        logits.shape = ir.Shape(["sources", "beams", self._vocabulary])

        likely, alone = self._log_probs(logits, self._add("Shape", alpha))
        likely = self._ban(likely, banned)
        alone = self._add("Max", alone, self._number("floor", FLOOR))
        difference = self._add("Sub", likely, alone)
        weighted = self._add("Sub", likely, self._add("Mul", self._per_source(alpha), alone))
        scores = self._add("Where", self._is_outside(likely, self._per_source(top_p)), self._impossible, weighted)

        best = ir.node("TopK", [scores, count], {"axis": -1, "largest": 1, "sorted": 1}, num_outputs=2)
        graph.append(best)
        values, tokens = best.outputs
        chosen = [self._add("GatherElements", table, tokens, axis=-1) for table in (likely, difference)]
        graph.outputs[0:1] = [values, tokens, *chosen]
        for value, name in zip(graph.outputs[:4], ("scores", "candidates", "log_probs", "cpmi"), strict=True):
            value.name = name
            value.type = ir.TensorType(ir.DataType.INT64 if name == "candidates" else ir.DataType.FLOAT)
            value.shape = ir.Shape(["contrasted", "beams", "chosen"])
        return self._model

    def _log_probs(self, logits: ir.Value, sources: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return a and b [B, K, V]: of the first context and of the last."""
        rest = self._add("Shape", logits, start=1)
        split = self._add("Concat", self._integers("any", [-1]), sources, rest, axis=0)
        by_context = self._add("Reshape", logits, split)
        first = self._add("Gather", by_context, self._integers("first", 0), axis=0)
        last = self._add("Gather", by_context, self._integers("last", -1), axis=0)
        return self._add("LogSoftmax", first, axis=-1), self._add("LogSoftmax", last, axis=-1)

    def _ban(self, likely: ir.Value, banned: ir.Value) -> ir.Value:
        """Set the banned tokens to -inf; -1 among them bans nothing."""
        real = self._add("GreaterOrEqual", banned, self._integers("zero", 0))
        limit = self._add("Where", real, self._impossible, self._add("Neg", self._impossible))
        tokens = self._add("Max", banned, self._integers("zero", 0))
        return self._add("ScatterElements", likely, tokens, limit, axis=-1, reduction="min")

    def _is_outside(self, likely: ir.Value, top_p: ir.Value) -> ir.Value:
        """Return [B, K, V] whether a token is outside the top-p set of the softmax of a, banned tokens excluded.

        A token is inside if the more probable ones have less than ``top_p`` together, so the first always is, and so
        are those as probable as the last one inside. NaN is inside, so that it reaches the scores.
        """
        shares = self._add("LogSoftmax", likely, axis=-1)
        everything = self._add("GreaterOrEqual", top_p, self._number("all", 1.0))
        single = self._integers("one", [1])

        few = self._top(shares, self._integers("few", [min(NUCLEUS, self._vocabulary)]))
        above_few = self._mass_above(few)
        reached = self._add("GreaterOrEqual", self._last(above_few), top_p)
        # Where the first few tokens of all beams reach top_p, the second search is not needed: it looks for one token.
        settled = self._add("Cast", self._add("Or", reached, everything), to=int(ir.DataType.INT64))
        missing = self._add("Sub", single, self._add("Reshape", self._add("ReduceMin", settled, keepdims=0), single))
        more = self._add("Mul", missing, self._integers("rest", [self._vocabulary - 1]))
        many = self._top(shares, self._add("Add", more, single))

        of_few, of_many = (
            self._least_inside(few, above_few, top_p),
            self._least_inside(many, self._mass_above(many), top_p),
        )
        threshold = self._add("Where", reached, of_few, of_many)
        threshold = self._add("Where", everything, self._impossible, threshold)
        return self._add("Less", shares, threshold)

    def _top(self, values: ir.Value, count: ir.Value) -> ir.Value:
        node = ir.node("TopK", [values, count], {"axis": -1, "largest": 1, "sorted": 1}, num_outputs=2)
        self._graph.append(node)
        return node.outputs[0]

    def _mass_above(self, log_probs: ir.Value) -> ir.Value:
        """Return the total probability of the tokens before each."""
        return self._add("CumSum", self._add("Exp", log_probs), self._integers("last", -1), exclusive=1)

    def _last(self, values: ir.Value) -> ir.Value:
        return self._add("Gather", values, self._integers("final", [-1]), axis=-1)

    def _least_inside(self, log_probs: ir.Value, above: ir.Value, top_p: ir.Value) -> ir.Value:
        """Return [B, K, 1] the least log-probability with less than ``top_p`` above it."""
        inside = self._add("Where", self._add("Less", above, top_p), log_probs, self._add("Neg", self._impossible))
        return self._add("ReduceMin", inside, self._integers("final", [-1]), keepdims=1)

    def _per_source(self, values: ir.Value) -> ir.Value:
        """Return [B] as [B, 1, 1]."""
        return self._add("Unsqueeze", values, self._integers("behind", [1, 2]))  # terms: literal

    @cached_property
    def _impossible(self) -> ir.Value:
        # -inf as the logarithm of 0: constants are bounded when a graph is brought to float16.
        return self._add("Log", self._number("nothing", 0.0))

    def _add(self, op: str, *inputs: ir.Value, **attributes: int | str) -> ir.Value:
        node = ir.node(op, list(inputs), attributes)
        self._graph.append(node)
        return node.outputs[0]

    def _input(self, name: str, dtype: ir.DataType, shape: list[int | str]) -> ir.Value:
        value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape))
        self._graph.inputs.append(value)
        return value

    def _number(self, name: str, value: float) -> ir.Value:
        return self._constant(name, np.array(value, np.float32))

    def _integers(self, name: str, value: int | list[int]) -> ir.Value:
        return self._constant(name, np.array(value, np.int64))

    def _constant(self, name: str, array: npt.NDArray[np.generic]) -> ir.Value:
        if name not in self._constants:
            self._constants[name] = initializer(self._graph, f"contrast.{name}", array)
        return self._constants[name]

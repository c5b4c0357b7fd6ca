"""Products of bytes: whether a processor's sums of them are exact or saturate.

python -m tests.support.products FILE           # prints what this processor makes of the graph in FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort

DEPTH = 64
EXACT, SATURATED = 255 * 127 * DEPTH, 32767 * DEPTH // 2
"""The sum, and what is left of it where two products are added in 16 bits."""


def write_product(path: Path) -> Path:
    """Write a graph that multiplies ``x`` uint8 [N, 64] with weights of 127."""
    from onnx import TensorProto, helper

    weights = helper.make_tensor("w", TensorProto.INT8, (DEPTH, 16), np.full((DEPTH, 16), 127, np.int8).tobytes(), True)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [None, DEPTH])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def multiply(path: Path) -> int:
    """A sum of products of the largest numbers of uint8 and int8, by the graph at ``path``."""
    session = ort.InferenceSession(path.read_bytes())
    return int(session.run(None, {"x": np.full((2, DEPTH), 255, np.uint8)})[0][0, 0])


if __name__ == "__main__":
    print(multiply(Path(sys.argv[1])))

"""Graphs that move nothing between the host and a GPU give the same numbers."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest
from onnx import numpy_helper

from groundwire.runtime.ort.placement import keep_on_device


def run(content: bytes, **feeds: np.ndarray) -> list[np.ndarray]:
    outputs: list[np.ndarray] = ort.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, feeds)
    return outputs


def serialize(text: str) -> bytes:
    """A model with its constants as raw data, as exported graphs have them."""
    model = onnx.parser.parse_model(text)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    content: bytes = model.SerializeToString()
    return content


def list_operators(content: bytes) -> list[str]:
    return [node.op_type for node in onnx.load_from_string(content).graph.node]


def make_scale(first: int = -1) -> bytes:
    """y = x · √D, D read from the shape of x as [B, H, T, D], or another size."""
    return serialize(
        f"""
        <ir_version: 8, opset_import: ["": 20]>
        scale (float[rows, tokens, 8] x) => (float[rows, 2, tokens, 4] y)
        <int64[1] free = {{-1}}, int64[1] begin = {{{first}}}, int64[1] end = {{{2**62 if first == -1 else first + 1}}},
         int64 heads = {{2}}, int64 size = {{4}}, int64[1] front = {{0}}>
        {{
            whole = Shape (x)
            rows_ = Shape <start: int = 0, end: int = 1> (x)
            two = Unsqueeze (heads, front)
            four = Unsqueeze (size, front)
            parts = Concat <axis: int = 0> (rows_, free, two, four)
            split = Reshape (x, parts)
            moved = Transpose <perm: ints = [0, 2, 1, 3]> (split)
            sizes = Shape (moved)
            last = Slice (sizes, begin, end)
            number = Cast <to: int = 1> (last)
            root = Sqrt (number)
            y = Mul (moved, root)
        }}"""
    )


def test_a_constant_size_is_a_constant() -> None:
    before = make_scale()
    after = keep_on_device(before)
    assert after is not None
    assert "Slice" not in list_operators(after)
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
    assert np.array_equal(run(before, x=x)[0], run(after, x=x)[0])


def test_a_size_that_may_change_is_read() -> None:
    assert keep_on_device(make_scale(first=2)) is None


@pytest.mark.parametrize("missing", [0, 3])
def test_whole_numbers_are_padded_where_cuda_has_a_kernel(missing: int) -> None:
    before = serialize(
        """
        <ir_version: 8, opset_import: ["": 20]>
        pad (int64[rows] x, int64[1] more) => (int64[all] y)
        <int64[1] none = {0}, int64 filler = {7}>
        {
            pads = Concat <axis: int = 0> (none, more)
            y = Pad (x, pads, filler)
        }"""
    )
    after = keep_on_device(before)
    assert after is not None
    assert list_operators(after).count("Cast") == 3
    x, more = np.array([1, -5, 2**40 + 1]), np.array([missing])
    expected = [1, -5, 2**40 + 1, *[7] * missing]
    assert run(after, x=x, more=more)[0].tolist() == run(before, x=x, more=more)[0].tolist() == expected


@pytest.mark.parametrize("rest", ["", ", 4"])
def test_rows_of_a_table_in_blocks_are_those_of_one_table(rest: str) -> None:
    """As ``export/passes/head.py`` writes look-ups: six rows in blocks of two."""
    before = serialize(
        f"""
        <ir_version: 8, opset_import: ["": 20]>
        look_up (int64[texts, tokens] x, float[3, 2{rest}] table) => (float[texts, tokens{rest}] y)
        <int64 size = {{2}}, int64[1] last = {{-1}}>
        {{
            block = Div (x, size)
            row = Mod (x, size)
            block_wide = Unsqueeze (block, last)
            row_wide = Unsqueeze (row, last)
            both = Concat <axis: int = -1> (block_wide, row_wide)
            y = GatherND (table, both)
        }}"""
    )
    after = keep_on_device(before)
    assert after is not None
    assert "GatherND" not in list_operators(after)
    table = np.random.default_rng(0).normal(size=(3, 2, 4) if rest else (3, 2)).astype(np.float32)
    x = np.array([[0, 5, 3], [1, 1, 4]])
    assert np.array_equal(run(before, x=x, table=table)[0], run(after, x=x, table=table)[0])
    assert np.array_equal(run(after, x=x, table=table)[0], table.reshape(6, *table.shape[2:])[x])


def test_another_graph_is_left_alone() -> None:
    graph = '<ir_version: 8, opset_import: ["": 20]> g (float[1] x) => (float[1] y) {y = Abs (x)}'
    assert keep_on_device(serialize(graph)) is None

"""The head of a language model by itself, against a softmax over the whole vocabulary."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from groundwire.export.passes import Scheme, head, quantize
from groundwire.export.passes.chunked_head import TABLE, split_head
from groundwire.export.session import CpuSession
from groundwire.runtime.ort.chunked_head import combine_parts
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.ort.session import Session as RuntimeSession
from tests.support.heads import Head, lone
from tests.support.processor import exact_products


@exact_products
@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("vocabulary", [40, 509, 3 * 1733, 4 * 2048])
def test_heads_equal_a_whole_softmax(vocabulary: int, bias: bool) -> None:
    """One block, a prime, odd blocks, even blocks; the first and the last token among the targets."""
    given = lone(vocabulary, bias=bias)
    feeds = {"hidden": given.states, "targets": given.targets}
    for streamed in (True, False):
        log_probs = CpuSession(given.graph(streamed=streamed))(feeds)["log_probs"]
        np.testing.assert_allclose(log_probs, given.expected(), atol=2e-5)
    graph = given.graph(streamed=True)
    assert_alone_as_together(graph, given)
    quantize(graph, scheme=Scheme(min_table=1))
    assert [node.op_type for node in graph.graph][-1] == ("BiasedInt8Head" if bias else "Int8Head")
    log_probs = CpuSession(graph)(feeds)["log_probs"]
    np.testing.assert_allclose(log_probs, given.expected(), atol=0.3)
    assert_alone_as_together(graph, given)


def assert_alone_as_together(graph: ir.Model, given: Head) -> None:
    """A position's number does not depend on its place, nor on the company; with one thread and with two."""
    with tempfile.TemporaryDirectory() as folder:
        ir.save(graph, Path(folder, "head.onnx"))
        for threads in (1, 2):
            session = RuntimeSession.load(Path(folder, "head.onnx"), DeviceProfile.of("cpu", threads))
            (together,) = session.run({"hidden": given.states, "targets": given.targets})
            for some in (range(8), *(range(at, at + 16) for at in range(3, 600, 37)), [5, 4, 3, 2, 1, 0, 0, 0]):
                (again,) = session.run({"hidden": given.states[some], "targets": given.targets[some]})
                assert np.array_equal(again, together[some])


@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("vocabulary", [509, 3 * 1733, 4 * 2048])
def test_a_large_head_becomes_a_graph_of_its_own(vocabulary: int, bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head, "SHARED", 1000)
    given = lone(vocabulary, bias=bias)
    single = given.graph(streamed=True)
    assert split_head(single) is None  # float
    single.graph.inputs[0].name = "states"
    quantize(single, scheme=Scheme(min_table=1))
    body = single.clone()
    alone = split_head(body)
    assert alone is not None
    assert [[value.name for value in values] for values in (body.graph.inputs, body.graph.outputs)] == [
        ["states"],
        ["hidden"],
    ]
    assert not [name for name, value in body.graph.initializers.items() if value.const_value.size >= vocabulary]
    hidden = CpuSession(body)({"states": given.states})["hidden"]
    asked = {"hidden": hidden, "targets": given.targets}
    with tempfile.TemporaryDirectory() as folder:
        ir.save(alone, Path(folder, "head.onnx"))
        session = RuntimeSession.load(Path(folder, "head.onnx"), DeviceProfile.of("cpu", 1))
        assert session.inputs == ("hidden", "targets")
        (parts,) = session.run(asked)
        table = alone.graph.initializers[TABLE].const_value.numpy()
        for block in range(len(table)):
            chunk = {TABLE: table[block : block + 1], "blocks": np.array([block])}
            assert np.array_equal(session.run({**asked, **chunk})[0], parts[block : block + 1])
    assert parts.shape == (len(table), 2, 640)
    expected = CpuSession(single)({"states": given.states, "targets": given.targets})["log_probs"]
    np.testing.assert_allclose(combine_parts(parts), expected, atol=1e-5)


def test_the_head_of_a_small_table_stays() -> None:
    graph = lone(4 * 2048, bias=False).graph(streamed=True)
    quantize(graph, scheme=Scheme(min_table=1))
    assert split_head(graph) is None
    assert [value.name for value in graph.graph.outputs] == ["log_probs"]


def test_a_head_survives_logits_that_exp_does_not() -> None:
    given = lone(4 * 2048, bias=False, loud=300.0)
    log_probs = CpuSession(given.graph(streamed=True))({"hidden": given.states, "targets": given.targets})["log_probs"]
    assert given.expected().min() < -1000
    np.testing.assert_allclose(log_probs, given.expected(), rtol=1e-5, atol=1e-3)


def test_a_head_without_targets_reads_no_table() -> None:
    """States that would make every number NaN do not."""
    given = lone(4 * 2048, bias=False)
    states = np.full((2, 16), np.nan, np.float32)
    log_probs = CpuSession(given.graph(streamed=True))({"hidden": states, "targets": np.array([-1, -1])})["log_probs"]
    assert log_probs.tolist() == [0.0, 0.0]


def test_a_nan_reaches_the_log_probabilities() -> None:
    given = lone(4 * 2048, bias=False)
    graph = given.graph(streamed=True)
    quantize(graph, scheme=Scheme(min_table=1))
    given.states[1, 3] = np.nan
    log_probs = CpuSession(graph)({"hidden": given.states, "targets": given.targets})["log_probs"]
    assert np.isnan(log_probs).tolist() == [False, True, *[False] * 638]


@pytest.mark.parametrize(
    ("vocabulary", "rows"),
    [(250_880, 1960), (50_257, 1733), (50_272, 1571), (32_000, 2000), (256_008, 10_667), (600, 600), (40, 40),
     (65_537, 65_537)],
)  # fmt: skip
def test_blocks_divide_the_vocabulary(vocabulary: int, rows: int) -> None:
    assert head.block_rows(vocabulary) == rows
    assert vocabulary % rows == 0

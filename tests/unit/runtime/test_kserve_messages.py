"""Requests and responses of the Open Inference Protocol, and every way in which a server may answer wrongly."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from groundwire.runtime import Endpoint
from groundwire.runtime.errors import InvalidRequest, ModelError, ServerError
from groundwire.runtime.kserve.endpoint import check_backend
from groundwire.runtime.kserve.messages import HEADER_LENGTH, decode_response, encode_request
from groundwire.runtime.kserve.specs import _DATATYPES, GraphSpec, TensorSpec

BY_NAME = {datatype.name: datatype for datatype in _DATATYPES.values()}
FLOATS = TensorSpec("logits", BY_NAME["FP32"], ("batch", 2))
SPEC = GraphSpec((TensorSpec("ids", BY_NAME["INT64"], ("batch", "width")),), (FLOATS,))
GOOD = {"name": "logits", "datatype": "FP32", "shape": [1, 2], "data": [0.5, 1.5]}
BYTES = {"name": "logits", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}


def answer(output: dict[str, Any] | None, tail: bytes = b"") -> tuple[bytes, str | None]:
    header = json.dumps({"outputs": [] if output is None else [output]}).encode()
    return header + tail, str(len(header)) if tail else None


def decode(content: bytes, length: str | None) -> list[Any]:
    return decode_response(SPEC, content, length, {"batch": 1}, "m")


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("name", sorted(BY_NAME))
@settings(max_examples=20)
@given(data=st.data())
def test_arrays_survive_the_way_there_and_back(binary: bool, name: str, data: st.DataObject) -> None:
    datatype = BY_NAME[name]
    elements = {"allow_nan": False, "allow_infinity": False} if datatype.numpy.kind == "f" else {}
    shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
    array = data.draw(arrays.arrays(datatype.numpy, shapes, elements=arrays.from_dtype(datatype.numpy, **elements)))
    tensor = TensorSpec("x", datatype, ("",) * array.ndim)
    spec = GraphSpec((tensor,), (tensor,))
    body, headers = encode_request(spec, {"x": array}, "m", binary=binary)
    length = int(headers.get(HEADER_LENGTH, len(body)))
    request = json.loads(body[:length])
    reply = json.dumps({"outputs": request["inputs"]}).encode()
    (back,) = decode_response(spec, reply + body[length:], str(len(reply)) if binary else None, {}, "m")
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    back[...] = 0  # what a session gives can be written to


@pytest.mark.parametrize(
    ("content", "length", "message"),
    [
        (*answer(None), "gave no output logits"),
        (*answer(GOOD | {"name": "other"}), "gave no output logits"),
        (*answer(GOOD | {"datatype": "FP16"}), "logits is FP16, not FP32"),
        (*answer(GOOD | {"shape": [1, 3]}), "2 numbers for the shape"),
        (*answer(GOOD | {"shape": [2, 1]}), r"the shape \[2, 1\], but its graph gives \[1, 2\]"),
        (*answer(GOOD | {"shape": [2]}), r"the shape \[2\]"),
        (*answer(GOOD | {"shape": [-1, -2]}), r"the shape \[-1, -2\]"),
        (*answer(GOOD | {"shape": [2, 2], "data": [1, 2, 3, 4]}), r"the shape \[2, 2\]"),
        (*answer(GOOD | {"data": [0.5, None]}), "not numbers"),
        (*answer(GOOD | {"data": ["1", "2"]}), "not numbers"),
        (*answer(GOOD | {"data": [[1], [1, 2]]}), "otherwise than the protocol"),
        (*answer(GOOD | {"data": None}), "data is NoneType"),
        (*answer(BYTES, b"\0" * 4), "4 bytes for the shape"),
        (*answer(BYTES | {"parameters": {"binary_data_size": 4}}, b"\0" * 8), "4 bytes for the shape"),
        (*answer(BYTES | {"parameters": {"binary_data_size": -8}}, b"\0" * 8), "0 bytes for the shape"),
        (*answer(BYTES | {"parameters": {"binary_data_size": "8"}}, b"\0" * 8), "for the shape"),
        (b"<html>", None, "JSON is malformed"),
        (b"{}", None, "outputs"),
        (b"{}", "9", "the body has 2 bytes"),
        (b"{}", "x", "invalid literal"),
    ],
)
def test_a_wrong_answer_is_an_error(content: bytes, length: str | None, message: str) -> None:
    with pytest.raises(ServerError, match=message):
        decode(content, length)


def test_json_may_be_nested_and_bytes_follow_in_order() -> None:
    assert decode(*answer(GOOD | {"data": [[0.5, 1.5]]}))[0].tolist() == [[0.5, 1.5]]
    other = {"name": "other", "datatype": "INT8", "shape": [3], "parameters": {"binary_data_size": 3}}
    header = json.dumps({"outputs": [other, BYTES]}).encode()
    content = header + b"abc" + np.array([1, 2], np.float32).tobytes()
    assert decode(content, str(len(header)))[0].tolist() == [[1, 2]]


def test_json_has_no_infinity() -> None:
    spec = GraphSpec((FLOATS,), ())
    with pytest.raises(ModelError, match="not finite"):
        encode_request(spec, {"logits": np.array([[-np.inf, 0]], np.float32)}, "m", binary=False)


def test_a_graph_is_batched_where_all_share_the_first_dimension() -> None:
    assert SPEC.is_batched
    assert not GraphSpec(SPEC.inputs, (TensorSpec("x", BY_NAME["FP32"], ("other", 2)),)).is_batched
    assert not GraphSpec(SPEC.inputs, (TensorSpec("x", BY_NAME["FP32"], ()),)).is_batched
    assert not GraphSpec((TensorSpec("x", BY_NAME["FP32"], (1,)),), ()).is_batched


@pytest.mark.parametrize(
    ("backend", "url", "given", "message"),
    [
        ("triton", "http://h", {}, "backend='triton' is unknown; use local or kserve"),
        ("local", "http://h", {}, "pass backend='kserve' too"),
        ("kserve", None, {}, "needs url="),
        ("kserve", "http://h", {"threads": 2}, "threads is of this machine"),
    ],
)
def test_arguments_that_do_not_fit(backend: str, url: str | None, given: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check_backend(backend, url, **given)


def test_arguments_that_fit() -> None:
    assert check_backend("local", None, threads=2) is None
    assert check_backend("kserve", "http://h", threads=None) == Endpoint("http://h")
    assert check_backend("kserve", Endpoint("http://h", timeout_ms=5)) == Endpoint("http://h", timeout_ms=5)

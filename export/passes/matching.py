"""Reads the surroundings of a node, for passes that replace several nodes by one."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import onnx_ir as ir

Array = npt.NDArray[Any]


def read_constant(value: ir.Value | None) -> Array | None:
    """Return a constant, perhaps through a Transpose; None for what is computed."""
    turned = find_producer(value, "Transpose")
    if turned is not None:
        constant = read_constant(turned.inputs[0])
        return None if constant is None else constant.transpose(read_order(turned))
    return None if value is None or value.const_value is None else value.const_value.numpy()


def read_order(node: ir.Node | None) -> tuple[int, ...]:
    """Return the order of axes of a Transpose; empty for None."""
    return () if node is None else tuple(node.attributes["perm"].as_ints())


def find_producer(value: ir.Value | None, operator: str) -> ir.Node | None:
    """Return the node that gives ``value``, if it is of this operator."""
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type == operator else None


def find_only_user(value: ir.Value, operator: str) -> ir.Node | None:
    """Return the one node that reads ``value``, if it is of this operator; its shape may be read beside it."""
    users = [node for node, _ in value.uses() if node.op_type != "Shape"]
    return users[0] if len(users) == 1 and users[0].op_type == operator else None

"""runtime/_native.pyi declares what the module defines."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import groundwire.runtime
from groundwire.runtime import _native

STUB = Path(groundwire.runtime.__file__).with_name("_native.pyi")


def parameters(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


def read_stub() -> dict[str, list[str]]:
    signatures = {}
    for node in ast.parse(STUB.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            signatures[node.name] = parameters(node)
        elif isinstance(node, ast.ClassDef):
            methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
            signatures |= {f"{node.name}.{method.name}": parameters(method) for method in methods}
    return signatures


def read_binding(function: Any) -> list[str]:
    ((signature, *_),) = function.__nb_signature__
    return re.findall(r"\bself\b|\w+(?=: )", signature)


def test_the_stub_names_every_function_and_parameter() -> None:
    search = vars(_native.BeamSearch)
    methods = [name for name in search if not name.startswith("_") or name == "__init__"]
    signatures = {f"BeamSearch.{name}": read_binding(search[name]) for name in methods}
    functions = {name: value for name, value in vars(_native).items() if not name.startswith("_")}
    del functions["BeamSearch"]
    signatures |= {name: read_binding(value) for name, value in functions.items()}
    assert signatures == read_stub()


def test_everything_has_a_docstring() -> None:
    assert _native.__doc__
    names = [name for name in vars(_native) if not name.startswith("_")]
    assert [name for name in names if not getattr(_native, name).__doc__] == []

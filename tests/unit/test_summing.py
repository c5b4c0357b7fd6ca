"""Nothing is added up in the order of a set: it depends on the seed that Python hashes strings with, and so would the
last bits of a score."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for folder in ("engine", "evaluate") for path in (ROOT / folder).rglob("*.py"))
SET_CALLS = ("set", "frozenset")
SET_OPERATORS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)


def is_unordered(node: ast.expr, names: set[str]) -> bool:
    """Whether the order of an expression's items is a set's."""
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Name(name):
            return name in names
        case ast.Call(ast.Name(name), arguments):
            if name in ("list", "tuple", "iter", "enumerate", "map", "filter", "dict"):
                return any(is_unordered(argument, names) for argument in arguments)
            return name in SET_CALLS
        case ast.Call(ast.Attribute(owner, "values" | "items" | "keys")):
            return is_unordered(owner, names)
        case ast.Call(ast.Attribute(owner, "union" | "intersection" | "difference")):
            return True
        case ast.BinOp(left, operator, right):
            is_set = isinstance(operator, SET_OPERATORS)
            return is_set and (is_unordered(left, names) or is_unordered(right, names))
        case ast.GeneratorExp(_, [first, *_]) | ast.ListComp(_, [first, *_]) | ast.DictComp(_, _, [first, *_]):
            return is_unordered(first.iter, names)
    return False


def is_annotated(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).partition("[")[0] in (
        "set",
        "frozenset",
        "Set",
        "AbstractSet",
    )


def adds_numbers(node: ast.expr) -> bool:
    """Whether the items that are added may be fractions: not 1 for each, and not a comparison or a length."""
    item = node.elt if isinstance(node, ast.GeneratorExp | ast.ListComp) else node
    return not isinstance(item, ast.Constant | ast.Compare) and not (
        isinstance(item, ast.Call) and isinstance(item.func, ast.Name) and item.func.id in ("len", "int", "bool")
    )


def find_sums(source: str) -> Iterator[int]:
    """Yield the lines of a module in which the items of a set, or of what is made of one in its order, are added up."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        names = {argument.arg for argument in arguments if is_annotated(argument.annotation)}
        for node in ast.walk(function):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_annotated(node.annotation):
                names.add(node.target.id)
            elif isinstance(node, ast.Assign) and is_unordered(node.value, names):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum":
                if is_unordered(node.args[0], names) and adds_numbers(node.args[0]):
                    yield node.lineno
            elif isinstance(node, ast.For) and is_unordered(node.iter, names):
                yield from (
                    inner.lineno
                    for inner in ast.walk(node)
                    if isinstance(inner, ast.AugAssign)
                    and isinstance(inner.op, ast.Add)
                    and isinstance(inner.target, ast.Name)
                    and adds_numbers(inner.value)
                )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_adds_in_the_order_of_a_set(path: Path) -> None:
    lines = [*find_sums(path.read_text("utf-8"))]
    assert lines == [], "add in a fixed order: sorted(), or math.fsum"


@pytest.mark.parametrize(
    ("body", "is_wrong"),
    [
        ("return sum({1.5, x})", True),
        ("return sum(weights[word] for word in set(x))", True),
        ("words = {word for word in x}\n    return sum(map(weigh, words))", True),
        ("words = set(x)\n    weights = {word: weigh(word) for word in words}\n    return sum(weights.values())", True),
        ("return sum([weigh(word) for word in x & {1}])", True),
        ("total = 0.0\n    for word in frozenset(x):\n        total += weigh(word)\n    return total", True),
        ("return sum(weigh(word) for word in y)", True),
        ("return sum(weigh(word) for word in sorted(set(x)))", False),
        ("return math.fsum(weigh(word) for word in set(x))", False),
        ("return sum(1 for word in set(x))", False),
        ("return sum(word in y for word in set(x))", False),
        ("return sum(weigh(word) for word in x)", False),
        ("return sum(len(word) for word in set(x))", False),
    ],
)
def test_such_sums_are_found(body: str, is_wrong: bool) -> None:
    assert bool([*find_sums(f"def add(x, y: frozenset[str]):\n    {body}\n")]) is is_wrong

"""Checks that the docstrings of public callables have Google's sections.

``python tests/checks/docstrings.py`` reads the public names of ``MODULES`` without importing them. A callable with
parameters needs ``Args:``, and a callable that raises an error of Groundwire by itself needs ``Raises:``. Exempt are
properties, methods whose docstring refers to the method with the sections (“as ``score``”), and ``MISSING``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINKS = ROOT / "groundwire"
"""The folder in which ``groundwire.guard`` is a link to ``apps/guard``."""

MODULES = (
    "engine",
    "metrics",
    "repair",
    "guard",
    "generation",
    "evidence",
    "monitor",
    "evaluate",
    "export",
    "service",
    "runtime.calibration",
    "runtime.fake",
    "runtime.protocol",
    *(f"adapters.{path.stem}" for path in sorted((LINKS / "adapters").glob("[!_]*.py")) if path.stem != "extras"),
)
"""The modules whose public names the documentation describes."""

MISSING: frozenset[str] = frozenset()
"""Callables without the sections that they need. The list may only become shorter: an entry too many is a finding."""

REFERENCE = re.compile(r"[,;] (?:otherwise )?(?:as|like) ``[\w.]+``[.,;]")
"""The end of a first sentence that refers to the method with the sections."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def locate(module: str) -> Path:
    """Return the file of a module, given by its name below ``groundwire``."""
    path = LINKS.joinpath(*module.split(".")).resolve()
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def list_public(module: str) -> list[str]:
    """Return the names of a module's ``__all__``; without it, what it defines without an underscore."""
    body = parse(locate(module)).body
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return [node.name for node in body if isinstance(node, Definition) and not node.name.startswith("_")]


def find_definition(module: str, name: str) -> tuple[str, Definition] | None:
    """Follow imports from a module to the class or function of that name; None for a constant."""
    package = module.split(".") if locate(module).name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(parse(locate(module))):
        if isinstance(node, Definition) and node.name == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and name in [alias.asname or alias.name for alias in node.names]:
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, node.module or ""]).removeprefix("groundwire.").strip(".")
            if LINKS.joinpath(source.split(".")[0]).exists() or locate(source).exists():
                return find_definition(source, name)
    return None


def list_callables(definition: Definition) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield a function, or the public methods of a class, with their names."""
    if not isinstance(definition, ast.ClassDef):
        yield definition.name, definition
        return
    for node in definition.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
            node.name == "__init__" or not node.name.startswith("_")
        ):
            decorators = {ast.unparse(decorator).split(".")[-1] for decorator in node.decorator_list}
            if not decorators & {"property", "cached_property", "overload", "setter"}:
                yield f"{definition.name}.{node.name}", node


@cache
def list_errors() -> frozenset[str]:
    """Return the names of Groundwire's errors."""
    return frozenset(node.name for node in parse(locate("runtime.errors")).body if isinstance(node, ast.ClassDef))


def find_missing(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the sections that a function's docstring needs and lacks."""
    docstring = ast.get_docstring(node) or ""
    if REFERENCE.search(docstring.partition("\n\n")[0]):
        return []
    arguments = node.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    missing = ["Args"] if [item for item in parameters if item.arg not in ("self", "cls")] else []
    raised = {
        ast.unparse(item.exc.func if isinstance(item.exc, ast.Call) else item.exc)
        for item in ast.walk(node)
        if isinstance(item, ast.Raise) and item.exc
    }
    missing += ["Raises"] if raised & list_errors() else []
    return [section for section in missing if f"{section}:\n" not in docstring]


def main() -> int:
    """Print the callables that lack a section, and the entries of ``MISSING`` that lack none; 1 if there are any."""
    sections_by_name: dict[str, tuple[str, int, list[str]]] = {}
    count = 0
    for module in MODULES:
        for public in list_public(module):
            if (definition := find_definition(module, public)) is not None:
                for name, node in list_callables(definition[1]):
                    full = f"{definition[0]}.{name}"
                    count += full not in sections_by_name
                    sections_by_name[full] = (
                        str(locate(definition[0]).relative_to(ROOT)),
                        node.lineno,
                        find_missing(node),
                    )
    lacking = {full for full, (_, _, sections) in sections_by_name.items() if sections}
    for full in sorted(lacking - MISSING):
        path, line, sections = sections_by_name[full]
        print(f"{path}:{line}: {full}: write the sections {' and '.join(sections)}")
    for full in sorted(MISSING - lacking):
        print(f"tests/checks/docstrings.py: {full} lacks nothing: remove it from MISSING")
    print(f"{len(lacking)} of {len(sections_by_name)} public callables lack a section")
    return 1 if lacking ^ MISSING else 0


if __name__ == "__main__":
    raise SystemExit(main())

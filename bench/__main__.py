"""The door to the benchmarks: ``python -m bench NAME [OPTION …]`` runs one, ``python -m bench`` lists them."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def list_benchmarks() -> dict[str, Path]:
    """Return the scripts by name: a module of this folder, or of ``quality/``, that runs by itself."""
    paths = sorted((*FOLDER.glob("[!_]*.py"), *FOLDER.glob("quality/[!_]*.py")))
    return {path.stem: path for path in paths if '__name__ == "__main__"' in path.read_text(encoding="utf-8")}


def describe(path: Path) -> str:
    """Return the first sentence of a script's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n\n")[0].replace("\n", " ")


def main(arguments: list[str]) -> int:
    """Run the benchmark that the first argument names with the others; 2 for an unknown name."""
    benchmarks = list_benchmarks()
    if not arguments or arguments[0] in ("-h", "--help"):
        print("python -m bench NAME [OPTION …]; NAME --help lists the options.\n")
        print(*(f"{name:<16} {describe(path)}" for name, path in benchmarks.items()), sep="\n")
        return 0
    name, *options = arguments
    if name not in benchmarks:
        print(f"There is no benchmark {name!r}; choose one of: {', '.join(benchmarks)}.", file=sys.stderr)
        return 2
    module = ".".join(("bench", *benchmarks[name].relative_to(FOLDER).with_suffix("").parts))
    sys.argv[1:] = options
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

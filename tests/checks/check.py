"""The checks of the project, by name.

    python tests/checks/check.py check        what a contributor runs before each commit (make check)
    python tests/checks/check.py test         everything, with the coverage gate (make test)
    python tests/checks/check.py lint types   some of them

Checks that use one core run beside each other. Tests follow one after another, each on all cores.
In a set, ``recipes`` runs in CI, and where the recipes or what they build with have changed.
Every check runs, also after one has failed. The exit code is 1 if any check failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
WORKERS = min(CORES, 4)
"""Processes that pytest runs tests in, four at most: each may load torch, and memory limits them too."""

TYPED = (
    "groundwire.runtime",
    "groundwire.engine",
    "groundwire.repair",
    "groundwire.guard",
    "groundwire.generation",
    "groundwire.evidence",
    "groundwire.monitor",
    "groundwire.turns",
    "groundwire.files",
    "groundwire.service",
    "groundwire.adapters",
    "groundwire.cli",
    "groundwire.export",
    "groundwire.evaluate",
    "groundwire.recipes",
    "bench",
)
"""What mypy reads, strictly, in the tree of links (``deploy/tree.py``)."""

ENVIRONMENT = {
    "ORT_DISABLE_TELEMETRY": "1",
    "MYPYPATH": f"build/tree{os.pathsep}.",
    # The models of the tests are too small for a pool of threads, and every core has a worker already.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # The tests start hundreds of Python processes. Where none keeps what it compiled, as in most containers, each
    # compiles all modules again, half a second, and each worker of pytest rewrites the assertions of all tests.
    "PYTHONDONTWRITEBYTECODE": "",
    # Material for MkDocs prints an announcement at every build.
    "NO_MKDOCS_2_WARNING": "1",
}


def tool(name: str) -> str:
    """Return the path of a program that is installed beside this Python, or on the search path."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name) or name


def cpp_files() -> list[str]:
    """Return the C++ files of the project."""
    return [str(path) for path in sorted((ROOT / "cpp_ext").rglob("*.[ch]pp")) if "build" not in path.parts]


def pytest(*arguments: str, workers: int = WORKERS) -> list[str]:
    """Return a command that runs tests; a file's tests share a worker, and with it their fixtures."""
    command = [sys.executable, "-m", "pytest", "--quiet", "--durations=10", "--durations-min=3", *arguments]
    return [*command, "--numprocesses", str(workers), "--dist", "loadfile"] if workers > 1 else command


SLOW_FIRST = "--no-loadscope-reorder"
"""Files in the order of ``tests/conftest.py``; else those with few tests come last, which may take minutes."""

PYTHON_COVERAGE = [sys.executable, "-m", "coverage"]
LINT_IMPORTS = """
import sys
sys.path.insert(0, "build/tree")
# Not the finder of the editable installation, which knows no folder of the whole package.
sys.meta_path = [finder for finder in sys.meta_path if "Redirecting" not in type(finder).__name__]
from importlinter.cli import lint_imports_command
sys.exit(lint_imports_command())
"""

SINGLE: dict[str, list[str]] = {
    "types": [sys.executable, "-m", "mypy", *(part for name in TYPED for part in ("-p", name))],
    "native": ["bash", "cpp_ext/checks/sanitize.sh"],
    "lint": [tool("ruff"), "check", "."],
    "format": [tool("ruff"), "format", "--check", "."],
    "cpp-format": [tool("clang-format"), "--dry-run", "--Werror", *cpp_files()],
    "imports": [sys.executable, "-c", LINT_IMPORTS, "--no-cache"],
    # Words that the glossary replaces; pyproject.toml names the dictionary.
    "terms": [sys.executable, "-m", "codespell_lib", "."],
    "names": [sys.executable, "tests/checks/names.py"],
    "characters": [sys.executable, "tests/checks/characters.py"],
    "sizes": [sys.executable, "tests/checks/sizes.py"],
    "docs": [sys.executable, "-m", "mkdocs", "build", "--strict"],
    "doctest": pytest("--doctest-modules", "--doctest-ignore-import-errors", "build/tree/groundwire", workers=1),
}
"""Checks that use one core, the longest first."""

TESTS: dict[str, list[str]] = {
    "simulation": [sys.executable, "-m", "tests.simulation", "--seeds", "10000", "--processes", str(WORKERS)],
    "unit": pytest("tests/unit"),
    "integration": pytest("tests/integration", "tests/adapters", SLOW_FIRST),
    "hostile": pytest("tests/hostile", workers=1),
    "recipes": pytest("tests/recipes", SLOW_FIRST),
    # In a process that loads the GPU build of ONNX Runtime; it says that it is skipped where there is none.
    "device": [sys.executable, "-m", "tests.support.cuda_double", *pytest("tests/device", workers=1)[2:]],
}
"""Checks that use all cores, one after another: what pytest runs, and the scheduler's simulation."""

RECIPES = ("recipes", "tests/recipes", "bundles/packaging/recipes", "export")
"""Folders on which the check ``recipes`` depends: training takes long and changes seldom."""

RECENT_COMMITS = 20
"""The commits whose changes of ``RECIPES`` bring its tests into the set ``test``."""

MINIMUM: dict[str, int] = {
    "runtime": 90,
    "engine": 90,
    "apps": 90,
    "interfaces": 88,
    "export": 90,
    "evaluate": 90,
    "recipes": 90,
    "engine/scheduling": 100,
    "engine/verdict": 100,
}
"""The coverage gate: per folder, the least per cent of lines and branches that tests of its own run, in their process.

What only whole programs run, as most of a server, counts as not run: see ``MEASURED`` in ``tests/conftest.py``.
"""

COVERAGE = ROOT / "build" / "coverage"

MEASURED = ("unit", "integration", "recipes")
"""The checks that count as tests of what they run (``MEASURED`` in ``tests/conftest.py`` names their folders)."""

SETS: dict[str, tuple[str, ...]] = {
    "check": ("lint", "format", "cpp-format", "types", "imports", "terms", "names", "characters", "sizes", "unit"),
    "test": (*SINGLE, *TESTS, "coverage"),
}


@dataclass(frozen=True)
class Outcome:
    """A check that has run: its exit code, the seconds it took, and the seconds of processor time it used."""

    check: str
    code: int
    seconds: float
    processor_seconds: float

    def __str__(self) -> str:
        result = "passed" if self.code == 0 else f"FAILED ({self.code})"
        return f"{self.check:<12} {self.seconds:7.1f} s  {self.processor_seconds:7.1f} s of processor time   {result}"


def run(check: str, command: list[str], environment: dict[str, str], output: IO[str] | None = None) -> Outcome:
    """Run a command with its processes counted; it prints to ``output``, or to the terminal."""
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | ENVIRONMENT | environment,
        stdout=output,
        stderr=output and subprocess.STDOUT,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Outcome(check, process.returncode, time.monotonic() - started, usage.ru_utime + usage.ru_stime)


def run_quietly(check: str) -> Outcome:
    """Run a check of ``SINGLE``; print what it said when it has ended, so that checks beside each other do not mix."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        outcome = run(check, SINGLE[check], {}, output)
        output.seek(0)
        print(f"== {outcome}\n{output.read()}", end="", flush=True)
    return outcome


def run_tests(check: str, *, measured: bool) -> Outcome:
    """Run a check of ``TESTS`` and let it print; ``measured`` also records the lines and branches that it runs."""
    print(f"== {check}", flush=True)
    if measured and check in MEASURED:
        COVERAGE.mkdir(parents=True, exist_ok=True)
        for path in COVERAGE.glob(f"{check}.coverage*"):
            path.unlink()
        coverage = {"COVERAGE_FILE": str(COVERAGE / f"{check}.coverage")}
        outcome = run(check, [*TESTS[check], "--cov", "--cov-report="], coverage)
    else:
        outcome = run(check, TESTS[check], {})
    print(f"== {outcome}", flush=True)
    return outcome


def run_coverage(checks: list[str]) -> Outcome:
    """Combine what the tests have covered, and compare each folder with its minimum."""
    started = time.monotonic()
    data = [str(path) for check in checks for path in sorted(COVERAGE.glob(f"{check}.coverage*"))]
    combined = f"--data-file={COVERAGE / 'combined'}"
    code = run("combine", [*PYTHON_COVERAGE, "combine", "--keep", "--quiet", combined, *data], {}).code
    for folder, minimum in MINIMUM.items():
        if code or (folder == "recipes" and "recipes" not in checks):
            continue
        print(f"== coverage of {folder}, at least {minimum} %", flush=True)
        options = [f"--include={folder}/*", f"--fail-under={minimum}", "--format=total"]
        if run(folder, [*PYTHON_COVERAGE, "report", combined, *options], {}).code:
            # Again with the files and lines that are left out.
            run(folder, [*PYTHON_COVERAGE, "report", combined, options[0], "--skip-covered", "--show-missing"], {})
            code = 1
    seconds = time.monotonic() - started
    return Outcome("coverage", code, seconds, seconds)


def needs_recipes() -> bool:
    """Return whether a set runs ``recipes``: in CI, after a recent change, and where git cannot say what changed."""
    if os.environ.get("CI"):
        return True
    commands = (
        ["diff", "--name-only", f"HEAD~{RECENT_COMMITS}", "--", *RECIPES],
        ["status", "--porcelain", "--", *RECIPES],
    )
    runs = [
        subprocess.run([tool("git"), *command], cwd=ROOT, capture_output=True, text=True, check=False)
        for command in commands
    ]
    return any(run.returncode or run.stdout for run in runs)


def choose_checks(names: list[str]) -> set[str]:
    """Return the named checks and those of the named sets; ``recipes`` by its name, or where it is needed."""
    checks = {check for name in names for check in SETS.get(name, (name,))}
    if "recipes" in checks and "recipes" not in names and not needs_recipes():
        print("== recipes: skipped, because nothing that it tests has changed; name it to run it")
        checks.remove("recipes")
    return checks


def main(names: list[str]) -> int:
    """Run the named checks and sets of checks; 1 if any failed, 2 if a name is unknown."""
    known = [*SINGLE, *TESTS, "coverage"]
    wanted = choose_checks(names)
    if unknown := wanted - set(known):
        print(f"Unknown checks: {', '.join(sorted(unknown))}. Checks: {', '.join(known)}. Sets: {', '.join(SETS)}.")
        return 2
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "deploy.tree"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with ThreadPoolExecutor(CORES) as pool:
        outcomes = list(pool.map(run_quietly, [check for check in SINGLE if check in wanted]))
    tests = [check for check in TESTS if check in wanted]
    outcomes += [run_tests(check, measured="coverage" in wanted) for check in tests]
    if "coverage" in wanted:
        outcomes.append(run_coverage([check for check in tests if check in MEASURED]))
    print("\n".join(["== summary", *map(str, outcomes)]))
    print(f"{'in all':<12} {time.monotonic() - started:7.1f} s  on {CORES} cores, load {os.getloadavg()[0]:.1f}")
    return int(any(outcome.code for outcome in outcomes))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:] or ["test"]))

"""How far a metric can be trusted: its agreement with human labels.

``groundwire evaluate`` scores labelled responses, measures every metric against the labels and writes a report;
``groundwire compare`` puts two such runs side by side; ``groundwire calibrate`` fits what a verdict needs. An example
is scored once: every figure is computed from stored scores, without a model.

Names are imported on first use, so that the command line can list this package's commands without its extra; the first
use without the extra raises ImportError with the install command.
"""

from __future__ import annotations

if __name__ != "groundwire.evaluate":  # a second copy of every class
    raise ImportError("This folder is the source of groundwire.evaluate: import that.")

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calibration.labelled import calibrate
    from .calibration.trusted import TrustedCalibration, calibrate_trusted
    from .comparison import RunComparison, compare
    from .datasets.examples import Example
    from .runs import Run, evaluate
    from .statistics.analysis import Development, analyse
    from .statistics.results import Results

__all__ = [
    "Development",
    "Example",
    "Results",
    "Run",
    "RunComparison",
    "TrustedCalibration",
    "analyse",
    "calibrate",
    "calibrate_trusted",
    "compare",
    "evaluate",
]

_MODULES = {
    "RunComparison": "comparison",
    "Development": "statistics.analysis",
    "Example": "datasets.examples",
    "Results": "statistics.results",
    "Run": "runs",
    "TrustedCalibration": "calibration.trusted",
    "analyse": "statistics.analysis",
    "calibrate": "calibration.labelled",
    "calibrate_trusted": "calibration.trusted",
    "compare": "comparison",
    "evaluate": "runs",
}
_REQUIRED = ("sklearn", "scipy", "matplotlib", "jinja2")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require()
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)


def require() -> None:
    """Raise ImportError with the install command when a library of the extra ``evaluate`` is missing."""
    missing = [module for module in _REQUIRED if importlib.util.find_spec(module) is None]
    if missing:
        raise ImportError(f"groundwire.evaluate needs {', '.join(missing)}; run: pip install 'groundwire[evaluate]'")


class _Package(ModuleType):
    """This package, which ``groundwire.evaluate(rows, engine)`` calls: the function and the package have one name."""

    def __call__(self, *arguments: Any, **settings: Any) -> Run:
        run: Run = self.evaluate(*arguments, **settings)
        return run


sys.modules[__name__].__class__ = _Package

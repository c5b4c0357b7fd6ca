"""Fit a verdict to labelled responses, load an engine with it, and score with the fitted thresholds.

The same as ``groundwire calibrate examples/labelled.jsonl --metrics fast --out mine.json``; needs
``pip install 'groundwire[evaluate]'``.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from groundwire.engine import Engine, LoadOptions
from groundwire.evaluate import calibrate

LABELLED = Path(__file__).with_name("labelled.jsonl")


def main() -> None:
    """Calibrate on the example labels, then score one of the responses."""
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    with Engine.load("compact") as engine:
        fitted = calibrate(rows, engine, "fast")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "mine.json"
        fitted.save(path)
        with Engine.load("compact", options=LoadOptions(calibration=path)) as engine:
            print("metrics of the verdict:", ", ".join(engine.plan().names))
            score = engine.score("Octopuses have three hearts.", "Octopuses have three hearts and blue blood.")
            print(f"{score.verdict.label} ({score.verdict.probability:.2f}, line at {score.verdict.threshold:.2f})")


if __name__ == "__main__":
    main()

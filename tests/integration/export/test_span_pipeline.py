"""A span pipeline in a bundle: its weights are stored in half precision and find the same spans."""

from __future__ import annotations

from pathlib import Path

from groundwire.export import RoleOptions, SpansSettings, export_role
from groundwire.runtime.models.span_finder import SpanFinder
from tests.support.span_pipelines import PARSED, parsed


def test_weights_stored_in_half_precision(tiny_checkpoints: Path, tmp_path: Path) -> None:
    saved = tiny_checkpoints / "spans"
    options = RoleOptions(str(saved), SpansSettings(half=True))
    bundle = export_role("spans", options, tmp_path / "bundle")
    stored = bundle.file("spans")
    size, halved = (sum(path.stat().st_size for path in root.glob("*/model")) for root in (saved, stored))
    assert halved < 0.55 * size
    halved_finder, expected = SpanFinder.load(stored), SpanFinder.load(saved)
    weights = [
        node.get_param(name)
        for _, pipe in halved_finder._nlp.pipeline
        for node in pipe.model.walk()
        for name in node.param_names
        if node.has_param(name)
    ]
    assert weights
    assert {weight.dtype.name for weight in weights} == {"float32"}
    for table, _ in PARSED.values():
        text = parsed(table, "ud").text
        assert halved_finder.find(text) == expected.find(text)

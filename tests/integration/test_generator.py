"""The embedded generator; tests/recipes/test_generator_bundle.py has what needs no trained weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.engine import Engine
from groundwire.generation import GenerationOptions, Generator
from groundwire.runtime.bundles.bundle import Bundle, embedded

pytestmark = pytest.mark.skipif(
    "generator" not in embedded(), reason="this checkout holds no trained bundle 'generator'"
)
DIALOGUES = Path(__file__).resolve().parents[2] / "examples" / "dialogues.jsonl"
ROWS = [json.loads(line) for line in DIALOGUES.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load("generator", "cpu") as loaded:
        yield loaded


def test_the_bundle_is_small_and_whole(engine: Engine) -> None:
    bundle = Bundle.open("generator")
    bundle.verify()
    engine.warmup()  # compares with what was computed where the bundle was made
    assert set(bundle.manifest.roles) == {"generator"}
    assert bundle.manifest.size <= 25e6


def test_the_knowledge_is_what_it_says(engine: Engine) -> None:
    """Most words of its responses to the examples are the knowledge's, and other knowledge gives other responses."""
    shared = []
    # Neighbours may be about the same knowledge.
    for row, other in zip(ROWS, [*ROWS[2:], *ROWS[:2]], strict=True):
        assert row["knowledge"] != other["knowledge"]
        generation = Generator(engine).generate(row["knowledge"], row["history"], metrics=["overlap_precision"])
        assert generation.text != Generator(engine).generate(other["knowledge"], row["history"]).text
        check = generation.responses[0].check
        assert check is not None
        shared.append(check.metrics["overlap_precision"].value or 0.0)
    assert sum(shared) / len(shared) > 0.7


def test_a_response_does_not_depend_on_what_else_is_asked(engine: Engine) -> None:
    settings = GenerationOptions(method="beam_sampling")
    first, second = (
        [Generator(engine).generate(row["knowledge"], row["history"], settings).text for row in rows]
        for rows in (ROWS[:4], ROWS[3::-1])
    )
    assert first == second[::-1]


def test_the_command_generates_and_checks_without_naming_it() -> None:
    result = CliRunner().invoke(app, ["generate", str(DIALOGUES), "--n-candidates", "2", "--metrics", "pmi", "--json"])
    assert result.exit_code == 0, result.output
    generations = [json.loads(line)["generation"] for line in result.stdout.splitlines()]
    assert [generation["status"] for generation in generations] == ["generated"] * len(ROWS)
    assert all(generation["responses"][0]["check"]["metrics"]["pmi"]["value"] for generation in generations)

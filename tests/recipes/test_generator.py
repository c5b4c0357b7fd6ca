"""Fine-tuning a model that writes responses, on tiny checkpoints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("groundwire.recipes", reason="needs the train extra", exc_type=ImportError)

import torch
from transformers import AutoTokenizer
from typer.testing import CliRunner

from groundwire.recipes.cli import app
from groundwire.recipes.generator import recipe
from groundwire.recipes.generator.recipe import IGNORED, SMALL, Exchange, GeneratorPreset, read_exchanges
from tests.support import models

ROWS: list[dict[str, Any]] = [
    {
        "knowledge": "The guitar is a string instrument, and most guitars have six strings.",
        "history": ["Have you ever played the guitar?", "Yes! how many strings?"],
        "response": "most guitars have six strings.",
    },
    {
        "knowledge": ["Pizza is a dish from Naples.", "It was sold in New York."],
        "history": "where is pizza from?",
        "response": "pizza is from Naples in Italy.",
    },
    {"knowledge": "", "history": ["I love pizza."], "response": "my sister does not."},
    {"knowledge": "The Titanic sank in April 1912.", "history": [], "response": "it sank in 1912."},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_rows_become_exchanges(tmp_path: Path) -> None:
    assert read_exchanges(write(tmp_path / "rows.jsonl", ROWS))[:2] == [
        Exchange((ROWS[0]["knowledge"],), tuple(ROWS[0]["history"]), "most guitars have six strings."),
        Exchange(
            ("Pizza is a dish from Naples.", "It was sold in New York."),
            ("where is pizza from?",),
            "pizza is from Naples in Italy.",
        ),
    ]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"knowledge": "a", "history": ["b"], "response": " "}, r"rows\.jsonl, row 2: it needs a response"),
        ({"response": "a"}, "row 2: it needs a response, and knowledge or history"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_exchanges(write(tmp_path / "rows.jsonl", [ROWS[0], row]))


def test_no_rows_at_all(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no rows"):
        read_exchanges(write(tmp_path / "rows.jsonl", []))


def test_the_preset_is_the_published_codes() -> None:
    preset = GeneratorPreset()
    assert (preset.lr, preset.batch, preset.epochs, preset.warmup, preset.weight_decay) == (6.25e-5, 16, 10, 0.04, 0.0)
    schedule = preset.schedule(18_357)
    assert (schedule.steps, schedule.batch, schedule.warmup) == (11_470, 16, 0.04)
    assert preset.schedule(18_357, steps=7).steps == 7


EXCHANGE = Exchange(("Tea is old.",), ("hello!", "is it {knowledge}?"), "it is old.")


def test_a_causal_model_goes_on_from_the_exporters_prompt(tmp_path: Path) -> None:
    path = models.language_model(tmp_path, "gpt2")
    tokens, model = AutoTokenizer.from_pretrained(path), recipe.load_base_model(path)
    encode, _, _ = recipe.make_encoding(model, tokens, SMALL)
    row = encode(EXCHANGE, True)
    assert tokens.decode(row["input_ids"]) == (
        "Document: Tea is old.\n\nhello!\nis it {knowledge}?.\nAgent: it is old.<|endoftext|>"
    )
    target = [label for label in row["labels"] if label != IGNORED]
    assert tokens.decode(target) == " it is old.<|endoftext|>"
    assert row["labels"][-len(target) :] == target == row["input_ids"][-len(target) :]
    alone = encode(EXCHANGE, False)
    assert tokens.decode(alone["input_ids"]).startswith("hello!\nis it {knowledge}?.\nAgent: it")


@pytest.mark.parametrize(
    ("family", "first", "last"), [("bart", "<s>", "</s>"), ("t5", "it", "</s>"), ("bert", "it", "[SEP]")]
)
def test_an_encoder_decoder_is_taught_what_it_will_be_asked(tmp_path: Path, family: str, first: str, last: str) -> None:
    path = models.encoder_decoder(tmp_path, family)
    tokens, model = AutoTokenizer.from_pretrained(path), recipe.load_base_model(path)
    encode, _, _ = recipe.make_encoding(model, tokens, SMALL)
    row = encode(EXCHANGE, True)
    assert "agent" in tokens.decode(row["input_ids"]).lower()
    start = model.config.decoder_start_token_id
    assert row["decoder_input_ids"] == [start, *row["labels"][:-1]]
    pieces = [tokens.decode([label]).strip().lower() for label in row["labels"]]
    assert pieces[0] == first.lower()
    assert pieces[-1] == last.lower()
    assert len(row["attention_mask"]) == len(row["input_ids"])


def test_long_texts_keep_the_knowledges_beginning_and_the_historys_end(tmp_path: Path) -> None:
    tokens = AutoTokenizer.from_pretrained(models.language_model(tmp_path, "gpt2"))
    preset = replace(SMALL, max_knowledge=3, max_history=3)
    long = Exchange(
        ("one two three four five six " * 5 + "END",), ("START " + "six five four three two one " * 5,), "x"
    )
    grounded = "".join(recipe.make_source(tokens, long, preset, with_knowledge=True))
    assert "END" not in grounded
    assert "START" not in grounded
    assert grounded.startswith("Document: o")
    assert "one .\nAgent:" in grounded


@pytest.mark.parametrize("family", ["gpt2", "bart", "t5", "bert"])
def test_training_lowers_the_loss_and_writes_a_checkpoint(tmp_path: Path, family: str) -> None:
    build = models.language_model if family == "gpt2" else models.encoder_decoder
    base, rows = build(tmp_path / "base", family), write(tmp_path / "rows.jsonl", ROWS)
    preset = replace(SMALL, lr=3e-3, batch=4, without_knowledge=0.0)
    tokens = AutoTokenizer.from_pretrained(base)
    exchanges = read_exchanges(rows)
    before = recipe.measure_perplexity(recipe.load_base_model(base), tokens, exchanges, preset)
    recipe.train_generator(base, rows, tmp_path / "out", preset, steps=25, held_out=rows)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["rows"] == 4
    assert report["steps"] == 25
    assert report["held_out"]["perplexity"] < 0.5 * before["perplexity"]
    trained = recipe.measure_perplexity(
        recipe.load_base_model(tmp_path / "out").eval(),
        AutoTokenizer.from_pretrained(tmp_path / "out"),
        exchanges,
        preset,
    )
    assert trained == report["held_out"], "what was saved is what was measured"


def test_frozen_words_stay(tmp_path: Path) -> None:
    base, rows = models.language_model(tmp_path / "base", "gpt2"), write(tmp_path / "rows.jsonl", ROWS)
    recipe.train_generator(base, rows, tmp_path / "out", replace(SMALL, batch=4, freeze_words=True), steps=2)
    words = [recipe.load_base_model(path).get_input_embeddings().weight for path in (base, tmp_path / "out")]
    assert torch.equal(*words)
    layers = [recipe.load_base_model(path).transformer.h[0].mlp.c_fc.weight for path in (base, tmp_path / "out")]
    assert not torch.equal(*layers)


def test_the_command(tmp_path: Path) -> None:
    base = models.language_model(tmp_path / "base", "gpt2")
    rows = write(tmp_path / "rows.jsonl", ROWS * 5)
    given = ["generator", "--base", str(base), "--rows", str(rows), "--out", str(tmp_path / "out"), "--steps", "1"]
    done = CliRunner().invoke(app, [*given, "--preset", "small"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "model.safetensors").exists()
    refused = CliRunner().invoke(app, [*given, "--preset", "large"])
    assert refused.exit_code == 2
    assert "'large' is not one of" in refused.output

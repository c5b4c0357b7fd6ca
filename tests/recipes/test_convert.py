"""``groundwire convert``: the dialogue sets in the form in which their authors publish them, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.evaluate.datasets import read_dataset
from groundwire.evaluate.datasets.examples import Example
from groundwire.recipes.dialogues import DIALOGUES
from groundwire.runtime.errors import InvalidRequest


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def read(name: str, path: Path) -> list[Example]:
    return list(DIALOGUES[name].read(path))


def make_wizard(folder: Path) -> Path:
    turns = [
        {"speaker": "0_Apprentice", "text": "Tell me about tea."},
        {"speaker": "1_Wizard", "text": " It is a drink. ", "checked_sentence": {"chosen_Tea_0": "Tea is a drink."}},
        {"speaker": "0_Apprentice", "text": "Do you like it?", "checked_sentence": {}},
        {"speaker": "1_Wizard", "text": "I do!", "checked_sentence": {"no_passages_used": "no_passages_used"}},
    ]
    return write(folder / "train.json", [{"chosen_topic": "Tea", "dialog": turns, "wizard_eval": 5}])


def make_topical_chat(folder: Path) -> Path:
    content = [
        {"agent": "agent_1", "message": "Did you know that bees dance?", "knowledge_source": ["FS1", "AS2"]},
        {"agent": "agent_2", "message": "No way!", "knowledge_source": ["Personal Knowledge"]},
        {"agent": "agent_2", "message": "Honey keeps.", "knowledge_source": ["FS1", "FS3"], "sentiment": "Happy"},
    ]
    reading = {
        "agent_1": {"FS1": {"entity": "Bee", "fun_facts": ["Bees dance."], "shortened_wiki_lead_section": "Bees fly."}},
        "agent_2": {
            "FS1": {"fun_facts": ["Honey keeps for years."], "summarized_wiki_lead_section": "Honey is sweet."}
        },
        "article": {"AS1": "One.", "AS2": "Bees are insects.", "headline": "Bees"},
    }
    write(folder / "reading_sets" / "post-build" / "train.json", {"t_1": reading})
    return write(folder / "conversations" / "train.json", {"t_1": {"article_url": "", "content": content}})


def make_cmu_dog(folder: Path) -> Path:
    document = {
        "0": {"movieName": "Up", "cast": ["Ed Asner", "Jordan Nagai"], "introduction": "Up is a film.", "year": 2009},
        "1": "Carl ties balloons to his house.",
    }
    history = [
        {"docIdx": 0, "text": "It is with Ed Asner.", "uid": "user1", "utcTimestamp": "…"},
        {"docIdx": 0, "text": "Nice.", "uid": "user2"},
        {"docIdx": 1, "text": "He flies away in his house.", "uid": "user1"},
    ]
    conversation = {"history": history, "whoSawDoc": ["user1"], "wikiDocumentIdx": 7, "rating": 3}
    write(folder / "WikiData" / "7.json", document)
    write(folder / "Conversations" / "train" / "b.json", conversation)
    return folder / "Conversations" / "train"


def make_multidoc2dial(folder: Path) -> Path:
    spans = {"1": {"text_sp": "Bring a form. ", "id_sp": "1"}, "2": {"text_sp": "It is free.", "id_sp": "2"}}
    write(folder / "multidoc2dial_doc.json", {"doc_data": {"dmv": {"D1": {"spans": spans, "title": "Forms"}}}})
    turns = [
        {"turn_id": 1, "role": "user", "utterance": "What do I need?", "references": [{"doc_id": "D1", "id_sp": "1"}]},
        {
            "turn_id": 2,
            "role": "agent",
            "utterance": "A form, and no money.",
            "references": [{"doc_id": "D1", "id_sp": "2", "label": "solution"}, {"doc_id": "D1", "id_sp": "1"}],
        },
        {"turn_id": 3, "role": "agent", "utterance": "Anything else?", "references": []},
    ]
    dialogues = {"dial_data": {"dmv": [{"dial_id": "d1", "turns": turns}]}}
    return write(folder / "multidoc2dial_dial_train.json", dialogues)


MAKERS = {
    "wow": make_wizard,
    "topical-chat": make_topical_chat,
    "cmu-dog": make_cmu_dog,
    "multidoc2dial": make_multidoc2dial,
}
EXPECTED = {
    "wow": [Example("0-1", "It is a drink.", ("Tea is a drink.",), ("Tell me about tea.",), source="Tea")],
    "topical-chat": [
        Example(
            "t_1-0",
            "Did you know that bees dance?",
            ("Bees fly.", "Bees dance.", "Bees are insects."),
            context="t_1",
        ),
        Example(
            "t_1-2",
            "Honey keeps.",
            ("Honey is sweet.", "Honey keeps for years."),
            ("Did you know that bees dance?", "No way!"),
            context="t_1",
        ),
    ],
    "cmu-dog": [
        Example(
            "b-0",
            "It is with Ed Asner.",
            ("movieName: Up", "cast: Ed Asner, Jordan Nagai", "Up is a film.", "year: 2009"),
            source="7",
        ),
        Example(
            "b-2",
            "He flies away in his house.",
            ("Carl ties balloons to his house.",),
            ("It is with Ed Asner.", "Nice."),
            source="7",
        ),
    ],
    "multidoc2dial": [
        Example("d1-1", "A form, and no money.", ("Bring a form. It is free.",), ("What do I need?",), source="dmv")
    ],
}


@pytest.mark.parametrize("name", DIALOGUES)
def test_a_turn_that_rests_on_knowledge_is_a_response(name: str, tmp_path: Path) -> None:
    assert read(name, MAKERS[name](tmp_path)) == EXPECTED[name]


@pytest.mark.parametrize("name", DIALOGUES)
def test_what_is_written_is_read_as_a_dataset(name: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    result = CliRunner().invoke(app, ["convert", name, str(MAKERS[name](tmp_path / "set")), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert f"{len(EXPECTED[name])} responses written" in result.output
    assert read_dataset(out) == EXPECTED[name]


def test_a_labelled_set_keeps_its_labels(tmp_path: Path) -> None:
    row = {
        "response": "It has 6 strings.",
        "knowledge": ["It has 4 strings."],
        "label": 0,
        "hallucination": True,
        "unsupported": [{"start": 7, "end": 8}],
        "evidence": [{"passage": 0, "start": 0, "end": 17}],
    }
    path = write(tmp_path / "rows.json", [row])
    result = CliRunner().invoke(app, ["convert", "jsonl", str(path)])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"id": "1"} | row


def test_files_may_be_compressed(tmp_path: Path) -> None:
    path = make_wizard(tmp_path)
    compressed = tmp_path / "train.json.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    assert read("wow", compressed) == EXPECTED["wow"]


@pytest.mark.parametrize("name", DIALOGUES)
@pytest.mark.parametrize("content", ["", "[[1]]", '{"a": 3}', '"text"', "{", "\x00"])
def test_other_files_are_refused_with_what_is_wanted(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(InvalidRequest, match=r"file\.json"):
        read(name, path)


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("topical-chat", "reading_sets/post-build/train.json"),
        ("cmu-dog", "WikiData/7.json"),
        ("multidoc2dial", "multidoc2dial_doc.json"),
    ],
)
def test_missing_knowledge_is_named(name: str, missing: str, tmp_path: Path) -> None:
    path = MAKERS[name](tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(InvalidRequest, match=Path(missing).name):
        read(name, path)


def test_a_reference_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    path = make_multidoc2dial(tmp_path)
    write(tmp_path / "multidoc2dial_doc.json", {"doc_data": {"dmv": {"D1": {"spans": {}}}}})
    with pytest.raises(InvalidRequest, match="turn d1-0 refers to span '1' of 'D1'"):
        read("multidoc2dial", path)


def test_an_empty_folder_and_a_set_without_knowledge_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="holds no conversation"):
        read("cmu-dog", tmp_path)
    path = write(tmp_path / "train.json", [{"dialog": [{"speaker": "0_Wizard", "text": "Hi"}]}])
    result = CliRunner().invoke(app, ["convert", "wow", str(path)])
    assert result.exit_code != 0
    assert "no turn that rests on knowledge" in str(result.exception)


def test_an_unknown_set_lists_the_known_ones(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["convert", "wov", str(tmp_path)])
    assert result.exit_code != 0
    assert "multidoc2dial" in str(result.exception)
    assert "faithdial" in str(result.exception)

"""Pairs of statements made from questions: what differs, what is marked, and what is left out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from groundwire.recipes.compact.multitask_examples import make_question_examples
from groundwire.recipes.synthesis.chat_style import ChatStyle
from groundwire.recipes.synthesis.question_pairs import QuestionPair, QuestionPairs, find_changed
from groundwire.recipes.synthesis.verifiability import read_claims
from tests.support.training_sets import write_gzipped

HOUSTON = "The highest temperature in Houston was 109 degrees on September 4, 2000. The city has many parks."
BEAT = "Charles Porter beat Richard Moore in London."
MARKET = "Shops in the town are open on Sundays from ten to four."


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with a row of each set."""
    (tmp_path / "more").mkdir()
    question = "When was the highest temperature measured in Houston?"
    qas = [{"question": question, "answers": ["September 4, 2000"], "answerable": True}]
    write_gzipped(
        tmp_path / "squad1_train.jsonl.gz", [{"title": "Houston", "paragraph": 0, "context": HOUSTON, "qas": qas}]
    )
    changed = {"title": "Houston", "context": HOUSTON, "cause": "A", "plausible_answer": "September 4, 2000"}
    unanswerable = [
        {**changed, "question": question.replace("highest", "lowest"), "paired_question": question},
        {**changed, "question": question.replace("measured", "mesured"), "paired_question": question},
        {**changed, "question": "Why is it hot?", "paired_question": "", "plausible_answer": ""},
    ]
    write_gzipped(tmp_path / "more" / "reading_squad2_unanswerable.jsonl.gz", unanswerable)
    asked = [
        {"id": "1", "context": BEAT, "question": "Who was beaten in London?", "answers": ["Richard Moore"]},
        {"id": "2", "context": BEAT, "question": "Who was the winner in London?", "answers": ["Charles Porter"]},
    ]
    write_gzipped(tmp_path / "more" / "reading_qamr.jsonl.gz", asked)
    polar = [
        {"context": MARKET, "question": "Can you go shopping on Sundays?", "answers": ["yes"]},
        {"context": MARKET, "question": "Do you have to wait for Monday?", "answers": ["no"]},
        {"context": MARKET, "question": "Is the town large?", "answers": ["no"]},
    ]
    write_gzipped(tmp_path / "more" / "reading_yesno.jsonl.gz", polar)
    return tmp_path


def draw_all(data: Path, count: int = 300) -> list[QuestionPair]:
    pairs = QuestionPairs.read(data, ChatStyle(["I love that!"]))
    assert pairs is not None
    return [pairs.draw(60, random.Random(seed)) for seed in range(count)]


def find_plain(drawn: list[QuestionPair]) -> set[tuple[str, str, tuple[str, ...] | None]]:
    """Supported and unsupported statement, and what is marked, of the pairs without chat around them."""
    return {
        (
            pair.supported,
            pair.unsupported,
            None if pair.spans is None else tuple(pair.unsupported[s.start : s.end] for s in pair.spans),
        )
        for pair in drawn
        if not pair.aside and pair.supported[:1].isupper() and pair.supported.endswith(".")
    }


def test_statements_of_every_kind_and_their_unsupported_words(data: Path) -> None:
    plain = find_plain(draw_all(data))
    expected = {
        (
            "The highest temperature was measured in Houston on September 4, 2000.",
            "The lowest temperature was measured in Houston on September 4, 2000.",
            ("lowest",),
        ),
        ("Richard Moore was beaten in London.", "Charles Porter was beaten in London.", ("Charles Porter",)),
        ("Charles Porter was the winner in London.", "Richard Moore was the winner in London.", ("Richard Moore",)),
        ("You can go shopping on Sundays.", "You can't go shopping on Sundays.", ("can't",)),
        ("You don't have to wait for Monday.", "You have to wait for Monday.", None),
    }
    assert expected <= plain
    texts = {text for pair in plain for text in pair[:2]}
    assert not any("mesured" in text or "Why" in text or "town" in text for text in texts)


def test_both_halves_have_one_knowledge_and_one_style(data: Path) -> None:
    for pair in draw_all(data):
        first, second = make_question_examples(pair)
        assert first.first == second.first == pair.knowledge
        assert first.labels["consistency"] == "consistent"
        assert second.labels["consistency"] == "inconsistent"
        assert ("nli" in first.labels) == (not pair.aside)
        assert pair.supported.endswith("I love that!") == pair.unsupported.endswith("I love that!")
        assert pair.knowledge in (HOUSTON, HOUSTON.split(" The city")[0], BEAT, MARKET)
        for span in pair.spans or ():
            assert 0 <= span.start < span.end <= len(pair.unsupported)


def test_words_of_another_spelling_are_not_changed() -> None:
    assert find_changed("Norfolk became a refuelling station.", "Norfolk became a refueling station.") == ()
    text = "Goethe described Monte Pellegrino in the 1900s."
    changed = find_changed("Goethe described Monte Pelegrino in a letter.", text)
    assert changed is not None
    assert [text[start:end] for start, end in changed] == ["the 1900s"]


def test_where_only_words_are_missing_or_most_differ_nothing_is_marked() -> None:
    assert find_changed("He could not read.", "He could read.") is None
    assert find_changed("He was born in Paris.", "London has a large bridge.") is None


def test_without_files_there_are_no_pairs(tmp_path: Path) -> None:
    assert QuestionPairs.read(tmp_path, ChatStyle([])) is None
    with pytest.raises(ValueError, match="give the unanswerable questions"):
        QuestionPairs({}, ChatStyle([]))


def test_claims_are_read_by_source(data: Path) -> None:
    write_gzipped(
        data / "more" / "nli_fever.jsonl.gz", [{"premise": "a", "hypothesis": "Elvis sang.", "label": "entailment"}]
    )
    mixed = [
        {"premise": "a", "hypothesis": "Metal is hard.", "source": "curriculum/entailment_tree"},
        {"premise": "a", "hypothesis": "He left.", "source": "curriculum/drop"},
    ]
    write_gzipped(data / "more" / "nli_curriculum_drop_help_cosmos.jsonl.gz", mixed)
    claims = read_claims(data)
    assert claims["fever"] == ["Elvis sang."]
    assert claims["science"] == ["Metal is hard."]
    assert claims["pictures"] == claims["fm2"] == []
    assert set(claims["answers"]) == {
        "You can go shopping on Sundays.",
        "You can't go shopping on Sundays.",
        "You have to wait for Monday.",
        "You don't have to wait for Monday.",
    }


def test_an_answer_is_not_found_inside_another_word(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    write_gzipped(tmp_path / "squad1_train.jsonl.gz", [])
    context = "The other is called tired old boss by he who led."
    asked = [
        {"id": "1", "context": context, "question": "What is the other called?", "answers": ["tired old boss"]},
        {"id": "2", "context": context, "question": "Who led?", "answers": ["he"]},
    ]
    write_gzipped(tmp_path / "more" / "reading_qamr.jsonl.gz", asked)
    for pair in draw_all(tmp_path, 40):
        for span in pair.spans or ():
            assert pair.unsupported[: span.end].endswith("called he")

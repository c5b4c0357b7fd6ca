"""Worlds: what the halves of a pair share, where the false words are, and that no response shows its label."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from groundwire.recipes.synthesis.structured_edits import REASONS
from groundwire.recipes.worlds import WorldPair, WorldRow, Worlds
from groundwire.recipes.worlds.drawn import draw_domain, read_areas
from groundwire.recipes.worlds.schema import DRAWN, FOLDER, UNSEEN, Wordings, WorldError, read_domain, read_domains
from groundwire.recipes.worlds.worlds import CHANGE_WEIGHTS

DRAWS = 3000
MAX_WORDS = 200


@pytest.fixture(scope="module")
def drawn() -> list[WorldPair]:
    worlds = Worlds()
    return [worlds.draw(MAX_WORDS, random.Random(seed)) for seed in range(DRAWS)]


@pytest.fixture(scope="module")
def held_out() -> list[WorldPair]:
    worlds = Worlds("held_out")
    return [worlds.draw(MAX_WORDS, random.Random(seed)) for seed in range(1_500)]


def _texts(row: WorldRow) -> list[str]:
    return [row.response[sentence.start : sentence.end] for sentence in row.sentences]


def test_a_pair_is_a_function_of_the_generator_alone() -> None:
    first, second = Worlds(), Worlds()
    first.draw(MAX_WORDS, random.Random(1))
    for seed in range(20):
        assert first.draw(MAX_WORDS, random.Random(seed)) == second.draw(MAX_WORDS, random.Random(seed))


def test_halves_share_all_but_the_changed_sentences(drawn: list[WorldPair]) -> None:
    for pair in drawn:
        true, false = pair.supported, pair.unsupported
        assert (true.knowledge, true.history, true.domain) == (false.knowledge, false.history, false.domain)
        assert (true.label, false.label, true.change, true.spans) == (1, 0, "", ())
        assert len(true.sentences) == len(false.sentences)
        for before, after, old, new in zip(_texts(true), _texts(false), true.sentences, false.sentences, strict=True):
            assert old.label in (1, None)
            assert (before != after) == (new.label == 0)


def test_spans_are_inside_false_sentences(drawn: list[WorldPair], held_out: list[WorldPair]) -> None:
    for row in (pair.unsupported for pair in [*drawn, *held_out]):
        wrong = [sentence for sentence in row.sentences if sentence.label == 0]
        assert wrong
        assert row.spans
        for sentence in wrong:
            assert any(sentence.start <= span.start and span.end <= sentence.end for span in row.spans)
        for span in row.spans:
            assert any(sentence.start <= span.start < span.end <= sentence.end for sentence in wrong)
            assert span.reason in REASONS
            assert row.response[span.start : span.end].strip() == row.response[span.start : span.end]


def test_sentences_cover_the_response_and_texts_are_clean(drawn: list[WorldPair], held_out: list[WorldPair]) -> None:
    for pair in [*drawn, *held_out]:
        for row in (pair.supported, pair.unsupported):
            rest = row.response
            for sentence in reversed(row.sentences):
                rest = rest[: sentence.start] + rest[sentence.end :]
            assert re.fullmatch(r"(\s|[-*•]|\d+[.)])*", rest)
            for text in (row.response, *row.history, *row.knowledge):
                assert not re.search(r"[{}]|  |\.\.|\bNone\b", re.sub(r"(?s)```.*?```", "", text)), text


def test_knowledge_and_response_fit(drawn: list[WorldPair]) -> None:
    worlds = Worlds()
    pairs = [(MAX_WORDS, pair) for pair in drawn]
    pairs += [(60, worlds.draw(60, random.Random(seed))) for seed in range(200)]
    for limit, pair in pairs:
        for row in (pair.supported, pair.unsupported):
            assert sum(len(text.split()) for text in (*row.knowledge, row.response)) <= limit


def test_held_out_domains_and_wordings_are_not_in_training(drawn: list[WorldPair], held_out: list[WorldPair]) -> None:
    domains = set(read_domains())
    unseen = {key for key, domain in read_domains().items() if domain.is_held_out}
    assert len(unseen) >= 4
    assert {pair.supported.domain for pair in drawn} == domains - unseen | {DRAWN}
    assert {pair.supported.domain for pair in held_out} == domains
    for domain in read_domains().values():
        for wordings in [field.answers for field in domain.fields.values()]:
            assert wordings.held_out
            assert not set(wordings.train) & set(wordings.held_out)


def test_a_held_out_wording_is_one_of_several() -> None:
    split = Wordings.split("key", ["a", "b", "c", "d", "e", "f"])
    assert (len(split.train), len(split.held_out)) == (5, 1)
    assert Wordings.split("key", ["a", "b", "c", "d", "e", "f"]) == split


def test_domains_have_enough_fields_and_wordings() -> None:
    domains = read_domains()
    assert len(domains) >= 14
    for domain in domains.values():
        assert len(domain.fields) >= 15
        for field in domain.fields.values():
            assert len(field.say) >= 3
            assert len(field.answers.all) >= 5


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('kind = "money 9-24"', 'kind = "sum 9-24"', "field.lunch.kind is 'sum 9-24'"),
        ('kind = "money 9-24"', 'kind = "money 9"', "field.lunch.kind is 'money 9'"),
        ("The set lunch is {v}.", "The set lunch is {x}.", "field.lunch.answer has the slots ['x']"),
        ("The set lunch is {v}.", "The set lunch is ({v}.", "field.lunch.answer has unbalanced brackets"),
        ("The set lunch is {v}.", "The set lunch [is|isn't] {v}.", "no […|…] is allowed"),
        ("[is|isn't] something vegan", "[is|isn't|was] something vegan", "needs 2 alternatives"),
        ('of = ["group"]', 'of = ["groups"]', "has no field ['groups']"),
        ('of = ["group"]', 'of = ["group", "seats"]', "needs 1 field"),
        ('op = "ge"', 'op = "eq"', "Invalid enum value 'eq'"),
        ('op = "ge"', "", "needs op"),
        ('kind = "sum"', 'kind = "total"', "'total' of ['seats', 'terrace'] is unknown"),
        ('label = "Chef|Head chef"', 'labels = "Chef"', "unknown field `labels`"),
        ('"The {sign}"', '"The {signs}"', "names has the slots ['signs']"),
        ('shared = ["open"', 'shared = ["opens"', "shared has ['opens']"),
        ("[field.chef]", "[field.chef", "Expected"),
    ],
)
def test_a_damaged_file_is_refused(old: str, new: str, named: str, tmp_path: Path) -> None:
    text = (FOLDER / "restaurant.toml").read_text()
    assert old in text
    path = tmp_path / "damaged.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(WorldError, match=re.escape(str(path))) as caught:
        read_domain(path)
    assert named in str(caught.value)


@pytest.mark.parametrize("key", sorted(read_domains()))
def test_twins_of_a_domain_differ_in_the_marked_characters(key: str) -> None:
    """What is left of both answers without the marked characters is alike, claims that are replaced aside."""
    worlds, domain, pairs = Worlds(), read_domains()[key], 0
    for seed in range(60):
        pair = worlds.draw(MAX_WORDS, random.Random(seed), domain)
        true, false = pair.supported.response, pair.unsupported.response
        rest, end = "", 0
        for span in pair.unsupported.spans:
            rest += re.escape(false[end : span.start]) + "(.*)"
            end = span.end
        rest += re.escape(false[end:])
        if pair.unsupported.change not in ("invented", "other_record"):
            pairs += 1
            assert re.fullmatch(rest, true, re.DOTALL), (true, false)
    assert pairs


def test_drawn_domains_differ_and_keep_concepts_apart() -> None:
    concepts = [concept for area in read_areas() for concept in area.concepts]
    assert len(concepts) >= 600
    unseen = {noun for concept in concepts if concept.is_held_out for noun in concept.nouns}
    unseen -= {noun for concept in concepts if not concept.is_held_out for noun in concept.nouns}
    assert len(unseen) >= 100
    domains = [draw_domain((), False, random.Random(seed)) for seed in range(300)]
    for domain in domains:
        names = [field.name for field in domain.fields.values() if field.name]
        assert len(set(names)) == len(names)
        assert not {name.removeprefix("the ") for name in names} & unseen
    assert len({field.name for domain in domains for field in domain.fields.values()}) >= 800
    held = Worlds("held_out_concepts").draw(MAX_WORDS, random.Random(1))
    assert held.supported.domain == UNSEEN


def test_every_change_occurs(drawn: list[WorldPair]) -> None:
    counts = Counter(pair.unsupported.change for pair in drawn)
    assert set(counts) == set(CHANGE_WEIGHTS)
    for change, count in counts.items():
        assert count >= 0.01 * DRAWS, change


def test_a_false_value_is_often_in_the_knowledge(drawn: list[WorldPair]) -> None:
    """Whether a value occurs in the knowledge does not show whether it is right."""
    inside = sum(
        all(row.response[span.start : span.end] in "\n".join(row.knowledge) for span in row.spans)
        for row in (pair.unsupported for pair in drawn)
    )
    assert inside >= 0.2 * DRAWS


def test_the_words_of_a_response_do_not_show_its_label(drawn: list[WorldPair]) -> None:
    rows = [row for pair in drawn for row in (pair.supported, pair.unsupported)]
    counts = CountVectorizer(min_df=2, token_pattern=r"\S+").fit_transform([row.response for row in rows])
    labels = [row.label for row in rows]
    cut = len(rows) * 3 // 4
    model = LogisticRegression(C=0.3, max_iter=300).fit(counts[:cut], labels[:cut])
    assert model.score(counts[cut:], labels[cut:]) <= 0.58


@pytest.mark.parametrize(("split", "max_words"), [("test", 200), ("train", 10)])
def test_arguments_are_checked(split: str, max_words: int) -> None:
    with pytest.raises(ValueError, match=split if split == "test" else "max_words"):
        Worlds(split).draw(max_words, random.Random(0))


def test_the_command_writes_rows_and_shows_pairs(tmp_path: Path) -> None:
    out = tmp_path / "worlds.jsonl.gz"
    command = [sys.executable, "-m", "groundwire.recipes.worlds", "--seed", "3"]
    subprocess.run([*command, "--count", "5", "--out", str(out)], check=True, capture_output=True)
    rows = [json.loads(line) for line in gzip.decompress(out.read_bytes()).decode().splitlines()]
    assert len(rows) == 10
    keys = {"id", "knowledge", "history", "response", "label", "sentences", "spans", "domain", "change"}
    assert all(set(row) == keys for row in rows)
    shown = subprocess.run([*command, "--show", "1"], check=True, capture_output=True, text=True).stdout
    assert rows[0]["response"] in shown

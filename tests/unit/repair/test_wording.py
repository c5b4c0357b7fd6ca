"""Replacing a name: articles, capitals and possessives change, and nothing else of the sentence."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.repair.wording import Replacement, choose_article, replace_names
from tests.support.work import CountedText, count_steps


@pytest.mark.parametrize(
    ("text", "old", "new", "old_entity", "expected"),
    [
        ("Is it an Alien film?", "Alien", "Gladiator", "Alien", "Is it a Gladiator film?"),
        ("Is it a Gladiator film?", "Gladiator", "Alien", "Gladiator", "Is it an Alien film?"),
        ("A Gladiator fan!", "Gladiator", "Alien", "Gladiator", "An Alien fan!"),
        ("It is AN ALIEN.", "ALIEN", "Gladiator", "Alien", "It is A GLADIATOR."),
        ("Do you mean the Alien?", "Alien", "The Who", "Alien", "Do you mean the Who?"),
        ("The Alien?", "Alien", "The Who", "Alien", "The Who?"),
        ("I saw The Godfather.", "The Godfather", "Alien", "The Godfather", "I saw Alien."),
        ("I like  the  Alien", "Alien", "Jaws", "Alien", "I like  the  Jaws"),
        ("horror is it.", "horror", "Drama", "Horror", "drama is it."),
        ("Horror is it.", "Horror", "drama", "Horror", "Drama is it."),
        ("It is a horror film.", "horror", "Science fiction", "Horror", "It is a science fiction film."),
        ("It is a horror film.", "horror", "Epic", None, "It is an epic film."),
        (
            "It is by ridley scott, no? Yes.",
            "ridley scott",
            "James Cameron",
            "Ridley Scott",
            "It is by James Cameron, no? Yes.",
        ),
        ("it is by ridley scott", "ridley scott", "James Cameron", "Ridley Scott", "it is by james cameron"),
        ("Yes. alien is good", "alien", "eXistenZ", "Alien", "Yes. eXistenZ is good"),
        ("“Alien” is good", "Alien", "eXistenZ", "Alien", "“EXistenZ” is good"),
        ("In 1997, no?", "1997", "1979", None, "In 1979, no?"),
        ("Tom Hanks' film", "Tom Hanks", "Meg Ryan", "Tom Hanks", "Meg Ryan's film"),
        ("Tom Hanks’ film", "Tom Hanks", "Emma Watts", "Tom Hanks", "Emma Watts’ film"),
        ("Meg Ryan's film", "Meg Ryan", "Tom Hanks", "Meg Ryan", "Tom Hanks's film"),
        ("the actor 'Tom Hanks' said", "Tom Hanks", "Meg Ryan", "Tom Hanks", "the actor 'Meg Ryan' said"),
        ("Ja, это Alien.", "Alien", "Чужой", "Alien", "Ja, это Чужой."),
        ("a 1997 film", "1997", "1982", None, "a 1982 film"),
        ("a 1997 film", "1997", "1893", None, "an 1893 film"),
    ],
)
def test_a_name_gets_the_article_and_case_of_the_sentence(
    text: str, old: str, new: str, old_entity: str | None, expected: str
) -> None:
    start = text.index(old)
    replaced, (edit,) = replace_names(text, [Replacement(start, start + len(old), new, old_entity)])
    assert replaced == expected
    assert text[: edit.start] == replaced[: edit.new_start]
    assert text[edit.end :] == replaced[edit.new_end :]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Uruguay", "a"),
        ("Ukraine", "a"),
        ("University", "a"),
        ("umbrella", "an"),
        ("Utah", "a"),
        ("One Direction", "a"),
        ("Oscar", "an"),
        ("Eugene", "a"),
        ("Honda", "a"),
        ("hour", "an"),
        ("honest man", "an"),
        ("MTV show", "an"),
        ("UN envoy", "a"),
        ("X-ray", "an"),
        ("8 Mile", "an"),
        ("11th Hour", "an"),
        ("18 Again", "an"),
        ("180 Degrees", "a"),
        ("1812 Overture", "an"),
        ("1984", "a"),
        ("Élan", "an"),
        ("“Alien”", "an"),
        ("Чужой", "a"),
        ("", "a"),
    ],
)
def test_the_article_follows_the_sound(name: str, expected: str) -> None:
    assert choose_article(name) == expected


NAMES = st.sampled_from(
    ["Alien", "the Who", "USA", "1979", "Science fiction", "E.T.", "Чужой", "J", "Les Yeux sans visage"]
)


@given(st.lists(st.tuples(st.text("aAn .,'’\n“the", max_size=12), NAMES, NAMES), max_size=5), st.text(max_size=8))
def test_everything_outside_the_edits_stays_byte_for_byte(pieces: list[tuple[str, str, str]], end: str) -> None:
    text, wanted = "", []
    for between, old, new in pieces:
        text += between
        wanted.append(Replacement(len(text), len(text) + len(old), new, old))
        text += old
    text += end
    replaced, edits = replace_names(text, wanted)
    assert len(edits) == len(wanted)
    at = new_at = 0
    for edit, replacement in zip(edits, wanted, strict=True):
        assert text[at : edit.start] == replaced[new_at : edit.new_start]
        assert edit.start <= replacement.start < replacement.end <= edit.end
        stem = replacement.name.casefold().removeprefix("the").strip()
        assert stem in replaced[edit.new_start : edit.new_end].casefold()
        at, new_at = edit.end, edit.new_end
    assert text[at:] == replaced[new_at:]


@given(st.text("aB_ .!?…'\"”’)]\n\t,é1", max_size=20))
def test_the_first_name_of_a_sentence_gets_a_capital(before: str) -> None:
    text = before + "Alien is good"
    replaced, (edit,) = replace_names(text, [Replacement(len(before), len(before) + 5, "eXistenZ")])
    starts_sentence = re.search(r"(?:^|[.!?…]['\"”’)\]]*\s+|\n)\W*$", before) is not None
    assert replaced[edit.new_start : edit.new_end][-8:] == ("EXistenZ" if starts_sentence else "eXistenZ")


def test_the_work_grows_linearly_with_the_names() -> None:
    def count(names: int) -> int:
        sentence = "he met Ann’s dog. "
        text = CountedText(sentence * names)
        replacements = [Replacement(offset + 7, offset + 10, "Bob") for offset in range(0, len(text), len(sentence))]
        return count_steps(lambda: replace_names(text, replacements)) + text.copied

    assert count(100) < 2.5 * count(50)

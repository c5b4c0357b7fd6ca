"""The rules that tell whether a sentence of chat says something to check."""

from __future__ import annotations

import pytest

from groundwire.recipes.synthesis.weak_labels import NOT_VERIFIABLE, RULES, VERIFIABLE, SentenceParts, assign_weak_label


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        # Table 1 of the paper: opinion, suggestion, topic switch, question, personal information.
        ("I like poutine and chili cheese fries too.", NOT_VERIFIABLE),
        ("I agree, and I'm sure you'd enjoy a good cup of coffee!", NOT_VERIFIABLE),
        ("I would love to visit the museums there.", NOT_VERIFIABLE),
        ("Do you like to flip them at all?", NOT_VERIFIABLE),
        ("Yes, I do. ", NOT_VERIFIABLE),
        ("I live in the Arctic region.", NOT_VERIFIABLE),
        ("You should try the burger.", NOT_VERIFIABLE),
        ("Have a great day!", NOT_VERIFIABLE),
        ("haha", NOT_VERIFIABLE),
        ("Oh wow, that is so cool!", NOT_VERIFIABLE),
        ("i didn 't know that .", NOT_VERIFIABLE),
        ("Do you know why they did it?", NOT_VERIFIABLE),
        ("Did you know who won in 1999?", NOT_VERIFIABLE),
        ("yes , it was founded in 1854 .", VERIFIABLE),
        ("It 's a type of cheese .", VERIFIABLE),
        ("Did you know the NFL has tracking chips in the shoulder pads?", VERIFIABLE),
        ("I heard that Tom Brady was drafted in the 6th round.", VERIFIABLE),
        ("I was surprised to learn that The Lion King was dubbed into Zulu.", VERIFIABLE),
        ("Wow, he was the only scientist who walked there.", VERIFIABLE),
        ("I think Marvel was founded by Martin Goodman.", VERIFIABLE),
        ("The Iowa locker room for visiting teams is painted pink.", VERIFIABLE),
        # Rules disagree, or none votes.
        ("He was a great player in 1979.", None),
        ("I love pecan pie, it is often served with cream.", None),
        ("The sky is blue.", None),
        ("They play in Ohio, right?", None),
    ],
)
def test_weak_label(sentence: str, expected: str | None) -> None:
    assert assign_weak_label(sentence) == expected


def test_every_rule_votes_for_one_label_only() -> None:
    sentences = [
        "Is it?",
        "Thanks!",
        "lol",
        "I am home",
        "You should go",
        "It is great",
        "It has 3 legs in all",
        "They moved to Ohio last week",
        "I read that cats have been to the moon",
        "This is the first of them",
        "That one is called a tort",
    ]
    votes = {rule: {rule(SentenceParts.of(sentence)) for sentence in sentences} - {None} for rule in RULES}
    assert [len(labels) for labels in votes.values()] == [1] * len(RULES)


def test_a_sentence_is_taken_apart() -> None:
    parts = SentenceParts.of("Yeah, wow!  Did you know that I think Elvis’s record was Sam 's?")
    assert parts.core == "did you know that i think elvis's record was sam's?"
    assert (parts.claim, parts.cased) == ("elvis's record was sam's?", "Elvis's record was Sam's?")
    assert (parts.reported, parts.asks, parts.stated) == (True, False, False)
    assert SentenceParts.of("Elvis was a man of 5 words, right?").asks is False
    assert SentenceParts.of("Did you know?").asks is True

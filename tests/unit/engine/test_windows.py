"""Windows of a long response, and excerpts of long knowledge."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from groundwire.engine.text.reading import count_pieces, cut_text, group_texts
from groundwire.engine.text.retrieval import FAR, PART_SIZE, KnowledgeIndex, split_passage


@pytest.mark.parametrize("context", [0, 1, 3])
@pytest.mark.parametrize("size", [8, 40, 128])
def test_windows_cover_every_text_once(size: int, context: int) -> None:
    rng = random.Random(size)
    texts = [" ".join(["word"] * rng.randint(1, 30)) for _ in range(50)]
    windows = group_texts(texts, size, context)
    assert [index for window in windows for index in range(window.start, window.end)] == list(range(50))
    for window in windows:
        assert window.start - context <= window.context <= window.start
        read = sum(map(count_pieces, texts[window.context : window.end]))
        assert read <= size or (
            window.end == window.start + 1 and read <= size // 2 + count_pieces(texts[window.start])
        )


@pytest.mark.parametrize(
    "text",
    [
        "one, two; three " * 100,
        "x" * 5000,
        "9" * 700,
        "!" * 300,
        "See https://example.com/" + "a/" * 400 + " for more.",
        "日本語" * 200,
    ],
)
def test_cut_text_keeps_all_but_spaces(text: str) -> None:
    ranges = cut_text(text, 32)
    assert "".join(text[start:end] for start, end in ranges).replace(" ", "") == text.replace(" ", "")
    assert all(count_pieces(text[start:end]) <= 32 for start, end in ranges)
    assert len(ranges) > 1


def test_cut_text_prefers_clauses_and_then_words() -> None:
    text = "The parcel, which left on Monday, comes tomorrow. " * 3
    assert {text[start:end][-1] for start, end in cut_text(text, 12)} <= {",", "."}
    text = "word " * 90
    assert {word for start, end in cut_text(text, 7) for word in text[start:end].split()} == {"word"}


PARAGRAPHS = [
    "The shop in Utrecht opens at nine.\nIt closes at five.",
    "Refunds are paid within 14 days, by bank transfer only.",
    "Batteries may not be sent by air.",
]


def read_index(passages: list[str]) -> KnowledgeIndex:
    index = KnowledgeIndex(passages)
    for _ in index.read():
        pass
    return index


def write_knowledge(paragraphs: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    return "\n\n".join(
        " ".join(f"{' '.join(f'word{rng.randrange(3000)}' for _ in range(12))}." for _ in range(5))
        for _ in range(paragraphs)
    )


def test_excerpt_has_what_each_sentence_is_about() -> None:
    knowledge = [write_knowledge(40), *PARAGRAPHS, write_knowledge(40, seed=1)]
    index = read_index(knowledge)
    excerpt = index.find(
        ["You get the refund after 14 days.", "The Utrecht shop opens at 9.", "No battery by air!"], FAR.excerpt
    )
    assert set(PARAGRAPHS) <= set(excerpt.passages)
    assert sum(map(count_pieces, excerpt.passages)) <= FAR.excerpt
    assert [part.passage for part in excerpt.ranges] == sorted(part.passage for part in excerpt.ranges)


def test_excerpt_of_neighbouring_parts_is_the_text_between_them() -> None:
    knowledge = write_knowledge(60)
    index = read_index([knowledge])
    excerpt = index.find([knowledge[1000:3000]], FAR.excerpt)
    (text,) = excerpt.passages
    assert text == "\n".join(knowledge[part.start : part.end] for part in excerpt.ranges)
    assert all(first.end < second.start for first, second in pairwise(excerpt.ranges))
    assert any("\n\n" in knowledge[part.start : part.end] for part in excerpt.ranges)


def test_excerpt_without_a_shared_word_is_the_beginning() -> None:
    (part,) = read_index(["First comes this.", write_knowledge(3)]).find(["Nothing shared?"], FAR.excerpt).ranges
    assert (part.passage, part.start) == (0, 0)


@pytest.mark.parametrize(
    "text", [write_knowledge(9), "a b. " * 500, "line\n" * 300, "x" * 9000, "One.\n\n\n# Two\nThree"]
)
def test_parts_cover_a_passage_in_order(text: str) -> None:
    parts = list(split_passage(text))
    assert all(first[1] <= second[0] for first, second in pairwise(parts))
    covered = set().union(*(range(start, end) for start, end, _ in parts))
    assert all(character.isspace() for index, character in enumerate(text) if index not in covered)
    assert all(size == count_pieces(text[start:end]) for start, end, size in parts)
    assert len(parts) == 1 or all(size <= PART_SIZE + 5000 // 6 for _, _, size in parts)

"""BERTScore on vectors small enough to work out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import BertScoreOptions, Engine, Options, Score
from groundwire.engine.metrics.bertscore import match_words
from groundwire.engine.scheduling.cache import Cache, Key
from groundwire.engine.signature import signature
from groundwire.runtime.calls import CountTokens, Embed, Embedded, Read, TokenCounts
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.models.embedder import unit
from groundwire.runtime.protocol import RoleInfo
from tests.support.bertscore import explained, triple

# By hand, on a world in which a word is one token and a vector


WORLD: dict[str, tuple[float, float, float]] = {
    "bob": (1, 0, 0),
    "robert": (0.8, 0.6, 0),
    "paints": (0, 0, 1),
    "sings": (0, 1, 0),
}
START = (0.6, 0.8, 0.0)


def embed(call: Embed | CountTokens) -> Embedded | TokenCounts:
    """Words apart by blanks, one special token in front."""
    ids = {word: index for index, word in enumerate(WORLD, 1)}
    if isinstance(call, CountTokens):
        counts = {0: len(call.texts)}
        for index in (ids[word] for text in call.texts for word in set(text.split())):
            counts[index] = counts.get(index, 0) + 1
        return TokenCounts(len(call.texts), counts)
    tokens, at = [("", 0, 0)], 0
    for word in call.text.split():
        at = call.text.index(word, at)
        tokens.append((word, at, at + len(word)))
        at += len(word)
    rows = np.array([START, *(WORLD[word.lower()] for word, _, _ in tokens[1:])], dtype=np.float32)
    return Embedded(
        unit(rows),
        tuple(ids.get(word.lower(), 0) for word, _, _ in tokens),
        tuple((start, end) for _, start, end in tokens),
        tuple(not word for word, _, _ in tokens),
        Read(1, len(call.text), len(call.text)),
    )


NO_FACTS = RoleInfo()


def run(response: str, *knowledge: str, info: RoleInfo = NO_FACTS, **settings: object) -> Score:
    runtime = FakeRuntime({"embedder": embed}, role_info={"embedder": info})
    with Engine(runtime) as engine:
        options = Options(bertscore=BertScoreOptions(**settings))  # type: ignore[arg-type]
        return engine.score(response, knowledge, metrics=["bertscore"], options=options)


def test_values_worked_out_by_hand() -> None:
    """robert–bob 0.8, paints–paints 1; of the knowledge bob–robert 0.8, sings–start 0.8, paints–paints 1."""
    found = run("Robert paints", "bob sings paints")
    precision, recall = (0.96 + 1) / 2, (0.8 + 0.8 + 1) / 3
    # The special token takes part: "robert" is nearer to it (0.8·0.6 + 0.6·0.8 = 0.96) than to "bob".
    assert triple(found) == pytest.approx((precision, recall, 2 * precision * recall / (precision + recall)))
    assert [(word.text, word.start, word.end) for word in explained(found).words] == [
        ("Robert", 0, 6), ("paints", 7, 13),
    ]  # fmt: skip
    assert [word.similarity for word in explained(found).words] == pytest.approx([0.96, 1.0])


def test_passages_are_matched_together_and_embedded_apart() -> None:
    runtime = FakeRuntime({"embedder": embed})
    with Engine(runtime) as engine:
        two = engine.score("robert paints", ["bob", "sings paints"], metrics=["bertscore"])
        one = engine.score("robert paints", "bob sings paints", metrics=["bertscore"])
    assert triple(two) == pytest.approx(triple(one))
    texts = {call.text for _, calls in runtime.batches for call in calls if isinstance(call, Embed)}
    assert texts == {"robert paints", "bob", "sings paints", "bob sings paints"}


def test_only_the_knowledge_is_lower_cased() -> None:
    runtime = FakeRuntime({"embedder": embed})
    with Engine(runtime) as engine:
        engine.score("Bob", "PAINTS", metrics=["bertscore"])
        cased = Options(bertscore=BertScoreOptions(lower_knowledge=False, idf_documents=("bob",)))
        engine.score("Bob", "Sings", metrics=["bertscore"], options=cased)
    texts = [call.text for _, calls in runtime.batches for call in calls if isinstance(call, Embed)]
    assert sorted(texts) == ["Bob", "Sings", "paints"]


def test_rare_tokens_weigh_more() -> None:
    documents = ("bob paints", "bob", "bob sings")
    found = run("bob robert", "bob sings", idf_documents=documents)
    # bob is in all three documents and weighs nothing; robert is in none: log 4
    assert explained(found).precision == pytest.approx(0.96)
    assert explained(run("robert paints", "paints", idf_documents=documents)).precision == pytest.approx(
        (math.log(4) * 0.96 + math.log(2) * 1) / (math.log(4) + math.log(2))
    )


@pytest.mark.parametrize(
    ("role", "setting", "used"),
    [
        (None, "role", None),
        ((0.5, 0.4, 0.3), "role", (0.5, 0.4, 0.3)),
        ((0.5, 0.4, 0.3), "none", None),
        ((0.5, 0.4, 0.3), (0.1, 0.2, -0.3), (0.1, 0.2, -0.3)),
        (None, (0.1, 0.2, 0.3), (0.1, 0.2, 0.3)),
    ],
)
def test_which_baseline_rescales(
    role: tuple[float, float, float] | None, setting: object, used: tuple[float, float, float] | None
) -> None:
    found = run("robert paints", "bob sings paints", info=RoleInfo(baseline=role), baseline=setting)
    plain = triple(run("robert paints", "bob sings paints"))
    zero = used or (0.0, 0.0, 0.0)
    assert triple(found) == pytest.approx([(x - b) / (1 - b) for x, b in zip(plain, zero, strict=True)])
    assert explained(found).baseline == used


@pytest.mark.parametrize("baseline", [(0.1, 0.2, 1.0), (0.1, math.nan, 0.2), (-1.5, 0, 0), (0.1, 0.2)])
def test_a_baseline_that_rescales_nothing_is_named(baseline: tuple[float, ...]) -> None:
    found = run("bob", "bob", baseline=baseline)
    assert (found.status, found.value) == ("failed", None)
    assert str(baseline) in found.message


def test_equal_texts_score_one_on_any_scale() -> None:
    assert run("bob sings", "bob sings", baseline=(0.5, 0.5, 0.5)).value == pytest.approx(1.0)


def test_without_weight_there_is_nothing_to_verify_or_nothing_to_find() -> None:
    nothing = run("bob", "sings", idf_documents=("bob", "bob sings"))
    assert (nothing.status, nothing.value) == ("nothing_to_verify", None)
    # In the knowledge no token weighs anything: it supports nothing, as in the package.
    assert triple(run("paints", "bob", idf_documents=("bob", "bob sings"))) == (0.0, 0.0, 0.0)


def test_the_signature_names_documents_by_their_digest() -> None:
    def sign(*documents: str) -> str:
        options = Options(bertscore=BertScoreOptions(idf_documents=documents))
        return signature(FakeRuntime({}).identity, ("bertscore",), options)

    assert sign("bob").endswith("|options:bertscore.idf_documents=('bob',)")
    texts = [f"document {i}" for i in range(100)]
    long, other = sign(*texts), sign(*texts[1:], texts[0])
    assert "idf_documents=sha256:" in long
    assert len(long) < 200
    assert long != other == sign(*texts[1:], texts[0])


def test_the_cache_counts_the_bytes_of_vectors() -> None:
    cache = Cache(max_chars=3 * 256 + 100 + 2 * 4 * 30)
    found = embed(Embed("bob"))
    assert isinstance(found, Embedded)
    bulky = Embedded(np.zeros((10, 3), np.float32), found.ids, found.offsets, found.special, found.read)
    keys = [Key(Embed(name), 8) for name in "abc"]
    for key in keys:
        cache.put(key, bulky)
    assert [key.call.text for key in keys if cache.get(key)] == ["b", "c"]  # type: ignore[union-attr]
    small = Cache(max_chars=300)
    small.put(keys[0], bulky)
    assert len(small) == 0, "a result larger than the cache would only empty it"


# The words of an explanation


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    """A text, and a division of it into pieces, some of them empty."""
    text = draw(st.text(st.sampled_from("ab ,.'é漢🙂\n"), min_size=1, max_size=30))
    bounds = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return text, list(zip([0, *bounds], [*bounds, len(text)], strict=True))


@given(cut_texts())
def test_a_words_similarity_is_the_mean_of_the_pieces_that_touch_it(case: tuple[str, list[tuple[int, int]]]) -> None:
    text, pieces = case
    inner = text.strip()
    if not inner:
        return
    begin = text.index(inner)
    inside = [
        (max(a - begin, 0), min(b - begin, len(inner))) for a, b in pieces if b > begin and a - begin < len(inner)
    ]
    count = len(inside)
    numbers = np.random.default_rng(count).random(count + 1).astype(np.float32)
    embedded = Embedded(
        np.zeros((count + 1, 2), np.float32),
        (0,) * (count + 1),
        ((0, 0), *inside),
        (True, *[False] * count),
        Read(1, 1, 1),
    )
    found = match_words(text, embedded, numbers)
    for word in found:
        assert word.text == text[word.start : word.end]
        touching = [
            number
            for (a, b), number in zip(inside, numbers[1:], strict=True)
            if a + begin < word.end and b + begin > word.start
        ]
        assert word.similarity == pytest.approx(float(np.mean(touching)), rel=1e-5)
    assert found

"""BERTScore, on vectors small enough to compute by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine, Options, Score
from groundwire.engine.core.signature import signature
from groundwire.engine.metrics.bertscore import match_words
from groundwire.engine.scheduling.calls import ENTRY_BYTES, Cache, Key, count_bytes
from groundwire.engine.schema.options import BertScoreOptions
from groundwire.runtime.calls import CountTokens, Embed, Embedded, Read, TokenCounts
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.models.embedder import unit
from groundwire.runtime.protocol import RoleInfo
from tests.support.bertscore import get_explanation, get_values

# Values computed by hand: each word is one token with a fixed vector


VECTORS: dict[str, tuple[float, float, float]] = {
    "bob": (1, 0, 0),
    "robert": (0.8, 0.6, 0),
    "paints": (0, 0, 1),
    "sings": (0, 1, 0),
}
START = (0.6, 0.8, 0.0)


def embed(call: Embed | CountTokens) -> Embedded | TokenCounts:
    """Embeds the words between spaces, after one special token."""
    ids = {word: index for index, word in enumerate(VECTORS, 1)}
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
    rows = np.array([START, *(VECTORS[word.lower()] for word, _, _ in tokens[1:])], dtype=np.float32)
    return Embedded(
        unit(rows),
        tuple(ids.get(word.lower(), 0) for word, _, _ in tokens),
        tuple((start, end) for _, start, end in tokens),
        tuple(not word for word, _, _ in tokens),
        Read(1, len(call.text), len(call.text)),
    )


NO_ROLE_INFO = RoleInfo()


def run(response: str, *knowledge: str, info: RoleInfo = NO_ROLE_INFO, **settings: object) -> Score:
    runtime = FakeRuntime({"embedder": embed}, role_info={"embedder": info})
    with Engine(runtime) as engine:
        options = Options(bertscore=BertScoreOptions(**settings))  # type: ignore[arg-type]
        return engine.score(response, knowledge, metrics=["bertscore"], options=options)


def test_values_equal_those_computed_by_hand() -> None:
    """robert–bob 0.8, paints–paints 1; for the knowledge bob–robert 0.8, sings–start 0.8, paints–paints 1."""
    score = run("Robert paints", "bob sings paints")
    precision, recall = (0.96 + 1) / 2, (0.8 + 0.8 + 1) / 3
    # The special token takes part: "robert" is nearer to it (0.8·0.6 + 0.6·0.8 = 0.96) than to "bob".
    assert get_values(score) == pytest.approx((precision, recall, 2 * precision * recall / (precision + recall)))
    assert [(word.text, word.start, word.end) for word in get_explanation(score).words] == [
        ("Robert", 0, 6), ("paints", 7, 13),
    ]  # fmt: skip
    assert [word.similarity for word in get_explanation(score).words] == pytest.approx([0.96, 1.0])


def test_passages_are_matched_together_and_embedded_separately() -> None:
    runtime = FakeRuntime({"embedder": embed})
    with Engine(runtime) as engine:
        two_passages = engine.score("robert paints", ["bob", "sings paints"], metrics=["bertscore"])
        one_passage = engine.score("robert paints", "bob sings paints", metrics=["bertscore"])
    assert get_values(two_passages) == pytest.approx(get_values(one_passage))
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
    score = run("bob robert", "bob sings", idf_documents=documents)
    # "bob" is in all three documents, so its weight is 0; "robert" is in none, so its weight is log 4.
    assert get_explanation(score).precision == pytest.approx(0.96)
    assert get_explanation(run("robert paints", "paints", idf_documents=documents)).precision == pytest.approx(
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
def test_the_setting_chooses_the_baseline_that_rescales(
    role: tuple[float, float, float] | None, setting: object, used: tuple[float, float, float] | None
) -> None:
    score = run("robert paints", "bob sings paints", info=RoleInfo(baseline=role), baseline=setting)
    plain = get_values(run("robert paints", "bob sings paints"))
    zero = used or (0.0, 0.0, 0.0)
    assert get_values(score) == pytest.approx([(x - b) / (1 - b) for x, b in zip(plain, zero, strict=True)])
    assert get_explanation(score).baseline == used


@pytest.mark.parametrize("baseline", [(0.1, 0.2, 1.0), (0.1, math.nan, 0.2), (-1.5, 0.0, 0.0)])
def test_the_message_names_an_invalid_baseline(baseline: tuple[float, ...]) -> None:
    score = run("bob", "bob", baseline=baseline)
    assert (score.status, score.value) == ("failed", None)
    assert str(baseline) in score.message


def test_equal_texts_score_1_with_any_baseline() -> None:
    assert run("bob sings", "bob sings", baseline=(0.5, 0.5, 0.5)).value == pytest.approx(1.0)


def test_a_response_without_weight_has_nothing_to_verify_and_knowledge_without_weight_scores_0() -> None:
    nothing = run("bob", "sings", idf_documents=("bob", "bob sings"))
    assert (nothing.status, nothing.value) == ("nothing_to_verify", None)
    # Every token of the knowledge has weight 0, so the knowledge supports nothing, as in the package.
    assert get_values(run("paints", "bob", idf_documents=("bob", "bob sings"))) == (0.0, 0.0, 0.0)


def test_the_signature_names_long_documents_by_their_digest() -> None:
    def sign(*documents: str) -> str:
        options = Options(bertscore=BertScoreOptions(idf_documents=documents))
        return signature(FakeRuntime({}).identity, ("bertscore",), options)

    assert sign("bob").endswith("|options:bertscore.idf_documents=('bob',)")
    texts = [f"document {i}" for i in range(100)]
    long, other = sign(*texts), sign(*texts[1:], texts[0])
    assert "idf_documents=sha256:" in long
    assert len(long) < 200
    assert long != other == sign(*texts[1:], texts[0])


def test_the_cache_counts_the_bytes_of_the_vectors() -> None:
    embedded = embed(Embed("bob"))
    assert isinstance(embedded, Embedded)
    large = Embedded(np.zeros((10, 3), np.float32), embedded.ids, embedded.offsets, embedded.special, embedded.read)
    keys = [Key(Embed(name), 8) for name in "abc"]
    cost = ENTRY_BYTES + count_bytes(keys[0].call) + count_bytes(large)
    assert cost > ENTRY_BYTES + 10 * 3 * 4
    cache = Cache(max_bytes=2 * cost)
    for key in keys:
        cache.put(key, large)
    assert [key.call.text for key in keys if cache.get(key)] == ["b", "c"]  # type: ignore[union-attr]
    small = Cache(max_bytes=cost - 1)
    small.put(keys[0], large)
    assert len(small) == 0, "the cache does not store a result larger than itself, which would evict everything else"


# Words of an explanation


@st.composite
def texts_with_pieces(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    """A text and the ranges of its pieces, some of them empty."""
    text = draw(st.text(st.sampled_from("ab ,.'é漢🙂\n"), min_size=1, max_size=30))
    bounds = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return text, list(zip([0, *bounds], [*bounds, len(text)], strict=True))


@given(texts_with_pieces())
def test_the_similarity_of_a_word_is_the_mean_over_the_pieces_that_overlap_it(
    case: tuple[str, list[tuple[int, int]]],
) -> None:
    text, pieces = case
    inner = text.strip()
    if not inner:
        return
    begin = text.index(inner)
    inside = [
        (max(a - begin, 0), min(b - begin, len(inner))) for a, b in pieces if b > begin and a - begin < len(inner)
    ]
    count = len(inside)
    similarities = np.random.default_rng(count).random(count + 1).astype(np.float32)
    embedded = Embedded(
        np.zeros((count + 1, 2), np.float32),
        (0,) * (count + 1),
        ((0, 0), *inside),
        (True, *[False] * count),
        Read(1, 1, 1),
    )
    matched = match_words(text, embedded, similarities)
    for word in matched:
        assert word.text == text[word.start : word.end]
        overlapping = [
            similarity
            for (a, b), similarity in zip(inside, similarities[1:], strict=True)
            if a + begin < word.end and b + begin > word.start
        ]
        assert word.similarity == pytest.approx(float(np.mean(overlapping)), rel=1e-5)
    assert matched

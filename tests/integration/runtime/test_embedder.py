"""Token vectors of exported embedders against the checkpoints they come from, windows, and matches."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import EmbedderRole
from groundwire.runtime.calls import CountTokens, Embed, Embedded, Read, TokenCounts, role_of
from groundwire.runtime.errors import ModelError, TooLong
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.embedder import BLOCK_COLUMNS, Embedder, best_matches, unit
from groundwire.runtime.protocol import RoleInfo
from groundwire.runtime.texts.tokenization import OwnedWindow, TextEncoder
from tests.support import models
from tests.support.zoo import PROFILE, Zoo

FAMILIES = list(models.EMBEDDERS)
SENTENCES = list(models.sentences())
LONG = " ".join(SENTENCES)


def role_of_bundle(bundle: Bundle) -> EmbedderRole:
    role = bundle.manifest.roles["embedder"]
    assert isinstance(role, EmbedderRole)
    return role


def changed(zoo: Zoo, family: str, **changes: object) -> Embedder:
    """The family's embedder with some fields of its role changed."""
    bundle = zoo.bundle("embedder", family)
    return Embedder.load(bundle, msgspec.structs.replace(role_of_bundle(bundle), **changes), PROFILE)


def encoder(zoo: Zoo, family: str, max_tokens: int = models.MAX_TOKENS) -> TextEncoder:
    return TextEncoder.load(zoo.bundle("embedder", family).file("embedder.tokenizer.json"), max_tokens)


def embed(embedder: Embedder, text: str, max_windows: int = 100) -> Embedded:
    (embedded,) = embedder.run([Embed(text)], max_windows)
    assert isinstance(embedded, Embedded), embedded
    return embedded


@torch.no_grad()
def states(zoo: Zoo, family: str, ids: list[int]) -> NDArray[np.float32]:
    """The checkpoint's unit vectors of these ids, alone in a batch."""
    model, _ = zoo.torch("embedder", family)
    return unit(model(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy())


@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_are_those_of_the_checkpoint(zoo: Zoo, family: str) -> None:
    _, tokenizer = zoo.torch("embedder", family)
    for text in SENTENCES:
        embedded = embed(zoo.embedder(family), text)
        # RoBERTa's first word is read as if after a space.
        ids = tokenizer(f" {text}" if family == "roberta" else text)["input_ids"]
        assert list(embedded.ids) == ids
        np.testing.assert_allclose(embedded.vectors, states(zoo, family, ids), atol=2e-5)
        np.testing.assert_allclose(np.linalg.norm(embedded.vectors, axis=1), 1, atol=1e-6)
        assert embedded.special == (True, *[False] * (len(ids) - 2), True)
        assert embedded.read == Read(1, len(text), len(text))


@pytest.mark.parametrize("family", FAMILIES)
def test_offsets_are_of_the_text(zoo: Zoo, family: str) -> None:
    embedded = embed(zoo.embedder(family), "bob ross painted")
    ranges = [range_ for range_, special in zip(embedded.offsets, embedded.special, strict=True) if not special]
    assert (ranges[0][0], ranges[-1][1]) == (0, len("bob ross painted"))
    pieces = ["bob ross painted"[start:end].strip() for start, end in ranges]
    # A byte-level tokenizer may have a token for the space alone.
    assert "".join(pieces) == "bobrosspainted"
    assert ranges == sorted(ranges)


def join_column(parts: list[OwnedWindow], column: str) -> list[object]:
    return [getattr(part.window, column)[i] for part in parts for i in range(*part.owned)]


@pytest.mark.parametrize("stride", [0, 1, 7, 24, 1000])
@pytest.mark.parametrize("family", FAMILIES)
def test_windows_own_every_token_once(zoo: Zoo, family: str, stride: int) -> None:
    whole, narrow = encoder(zoo, family, 10_000), encoder(zoo, family, 20)
    for length in (1, 17, 18, 19, 35, 36, 37, 40, 90):
        text = " ".join(LONG.split()[:length])
        (all_of_it,) = whole.encode_parts(text, stride)
        parts = narrow.encode_parts(text, stride)
        for column in ("ids", "offsets", "sequence_ids"):
            assert join_column(parts, column) == getattr(all_of_it.window, column)
        for part in parts:
            assert len(part.window.ids) == len(part.window.offsets) <= 20
            assert 0 <= part.owned[0] < part.owned[1] <= len(part.window.ids)
        if len(parts) > 1:
            assert {len(part.window.ids) for part in parts} == {20}, "no window is wasted"


def test_owned_tokens_have_context_on_both_sides(zoo: Zoo) -> None:
    parts = encoder(zoo, "bert", 20).encode_parts(LONG, 8)
    assert len(parts) > 10
    for part in parts[1:]:
        assert part.owned[0] >= 1 + 4, "half of the shared tokens precede the first owned token"
    for part in parts[:-1]:
        assert len(part.window.ids) - 1 - part.owned[1] >= 4


@pytest.mark.parametrize("stride", [0, 24])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_long_text_is_read_in_windows(zoo: Zoo, family: str, stride: int) -> None:
    embedded = embed(changed(zoo, family, stride=stride), LONG)
    parts = encoder(zoo, family).encode_parts(LONG, stride)
    assert embedded.read == Read(len(parts), len(LONG), len(LONG))
    assert embedded.read.windows >= 5
    expected = np.concatenate(
        [states(zoo, family, part.window.ids)[part.owned[0] : part.owned[1]] for part in parts],
    )
    np.testing.assert_allclose(embedded.vectors, expected, atol=2e-5)
    assert list(embedded.ids) == encoder(zoo, family).encode_ids(LONG)
    assert embedded.special.count(True) == 2


def test_more_windows_than_allowed_is_an_error_of_that_call_alone(zoo: Zoo) -> None:
    embedder = zoo.embedder("bert")
    count = embed(embedder, LONG).read.windows
    refused, fine = embedder.run([Embed(LONG), Embed("bob")], count - 1)
    assert isinstance(refused, TooLong)
    assert f"makes more than {count - 1} windows of {models.MAX_TOKENS} tokens" in str(refused)
    assert isinstance(fine, Embedded)


def test_a_text_without_tokens_has_special_ones_only(zoo: Zoo) -> None:
    embedded = embed(zoo.embedder("bert"), "\u200b")
    assert embedded.special == (True, True)
    assert embedded.vectors.shape == (2, models.HIDDEN)


def test_a_text_cannot_spell_a_special_token(zoo: Zoo) -> None:
    embedded = embed(zoo.embedder("bert"), "bob [SEP] ross")
    assert [index for index, special in zip(embedded.ids, embedded.special, strict=True) if not special].count(3) == 0


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_vectors_do_not_depend_on_the_batch(zoo: Zoo, family: str, precision: str) -> None:
    rng = random.Random(3)
    words = models.TEXT.split()
    texts = [" ".join(words[(at := rng.randrange(200)) : at + 1 + 2 * i]) for i in range(48)]
    rng.shuffle(texts)
    embedder = zoo.embedder(family, precision)
    together = embedder.run([Embed(text) for text in texts], 64)
    for text, embedded in zip(texts, together, strict=True):
        assert isinstance(embedded, Embedded)
        alone = embed(embedder, text)
        assert (embedded.ids, embedded.offsets, embedded.special, embedded.read) == (
            alone.ids, alone.offsets, alone.special, alone.read,
        )  # fmt: skip
        np.testing.assert_allclose(embedded.vectors, alone.vectors, atol=1e-6)


def test_int8_is_near_but_another_model(zoo: Zoo) -> None:
    exact, rounded = (embed(zoo.embedder("bert", precision), SENTENCES[0]).vectors for precision in ("fp32", "int8"))
    cosines = (exact * rounded).sum(axis=1)
    assert cosines.min() > 0.97
    assert cosines.max() < 1 - 1e-5


def test_a_broken_graph_gives_no_vectors(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = changed(zoo, "bert")
    session = embedder._session
    monkeypatch.setattr(session, "run", lambda feeds: [np.zeros((*feeds["input_ids"].shape, 4), np.float32)])
    (outcome,) = embedder.run([Embed("bob")], 1)
    assert isinstance(outcome, ModelError)


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_are_counted_once_per_text(zoo: Zoo, family: str) -> None:
    texts = (*SENTENCES, SENTENCES[0], LONG)
    (counts,) = zoo.embedder(family).run([CountTokens(texts)], 1)
    assert isinstance(counts, TokenCounts)
    expected = Counter(index for text in texts for index in set(encoder(zoo, family).encode_ids(text)))
    assert (counts.texts, counts.counts) == (len(texts), dict(expected))
    start = encoder(zoo, family).encode_ids("")[0]
    assert counts.counts[start] == len(texts)


def test_calls_of_both_kinds_keep_their_order(zoo: Zoo) -> None:
    calls = [CountTokens(("bob",)), Embed("ross"), CountTokens(()), Embed(LONG), Embed("bob")]
    outcomes = zoo.embedder("mpnet").run(calls, 100)  # type: ignore[arg-type]
    assert [type(outcome) for outcome in outcomes] == [TokenCounts, Embedded, TokenCounts, Embedded, Embedded]
    assert outcomes[2] == TokenCounts(0, {})
    assert isinstance(outcomes[4], Embedded)
    assert outcomes[4].ids == embed(zoo.embedder("mpnet"), "bob").ids
    assert {role_of(call) for call in calls} == {"embedder"}  # type: ignore[arg-type]


def test_the_local_runtime_serves_the_role(zoo: Zoo) -> None:
    bundle = zoo.bundle("embedder", "bert")
    runtime = LocalRuntime.load(bundle.directory, "cpu", threads=1)
    assert runtime.roles == {"embedder"}
    assert runtime.worker_pool("embedder") == "device"
    assert runtime.role_info("embedder") == RoleInfo()
    outcomes = [outcome for call in runtime.warm_calls() for outcome in runtime.run("embedder", [call], 8)]
    assert len(outcomes) == 1
    assert isinstance(outcomes[0], Embedded)
    runtime.close()


def vectors(rows: int, seed: int, width: int = 5) -> NDArray[np.float32]:
    return unit(np.random.default_rng(seed).normal(size=(rows, width)))


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000))
def test_best_matches_are_the_largest_cosines(rows: int, columns: int, seed: int) -> None:
    left, right = vectors(rows, seed), vectors(columns, seed + 1)
    left_best, right_best = best_matches(left, right)
    for i, vector in enumerate(left):
        assert left_best[i] == pytest.approx(max(float(vector @ other) for other in right), abs=1e-6)
    for j, other in enumerate(right):
        assert right_best[j] == pytest.approx(max(float(vector @ other) for vector in left), abs=1e-6)


def test_best_matches_over_several_blocks() -> None:
    left, right = vectors(3, 0), vectors(2 * BLOCK_COLUMNS + 5, 1)
    left_best, right_best = best_matches(left, right)
    table = left @ right.T
    np.testing.assert_allclose(left_best, table.max(axis=1), atol=1e-6)
    np.testing.assert_allclose(right_best, table.max(axis=0), atol=1e-6)


def test_a_match_with_itself_is_not_above_one() -> None:
    some = vectors(500, 2, width=384)
    left_best, right_best = best_matches(some, some)
    assert left_best.max() <= 1
    assert right_best.max() <= 1
    # How far below is a matter of the processor's order of summation.
    assert left_best.min() == pytest.approx(1, abs=1e-5)


def test_a_vector_of_zeros_has_no_direction() -> None:
    assert np.isnan(unit(np.zeros((1, 3), np.float32))).all()

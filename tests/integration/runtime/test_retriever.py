"""The entity retriever against its PyTorch model, alone and in batches, and the calls that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundwire.export import RoleOptions, export_role
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import RetrieverRole
from groundwire.runtime.calls import Candidate, Retrieve
from groundwire.runtime.capture.encoder import CapturedEncoder
from groundwire.runtime.errors import GroundwireError, InvalidRequest, TooLong
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models import retriever as module
from groundwire.runtime.models.masked_input import build_masked_input
from groundwire.runtime.models.retriever import RankedMentions, Retriever
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.texts.tokenization import TextEncoder
from groundwire.runtime.triples import Triple
from tests.support import retrievers
from tests.support.host_cuda import use_host_memory
from tests.support.retrievers import call

PROFILE = DeviceProfile.of("cpu", 1)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    root = tmp_path_factory.mktemp("retriever")
    options = RoleOptions(str(retrievers.save(root / "checkpoint")), precision="fp32")
    return export_role("retriever", options, root / "bundle")


@pytest.fixture(scope="module")
def retriever(bundle: Bundle) -> Retriever:
    return opened(bundle)


def opened(bundle: Bundle) -> Retriever:
    role = bundle.manifest.roles["retriever"]
    assert isinstance(role, RetrieverRole)
    return Retriever.load(bundle, role, PROFILE)


def answer(retriever: Retriever, retrieve: Retrieve) -> RankedMentions:
    (ranked,) = retriever.run([retrieve], 1)
    assert not isinstance(ranked, GroundwireError), ranked
    return ranked


def scores(retrieve: Retrieve, ranked: RankedMentions) -> list[list[float]]:
    tables = [{(item.anchor, item.entity): item.score for item in mention} for mention in ranked]
    return [
        [table[candidate.anchor, candidate.entity] for candidate in candidates]
        for table, candidates in zip(tables, retrieve.candidates, strict=True)
    ]


@pytest.mark.parametrize(
    "changes",
    [{}, {"pooling": "max", "memory_pooling": "max", "paths": False, "turns": 1, "layers": 1}, {"masked": False}],
    ids=["mean", "max, names only", "without MLM"],
)
def test_scores_are_those_of_the_pytorch_model(tmp_path: Path, changes: dict[str, Any]) -> None:
    checkpoint = retrievers.save(tmp_path / "checkpoint", seed=1, **changes)
    made = export_role("retriever", RoleOptions(str(checkpoint), precision="fp32"), tmp_path / "bundle")
    asked = call()
    actual = scores(asked, answer(opened(made), asked))
    for mention, expected in zip(actual, retrievers.score_candidates(checkpoint, asked), strict=True):
        assert mention == pytest.approx(expected, abs=1e-3)


def test_a_score_depends_on_the_entity_chosen_before(retriever: Retriever) -> None:
    asked = call()
    alone = msgspec.structs.replace(asked, candidates=((Candidate("Aliens", "James Cameron"),), asked.candidates[1]))
    other = answer(retriever, alone)[1]
    assert scores(asked, answer(retriever, asked))[1] != scores(asked, (other, other))[1]


def assert_same(ranked: RankedMentions, expected: RankedMentions) -> None:
    """The same entities in the same order; in float32 a score may move by an ulp or two with its batch-mates."""
    for mention, other in zip(ranked, expected, strict=True):
        assert [(item.anchor, item.entity) for item in mention] == [(item.anchor, item.entity) for item in other]
        assert [item.score for item in mention] == pytest.approx([item.score for item in other], abs=1e-6, rel=0)


def test_a_result_does_not_depend_on_its_batch_mates(bundle: Bundle) -> None:
    asked = [
        call(),
        call("It is a film by Tom Hanks.", ("Tom Hanks",)),
        call("Bill Murray!", ("Bill Murray",), history=(), triples=()),
        call("Alien was made in 1980.", ("Alien", "1980"), triples=retrievers.FACTS[:2]),
    ]
    together = opened(bundle).run(asked, 1)
    for number, retrieve in enumerate(asked):
        alone, among = answer(opened(bundle), retrieve), together[number]
        assert not isinstance(among, GroundwireError)
        assert_same(alone, among)


def test_probabilities_are_a_softmax_over_all_candidates(retriever: Retriever) -> None:
    for mention in answer(retriever, call()):
        assert sum(item.probability for item in mention) == pytest.approx(1)
        assert [item.score for item in mention] == sorted((item.score for item in mention), reverse=True)
    (best, _), (every, _) = answer(retriever, call(top=2)), answer(retriever, call())
    assert best == every[:2]


def test_the_memory_is_bounded_and_changes_no_result(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMORY_SIZE", 3)
    small = opened(bundle)
    first = answer(small, call())
    assert len(small._known) == 3
    assert_same(answer(small, call()), first)
    assert_same(first, answer(opened(bundle), call()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mentions": ((0, 5), (3, 9))}, "overlap"),
        ({"mentions": ((22, 31), (0, 5))}, "out of order"),
        ({"mentions": ((0, 5), (40, 400))}, "no range of a response of 54 characters"),
        ({"mentions": ((5, 5), (22, 31))}, "no range"),
        ({"mentions": ((5, 6), (22, 31))}, "holds no word"),
        ({"mentions": (), "candidates": ()}, "No mention is given"),
        ({"candidates": ((), ())}, "has no candidate"),
        ({"candidates": ((Candidate("Alien", "1979"),),)}, "2 mentions came with candidates for 1"),
        ({"candidates": ((Candidate("Alien", " "),),) * 2}, "has no words"),
        ({"top": 0}, "top=0"),
    ],
)
def test_invalid_calls_are_refused(retriever: Retriever, change: dict[str, Any], message: str) -> None:
    good = call()
    bad, fine = retriever.run([msgspec.structs.replace(good, **change), good], 1)
    assert isinstance(bad, InvalidRequest)
    assert message in str(bad)
    assert not isinstance(fine, GroundwireError)


def test_two_mentions_cannot_share_a_word(retriever: Retriever) -> None:
    both = msgspec.structs.replace(call("the film", ("the",)), mentions=((0, 1), (1, 3)))
    (error,) = retriever.run([msgspec.structs.replace(both, candidates=call().candidates)], 1)
    assert isinstance(error, InvalidRequest)
    assert "holds no word of its own" in str(error)


def test_a_mention_may_span_punctuation(retriever: Retriever) -> None:
    response = "Alien was made by Scott, Ridley (of England)."
    asked = call(response, ("Scott, Ridley (of England)",))
    assert len(answer(retriever, asked)[0]) == 4


def test_texts_beyond_the_window(bundle: Bundle, retriever: Retriever) -> None:
    role = bundle.manifest.roles["retriever"]
    assert isinstance(role, RetrieverRole)
    facts = tuple(Triple(f"film {number}", "directed by", "a man of some fame") for number in range(30))
    long = call(triples=retrievers.FACTS + facts, history=("The first turn.", "The second.", "Who made Alien?"))
    encoder = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
    inputs = build_masked_input(encoder, long, role.mask_id, role.turns)
    assert len(inputs.window.ids) <= role.max_tokens
    text = encoder.decode(inputs.window.ids).replace(" ", "")
    # The nearest facts and the last turn are kept; the earlier turns go first, then the farthest facts.
    assert "sigourneyweaver" in text
    assert "whomadealien" in text
    assert "second" not in text
    assert "film29" not in text
    assert 0 < inputs.read.characters < inputs.read.total
    (first, *_) = answer(retriever, long)[0]
    assert first.read == inputs.read

    fits = answer(retriever, call())[0][0].read
    assert fits is not None
    assert fits.characters == fits.total
    error, _ = retriever.run([call(history=("why " * 400,)), call()], 1)
    assert isinstance(error, TooLong)
    many = (Candidate("Alien", "word " * 400),)
    (error,) = retriever.run([msgspec.structs.replace(call(), candidates=(many, many))], 1)
    assert isinstance(error, TooLong)


def test_a_local_runtime_answers_the_call(bundle: Bundle) -> None:
    runtime = LocalRuntime.load(bundle.directory, device="cpu", threads=1)
    try:
        (warm,) = runtime.warm_calls()
        assert isinstance(warm, Retrieve)
        (ranked,) = runtime.run("retriever", [warm], 1)
        assert isinstance(ranked, tuple)
        assert ranked[0][0].entity == "2026"
        assert ranked[0][0].probability == 1
    finally:
        runtime.close()


@pytest.mark.parametrize("most", [1, 2, 16])
def test_scores_at_the_fixed_shapes_of_a_gpu_are_those_of_any_shape(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """With one mention captured, the second goes kernel by kernel."""
    use_host_memory(monkeypatch)
    monkeypatch.setattr(module, "MENTIONS", most)
    role = bundle.manifest.roles["retriever"]
    assert isinstance(role, RetrieverRole)
    states, memory = (
        CapturedEncoder.load(bundle.file(name), role.max_tokens, PROFILE) for name in (role.encoder, role.memory)
    )
    query = CapturedEncoder.load(bundle.file(role.query), role.max_tokens, PROFILE, {"mentions": most})
    encoder = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
    asked = [call(), call("It is a film by Tom Hanks.", ("Tom Hanks",)), call(history=())]
    captured = Retriever(role, (states, query, memory), encoder, PROFILE)
    for _ in range(2):
        for computed, expected in zip(captured.run(asked, 1), opened(bundle).run(asked, 1), strict=True):
            assert not isinstance(computed, GroundwireError)
            assert not isinstance(expected, GroundwireError)
            for mention, other in zip(computed, expected, strict=True):
                assert [(item.anchor, item.entity) for item in mention] == [
                    (item.anchor, item.entity) for item in other
                ]
                assert [item.score for item in mention] == pytest.approx([item.score for item in other], abs=1e-4)

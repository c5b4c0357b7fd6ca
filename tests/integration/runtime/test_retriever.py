"""The entity retriever against its PyTorch twin, alone and in company, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundwire.export import RoleOptions, export_role
from groundwire.runtime.bundle import Bundle, RetrieverRole
from groundwire.runtime.calls import Candidate, Retrieve, Retrieved
from groundwire.runtime.errors import GroundwireError, InvalidRequest, TooLong
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models import retriever as module
from groundwire.runtime.models.cloze import cloze
from groundwire.runtime.models.retriever import Answer, Retriever
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.tokenization import TextEncoder
from groundwire.runtime.triples import Triple
from tests.support import retrievers
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


def answer(retriever: Retriever, asked: Retrieve) -> tuple[tuple[Retrieved, ...], ...]:
    (found,) = retriever.run([asked], 1)
    assert not isinstance(found, GroundwireError), found
    return found


def scores(asked: Retrieve, found: tuple[tuple[Retrieved, ...], ...]) -> list[list[float]]:
    by_candidate = [{(one.anchor, one.entity): one.score for one in own} for own in found]
    return [
        [table[candidate.anchor, candidate.entity] for candidate in own]
        for table, own in zip(by_candidate, asked.candidates, strict=True)
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
    found = scores(asked, answer(opened(made), asked))
    for ours, expected in zip(found, retrievers.twin(checkpoint, asked), strict=True):
        assert ours == pytest.approx(expected, abs=1e-3)


def test_what_was_chosen_before_counts(retriever: Retriever) -> None:
    asked = call()
    alone = msgspec.structs.replace(asked, candidates=((Candidate("Aliens", "James Cameron"),), asked.candidates[1]))
    other = answer(retriever, alone)[1]
    assert scores(asked, answer(retriever, asked))[1] != scores(asked, (other, other))[1]


def same(ones: Answer, others: Answer) -> None:
    """The same entities in the same order; in float32 a score may move by an ulp or two with its batch-mates."""
    for one, other in zip(ones, others, strict=True):
        assert [(x.anchor, x.entity) for x in one] == [(x.anchor, x.entity) for x in other]
        assert [x.score for x in one] == pytest.approx([x.score for x in other], abs=1e-6, rel=0)


def test_a_result_does_not_depend_on_its_batch_mates(bundle: Bundle) -> None:
    asked = [
        call(),
        call("It is a film by Tom Hanks.", ("Tom Hanks",)),
        call("Bill Murray!", ("Bill Murray",), history=(), triples=()),
        call("Alien was made in 1980.", ("Alien", "1980"), triples=retrievers.FACTS[:2]),
    ]
    together = opened(bundle).run(asked, 1)
    for number, one in enumerate(asked):
        alone, among = answer(opened(bundle), one), together[number]
        assert not isinstance(among, GroundwireError)
        same(alone, among)


def test_probabilities_are_a_softmax_over_all_candidates(retriever: Retriever) -> None:
    for own in answer(retriever, call()):
        assert sum(one.probability for one in own) == pytest.approx(1)
        assert [one.score for one in own] == sorted((one.score for one in own), reverse=True)
    (first, _), (two, _) = answer(retriever, call(top=2)), answer(retriever, call())
    assert first == two[:2]


def test_the_memory_is_bounded_and_a_part_of_no_result(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMORY", 3)
    small = opened(bundle)
    first = answer(small, call())
    assert len(small._known) == 3
    same(answer(small, call()), first)
    same(first, answer(opened(bundle), call()))


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
def test_what_makes_no_sense_is_refused(retriever: Retriever, change: dict[str, Any], message: str) -> None:
    good = call()
    bad, fine = retriever.run([msgspec.structs.replace(good, **change), good], 1)
    assert isinstance(bad, InvalidRequest)
    assert message in str(bad)
    assert not isinstance(fine, GroundwireError)


def test_two_mentions_cannot_share_a_word(retriever: Retriever) -> None:
    both = msgspec.structs.replace(call("the film", ("the",)), mentions=((0, 1), (1, 3)))
    (found,) = retriever.run([msgspec.structs.replace(both, candidates=call().candidates)], 1)
    assert isinstance(found, InvalidRequest)
    assert "holds no word of its own" in str(found)


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
    inputs = cloze(encoder, long, role.mask_id, role.turns)
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
    found, _ = retriever.run([call(history=("why " * 400,)), call()], 1)
    assert isinstance(found, TooLong)
    many = (Candidate("Alien", "word " * 400),)
    (found,) = retriever.run([msgspec.structs.replace(call(), candidates=(many, many))], 1)
    assert isinstance(found, TooLong)


def test_a_local_runtime_answers_the_call(bundle: Bundle) -> None:
    runtime = LocalRuntime.load(bundle.directory, device="cpu", threads=1)
    try:
        (warm,) = runtime.warm_calls()
        assert isinstance(warm, Retrieve)
        (found,) = runtime.run("retriever", [warm], 1)
        assert isinstance(found, tuple)
        assert found[0][0].entity == "2026"
        assert found[0][0].probability == 1
    finally:
        runtime.close()

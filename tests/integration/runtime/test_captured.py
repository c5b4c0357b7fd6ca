"""Graphs at the fixed shapes of a GPU give what they give at any shape, on the CPU provider and its memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ClassifierRole, QuestionGeneratorRole
from groundwire.runtime.calls import BeamSampling, BeamSearch, Decoding, GenerateQuestions, Greedy, Sampling
from groundwire.runtime.capture import decoder as captured_decoder
from groundwire.runtime.capture.decoder import CapturedSteps
from groundwire.runtime.capture.encoder import CapturedEncoder
from groundwire.runtime.capture.question import CapturedQuestionDecoder
from groundwire.runtime.kserve.specs import read_graph_spec
from groundwire.runtime.models.question_generator import PlainDecoder, QuestionGenerator
from groundwire.runtime.ort.session import DeviceProfile, Graph, Session, forward
from groundwire.runtime.texts.tokenization import TextEncoder
from tests.support.host_cuda import use_host_memory

TEXT = (
    "Bob Ross was an American painter who created The Joy of Painting on public television in 1983. He was born in "
    "Daytona Beach and served in the Air Force for twenty years before he painted mountains, trees and small cabins."
)
SPANS = ("Bob Ross", "an American painter", "1983", "Daytona Beach", "twenty years", "mountains", "small cabins")


@pytest.fixture(autouse=True)
def host_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    use_host_memory(monkeypatch)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.open("compact")


def make_profile(*, strict: bool = False) -> DeviceProfile:
    return replace(DeviceProfile.of("cpu", 1), strict=strict)


def run_classifier(bundle: Bundle, graph: Graph, lengths: Sequence[int], profile: DeviceProfile) -> np.ndarray:
    role = bundle.manifest.roles["nli"]
    assert isinstance(role, ClassifierRole)
    text = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
    windows = [text.encode_pair(TEXT[:length], TEXT[-length // 2 :]) for length in lengths]
    # The graph has a head for each role that it serves.
    position = [output.name for output in read_graph_spec(bundle.file(role.graph)).outputs].index("nli")
    logits = np.zeros((len(windows), 3), np.float32)
    for rows, _, outputs in forward(graph, windows, role.pad_id, profile):
        logits[rows] = outputs[position]
    return logits


def test_logits_at_fixed_shapes_are_those_of_any_shape(bundle: Bundle) -> None:
    role, profile, lengths = bundle.manifest.roles["nli"], make_profile(), [9, 30, 60, 61, 90, 120, 150, 200, 17] * 3
    assert isinstance(role, ClassifierRole)
    encoder = CapturedEncoder.load(bundle.file(role.graph), role.max_tokens, profile)
    expected = run_classifier(bundle, Session.load(bundle.file(role.graph), profile), lengths, profile)
    computed = run_classifier(bundle, encoder, lengths, profile)
    assert np.abs(computed - expected).max() < 1e-4
    assert expected.std() > 0.1
    again = run_classifier(bundle, encoder, lengths[::-1], profile)[::-1]
    assert np.abs(again - expected).max() < 1e-4, "rows of earlier batches stay in the buffers and are not read"


def test_a_strict_graph_has_one_shape(bundle: Bundle) -> None:
    role, profile = bundle.manifest.roles["nli"], make_profile(strict=True)
    assert isinstance(role, ClassifierRole)
    encoder = CapturedEncoder.load(bundle.file(role.graph), role.max_tokens, profile)
    assert [len(sizes) for sizes in encoder.sizes.values()] == [1]
    lengths = [9, 60, 150, 200, 17]
    together = run_classifier(bundle, encoder, lengths, profile)
    alone = [run_classifier(bundle, encoder, [length], profile)[0] for length in lengths]
    assert np.array_equal(together, alone)


def make_generator(bundle: Bundle, *, captured: bool, strict: bool = False) -> QuestionGenerator:
    role, profile = bundle.manifest.roles["qg"], make_profile(strict=strict)
    assert isinstance(role, QuestionGeneratorRole)
    text = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
    decoder = (CapturedQuestionDecoder if captured else PlainDecoder).load(bundle, role, profile)
    assert decoder is not None
    return QuestionGenerator(role, decoder, text)


@pytest.mark.parametrize(
    "decoding",
    [
        BeamSearch(max_new_tokens=20),
        BeamSearch(num_beams=3, num_return_sequences=1, max_new_tokens=24, min_new_tokens=20),
        Greedy(max_new_tokens=20),
        Sampling(num_return_sequences=2, max_new_tokens=12),
        BeamSampling(num_beams=3, num_return_sequences=2, max_new_tokens=12),
    ],
    ids=lambda decoding: f"{type(decoding).__name__}-{decoding.max_new_tokens}",
)
def test_questions_of_fixed_shapes_are_those_of_any_shape(
    bundle: Bundle, decoding: Decoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources end one after another, so that the others move up; 24 tokens are more than are captured here."""
    monkeypatch.setattr(captured_decoder, "PAST_TOKENS", 20)
    moves: list[int] = []
    move_up = CapturedSteps._move_up
    monkeypatch.setattr(CapturedSteps, "_move_up", lambda steps, rows: (moves.append(rows), move_up(steps, rows)))
    calls = [GenerateQuestions(span, TEXT[: 110 * (1 + index % 2)], decoding) for index, span in enumerate(SPANS)]
    expected = make_generator(bundle, captured=False).run(calls, 8)
    generator = make_generator(bundle, captured=True)
    for _ in range(2):
        computed = generator.run(calls, 8)
        for left, right in zip(expected, computed, strict=True):
            assert isinstance(left, tuple)
            assert isinstance(right, tuple)
            assert [question.text for question in left] == [question.text for question in right]
            assert np.allclose([question.score for question in left], [q.score for q in right], atol=1e-4)
    assert isinstance(generator._decoder, CapturedQuestionDecoder)
    assert (generator._decoder.graph.uncaptured > 0) == (decoding.max_new_tokens > 20)
    assert moves or isinstance(decoding, Sampling)


def test_strict_questions_do_not_depend_on_the_batch(bundle: Bundle) -> None:
    generator = make_generator(bundle, captured=True, strict=True)
    calls = [GenerateQuestions(span, TEXT, BeamSearch(max_new_tokens=10)) for span in SPANS[:3]]
    together = generator.run(calls, 8)
    assert together == [generator.run([call], 8)[0] for call in calls]

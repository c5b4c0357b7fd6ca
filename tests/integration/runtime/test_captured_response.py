"""Responses decoded at the fixed shapes of a GPU are those of any shape, on the CPU provider and its memory."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from groundwire.export import RoleOptions, export_role
from groundwire.export.roles.generation import contrast
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ResponseGeneratorRole
from groundwire.runtime.calls import BeamSearch, Decoding, Generate, GeneratedSequence, Greedy, Sampling
from groundwire.runtime.capture import decoder as captured_decoder
from groundwire.runtime.capture.decoder import CapturedSteps
from groundwire.runtime.capture.response import CapturedResponseDecoder
from groundwire.runtime.decoding.step_graph import load_decoder
from groundwire.runtime.decoding.whole_search import search_vocabulary
from groundwire.runtime.models import response_generator
from groundwire.runtime.models.response_generator import ResponseGenerator
from groundwire.runtime.ort.remote import open_graph
from groundwire.runtime.texts.tokenization import TextEncoder
from tests.support.host_cuda import rewrite_graphs, use_host_memory
from tests.support.zoo import PROFILE, Zoo

FAMILIES = ("bart", "t5", "gpt2")
PROMPTS = [
    (("Most guitars have six strings.", "It is loud."), ("Do you play?", "Yes, and you?")),
    (("a",), ("a",)),
    (("The Amazon river flows through Brazil, Peru and Colombia.",), ("Where is the river?",)),
    (("The Titanic sank in April 1912.",), ()),
]
CALLS = [
    Generate(knowledge, history, alpha=alpha, pmi_top_p=mass)
    for alpha, mass in ((0.25, 0.6), (0.5, 0.95), (1.0, 1.0), (0.0, 0.6))
    for knowledge, history in PROMPTS
]


@pytest.fixture(autouse=True)
def host_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    use_host_memory(monkeypatch)


def load(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> ResponseGenerator:
    """The generator with captured steps, its graphs rewritten as for CUDA."""
    role = bundle.manifest.roles["generator"]
    assert isinstance(role, ResponseGeneratorRole)
    with monkeypatch.context() as patch:
        rewrite_graphs(patch)
        captured = CapturedResponseDecoder.load(bundle, role, PROFILE)
        graphs = open_graph(bundle, role.encoder, PROFILE), load_decoder(bundle, role.decoder, PROFILE)
    assert captured is not None
    text = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
    return ResponseGenerator(role, *graphs, text, PROFILE, captured)


def check_equal(
    generator: ResponseGenerator, expected: ResponseGenerator, decoding: Decoding, calls: list[Generate]
) -> None:
    calls = [msgspec.structs.replace(call, decoding=decoding) for call in calls]
    for _ in range(2):
        for left, right in zip(generator.run(calls, 8), expected.run(calls, 8), strict=True):
            assert isinstance(left, tuple), left
            assert isinstance(right, tuple)
            check_sequences(left, right)


def check_sequences(left: tuple[GeneratedSequence, ...], right: tuple[GeneratedSequence, ...]) -> None:
    for computed, wanted in zip(left, right, strict=True):
        assert [token.id for token in computed.tokens] == [token.id for token in wanted.tokens]
        assert computed.score == pytest.approx(wanted.score, abs=1e-4)
        for token, other in zip(computed.tokens, wanted.tokens, strict=True):
            assert token.log_prob == pytest.approx(other.log_prob, abs=1e-4)
            assert (token.cpmi is None) == (other.cpmi is None)
            assert token.cpmi is None or token.cpmi == pytest.approx(other.cpmi, abs=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "decoding",
    [
        Greedy(max_new_tokens=12),
        BeamSearch(num_beams=3, num_return_sequences=2, no_repeat_ngram_size=0, max_new_tokens=9),
        BeamSearch(num_beams=2, num_return_sequences=1, no_repeat_ngram_size=1, min_new_tokens=4, max_new_tokens=15),
        Sampling(num_return_sequences=2, max_new_tokens=6),
    ],
    ids=lambda decoding: f"{type(decoding).__name__}-{decoding.max_new_tokens}",
)
def test_responses_of_fixed_shapes_are_those_of_any_shape(
    zoo: Zoo, family: str, decoding: Decoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps beyond the eighth, and those with more than eight banned tokens, are not captured here."""
    monkeypatch.setattr(captured_decoder, "PAST_TOKENS", 8)
    moves: list[int] = []
    move_up = CapturedSteps._move_up
    monkeypatch.setattr(CapturedSteps, "_move_up", lambda steps, rows: (moves.append(rows), move_up(steps, rows)))
    generator = load(zoo.bundle("generator", family), monkeypatch)
    check_equal(generator, zoo.response_generator(family), decoding, CALLS)
    assert generator._captured is not None
    assert (generator._captured.graph.uncaptured > 0) == (decoding.max_new_tokens > 8)
    assert moves or decoding.max_new_tokens <= 8, "sources that end leave their rows to the others"


def test_a_search_that_ended_too_early_is_completed(zoo: Zoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs whose first search is for two tokens: nearly every step is completed on the host."""
    monkeypatch.setattr(contrast, "NUCLEUS", 2)
    options = RoleOptions(str(zoo.checkpoint("generator", "gpt2")), precision="fp32")
    bundle = export_role("generator", options, tmp_path / "bundle")
    searched: list[int] = []

    def search(*arguments: object) -> object:
        searched.append(1)
        return search_vocabulary(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(response_generator, "search_vocabulary", search)
    generator = load(bundle, monkeypatch)
    decoding = BeamSearch(num_beams=3, num_return_sequences=2, no_repeat_ngram_size=2, max_new_tokens=9)
    check_equal(generator, zoo.response_generator("gpt2"), decoding, CALLS)
    assert len(searched) > 20
    calls = [msgspec.structs.replace(call, decoding=decoding) for call in CALLS[:6]]
    for call in calls:  # kernel by kernel, as streams are
        *_, last = generator.stream(call)
        assert last.sequence is not None
        (wanted,) = zoo.response_generator("gpt2").run([call], 8)
        assert isinstance(wanted, tuple)
        check_sequences((last.sequence,), wanted[:1])


def test_the_rule_over_the_whole_vocabulary() -> None:
    """Of three tokens with 0.5, 0.3 and 0.2, the first two have 0.75 and more together."""
    with np.errstate(divide="ignore"):
        likely = np.log(np.array([[0.2, 0.5, 0.3, 0.0], [0.1, 0.1, 0.1, 0.7]], np.float32))
    alone = np.log(np.full((2, 4), 0.25, np.float32))
    result = search_vocabulary(likely, likely - alone, 0.5, 0.75, 3)
    assert result.candidates[0, :2].tolist() == [1, 2]
    np.testing.assert_allclose(result.scores[0, :2], (likely - 0.5 * alone)[0, [1, 2]], rtol=1e-5)
    assert np.isneginf(result.scores[0, 2])
    assert np.isfinite(result.scores[1]).all(), "those as probable as the last one inside are inside"
    everything = search_vocabulary(likely, likely - alone, 0.0, 1.0, 4)
    assert np.isneginf(everything.scores[0]).sum() == 1
    np.testing.assert_allclose(everything.scores[1], np.sort(likely[1])[::-1])

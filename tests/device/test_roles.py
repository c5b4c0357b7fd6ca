"""Every role answers on the CUDA provider, with no more launches and waits than it needs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pytest

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import EmbedderRole, EncoderRole, LanguageModelRole, QuestionGeneratorRole
from groundwire.runtime.calls import (
    Answer,
    BeamSearch,
    Classify,
    Embed,
    Generate,
    GenerateQuestions,
    Read,
    ScoreText,
    role_of,
)
from groundwire.runtime.capture import scoring_shapes
from groundwire.runtime.capture.encoder import CapturedEncoder
from groundwire.runtime.capture.scorer import CapturedScorer
from groundwire.runtime.decoding.scoring import ScoringInput
from groundwire.runtime.decoding.step_graph import StepGraph, load_decoder
from groundwire.runtime.errors import DeviceError, GroundwireError, ModelError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.graphs import load_encoder
from groundwire.runtime.models.kinds import kind_of
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.texts.tokenization import Window
from tests.support import cuda_double
from tests.support.cuda_double import Counts, Tally

BEAMS = BeamSearch().num_beams
ONE_AND_A_BIT = 0x3C
"""As every byte: 1.06 in float16, 0.01 in float32. An embedder's vectors of zeros have no direction."""


def answer(runtime: LocalRuntime, role: str) -> Counts:
    calls = kind_of(runtime.bundle.manifest.roles[role]).warm_calls(role)
    content = ONE_AND_A_BIT if role == "embedder" else 0
    with cuda_double.memory_content(content), cuda_double.count() as counts:
        outcomes = runtime.run(role, calls, 8)
    assert not [outcome for outcome in outcomes if isinstance(outcome, GroundwireError)]
    return counts


ENCODERS = {"critic": 57, "detector.facts": 61, "embedder": 106, "nli": 69, "qa": 61}
"""Kernels of a pass, models of two layers. The bounds are what was counted; lower them with the work."""


@pytest.mark.parametrize("role", ENCODERS)
def test_a_batch_of_an_encoder_is_one_replay(runtime: LocalRuntime, role: str) -> None:
    counts = answer(runtime, role)
    assert (counts.replays, counts.launches, counts.syncs) == (1, 0, 1)
    assert counts.uploads.times == counts.downloads.times == 0, "copies that the host waits for"
    assert counts.total("copy", "pinned", "async").times <= 5, "ids, mask, types; two outputs"


@pytest.mark.parametrize("role", ENCODERS)
def test_what_is_captured_is_one_pass(bundle: Path, role: str) -> None:
    opened = Bundle.open(bundle)
    record = opened.manifest.roles[role]
    assert isinstance(record, EncoderRole | EmbedderRole)
    encoder = load_encoder(opened, record.graph, record.max_tokens, DeviceProfile.of("cuda", None))
    feeds = {name: np.zeros((3, 32), np.int64) for name in encoder.inputs}
    with cuda_double.count() as counts:
        encoder.run(feeds)
    assert counts.total("capture").times == 1
    assert 0 < counts.total("captured").times <= ENCODERS[role]


def test_every_shape_is_captured_before_it_is_needed(bundle: Path) -> None:
    runtime = LocalRuntime.load(bundle, device="cuda")
    for call in runtime.warm_calls():
        if role_of(call) in ("qa", "nli", "embedder", "qg", "lm"):
            with cuda_double.memory_content(ONE_AND_A_BIT if role_of(call) == "embedder" else 0):
                runtime.run(role_of(call), [call], 8)
    live = cuda_double.live_bytes()
    for count in (1, 2, 3, 5, 40, 300):
        texts = [f"when {index}? " + "Groundwire was warmed up in 2026. " * (index % 9 + 1) for index in range(count)]
        for role, calls in {
            "qa": [Answer(text[:8], (text,)) for text in texts],
            "nli": [Classify("nli", (text,), text[:40]) for text in texts],
            "embedder": [Embed(text) for text in texts],
            "qg": [GenerateQuestions("2026", text, BeamSearch(max_new_tokens=9)) for text in texts[:40]],
            "lm": [ScoreText((text[:100],), text[:50]) for text in texts],
        }.items():
            content = cuda_double.memory_content(ONE_AND_A_BIT if role == "embedder" else 0)
            with content, cuda_double.count() as counts:
                outcomes = runtime.run(role, calls, 8)
            assert not [outcome for outcome in outcomes if isinstance(outcome, DeviceError | ModelError)]
            assert (counts.launches, counts.total("capture").times) == (0, 0), (role, count)
            assert counts.uploads.times == counts.downloads.times == 0
    assert cuda_double.live_bytes() <= live


def test_a_second_thread_captures_nothing(bundle: Path) -> None:
    """ONNX Runtime would capture for each thread again."""
    opened = Bundle.open(bundle)
    record = opened.manifest.roles["qa"]
    assert isinstance(record, EncoderRole)
    encoder = CapturedEncoder.load(opened.file(record.graph), record.max_tokens, DeviceProfile.of("cuda", None))
    feeds = {name: np.zeros((3, 32), np.int64) for name in encoder.inputs}
    encoder.run(feeds)
    assert encoder.graph.uncaptured == 0
    with cuda_double.count() as counts, ThreadPoolExecutor(1) as thread:
        thread.submit(encoder.run, feeds).result()
    assert (encoder.graph.uncaptured, counts.total("capture").times, counts.replays) == (1, 0, 0)
    assert counts.launches > 0
    assert counts.syncs == 1


def test_roles_run_at_the_same_time_and_capture_one_after_another(bundle: Path) -> None:
    """What a thread allocates on a GPU while another captures would end the capture."""
    runtime = LocalRuntime.load(bundle, device="cuda")
    pools = {role: runtime.worker_pool(role) for role in ("qa", "nli", "qg", "spans")}
    assert len(set(pools.values())) == 4
    assert set(runtime.worker_pools) >= {*pools.values()}
    text = "Groundwire was warmed up in 2026. "
    calls = {
        "qa": lambda size: [Answer("when?", (text * size,))],
        "nli": lambda size: [Classify("nli", (text * size,), text)],
        "qg": lambda size: [GenerateQuestions("2026", text * min(3, size), BeamSearch(max_new_tokens=5))],
    }

    def run(role: str) -> None:
        for size in range(1, 9):
            runtime.run(role, calls[role](size), 8)

    threads = {role: ThreadPoolExecutor(1) for role in calls}
    for future in [threads[role].submit(run, role) for role in calls]:
        future.result()
    with cuda_double.count() as counts:
        for future in [threads[role].submit(run, role) for role in calls]:
            future.result()
    assert (counts.launches, counts.total("capture").times) == (0, 0)
    assert counts.replays >= 16
    for thread in threads.values():
        thread.shutdown()


def test_a_shape_without_memory_is_captured_when_there_is_some(bundle: Path) -> None:
    opened = Bundle.open(bundle)
    record = opened.manifest.roles["qa"]
    assert isinstance(record, EncoderRole)
    encoder = CapturedEncoder.load(opened.file(record.graph), record.max_tokens, DeviceProfile.of("cuda", None))
    rows = encoder.plan.profiles[0].max_rows
    feeds = {name: np.zeros((rows, encoder.plan.widths[0]), np.int64) for name in encoder.inputs}
    with cuda_double.limit_memory(0), pytest.raises(ModelError, match=r"(?i)memory"):
        encoder.run(feeds)
    encoder.run(feeds)
    with cuda_double.count() as counts:
        encoder.run(feeds)
    assert counts.replays > 0
    assert counts.launches == counts.total("capture").times == 0


def test_a_retriever_replays_its_graphs(runtime: LocalRuntime) -> None:
    """Encoder and query; the memory has the entities of the warm-up."""
    counts = answer(runtime, "retriever")
    assert (counts.replays, counts.launches, counts.syncs) == (2, 0, 2)
    assert counts.uploads.times == counts.downloads.times == 0, "copies that the host waits for"


def test_a_step_of_questions_is_one_replay(runtime: LocalRuntime) -> None:
    counts = answer(runtime, "qg")
    steps = counts.syncs
    assert 1 <= steps <= 7
    assert (counts.replays, counts.launches) == (steps + 1, 0), "the encoder's, and one for each step"
    assert counts.uploads.times == counts.downloads.times == 0, "copies that the host waits for"
    assert counts.total("copy", "HtoD", "pinned").times == 2 + steps
    assert counts.total("copy", "DtoH", "pinned").times == steps


def test_a_step_of_a_response_is_one_replay(runtime: LocalRuntime) -> None:
    counts = answer(runtime, "generator")
    steps = counts.syncs
    assert 1 <= steps <= 7
    assert (counts.replays, counts.launches) == (steps + 1, 0), "the encoder's, and one for each step"
    assert counts.uploads.times == counts.downloads.times == 0, "copies that the host waits for"
    assert counts.total("copy", "HtoD", "pinned").times == 2 + steps
    assert counts.total("copy", "DtoH", "pinned").times == steps, "candidates, and for which the search goes on"


def test_steps_of_responses_are_captured_before_they_are_needed(bundle: Path) -> None:
    runtime = LocalRuntime.load(bundle, device="cuda")
    (call,) = [call for call in runtime.warm_calls() if role_of(call) == "generator"]
    runtime.run("generator", [call], 8)
    assert isinstance(call, Generate)
    live = cuda_double.live_bytes()
    for count in (1, 2, 5, 30):
        calls = [msgspec.structs.replace(call, history=(f"{'why ' * (index % 5)}?",)) for index in range(count)]
        with cuda_double.count() as counts:
            outcomes = runtime.run("generator", calls, 8)
        assert not [outcome for outcome in outcomes if isinstance(outcome, GroundwireError)]
        assert (counts.launches, counts.total("capture").times) == (0, 0), count
        assert counts.uploads.times == counts.downloads.times == 0
    assert cuda_double.live_bytes() <= live


def test_a_search_that_goes_on_reads_its_source_alone(runtime: LocalRuntime) -> None:
    """Where every byte reads as 1, every search goes on; the host then reads two rows of the vocabulary for each."""
    calls = kind_of(runtime.bundle.manifest.roles["generator"]).warm_calls("generator")
    with cuda_double.memory_content(1):
        runtime.run("generator", calls, 8)
        with cuda_double.count() as counts:
            (outcome,) = runtime.run("generator", calls, 8)
    assert isinstance(outcome, tuple)
    assert counts.launches == 0
    assert counts.uploads.times == counts.downloads.times == 0
    assert counts.syncs == 3 * (counts.replays - 1)


@pytest.fixture
def step(bundle: Path) -> StepGraph:
    """The decoder step of the question generator over four sources, after its first step."""
    opened = Bundle.open(bundle)
    role = opened.manifest.roles["qg"]
    assert isinstance(role, QuestionGeneratorRole)
    session = load_decoder(opened, role.decoder, DeviceProfile.of("cuda", None))
    shape = (4, role.heads, 8, role.head_dim)
    states = session.value(np.zeros(shape, np.float16))
    cross = {f"cross.{part}.{i}": states for part in ("key", "value") for i in range(role.layers)}
    step = StepGraph(
        session, cross, np.ones((4, 8), np.int64), layers=role.layers, heads=role.heads, head_dim=role.head_dim
    )
    advance(step, 4, 1)
    advance(step, 4, BEAMS)
    return step


def advance(step: StepGraph, sources: int, beams: int) -> None:
    tokens = np.zeros((sources, beams), np.int64)
    step.step(tokens, tokens, 8, ("scores", "candidates"))


def test_a_decode_step(step: StepGraph) -> None:
    """Two layers. The bound of launches is what was counted; lower it with the work."""
    with cuda_double.count() as counts:
        advance(step, 4, BEAMS)
    assert 0 < counts.launches <= 91
    assert counts.uploads == Tally(2, 2 * 4 * BEAMS * 8)  # tokens and parents
    assert counts.downloads == Tally(2, 4 * BEAMS * 8 * (4 + 8))  # scores and candidates
    assert counts.syncs <= 2  # the graph's inputs, and its outputs


def test_keys_and_values_of_sources_that_go_on_stay_on_the_device(step: StepGraph) -> None:
    with cuda_double.count() as counts:
        step.keep_sources(np.array([0, 2]))
    assert counts.uploads == Tally(1, 2 * 8)  # which rows
    assert counts.downloads == Tally()
    assert counts.launches == 9  # four keys and values of each kind, and the mask
    advance(step, 2, BEAMS)


def test_nothing_is_copied_when_all_sources_go_on(step: StepGraph) -> None:
    with cuda_double.count() as counts:
        step.keep_sources(np.arange(4))
    assert not counts.events


LANGUAGE_MODEL = 84
"""Kernels of a pass, a model of two layers. The bound is what was counted; lower it with the work."""


def test_a_batch_of_a_language_model_waits_once(runtime: LocalRuntime) -> None:
    """Texts of two widths after prefixes of two widths: one replay for each, however many they are."""
    texts = ("It was warmed up.", "It was warmed up in 2026, " * 3)
    calls = [ScoreText((f"Groundwire {i} was made.",), text) for i, text in enumerate(texts * 3)]
    calls += [ScoreText((), texts[0]), ScoreText((texts[1],), texts[0])]
    runtime.run("lm", calls, 8)
    with cuda_double.count() as counts:
        outcomes = runtime.run("lm", calls, 8)
    assert not [outcome for outcome in outcomes if isinstance(outcome, GroundwireError)]
    assert (counts.launches, counts.syncs, counts.total("capture").times) == (0, 1, 0)
    assert 1 <= counts.replays <= 4
    assert counts.uploads.times == counts.downloads.times == 0, "copies that the host waits for"
    assert counts.total("copy", "HtoD", "pinned").times == 4 * counts.replays, "tokens, mask, positions, targets"
    assert counts.total("copy", "DtoH", "pinned").times == counts.replays, "log-probabilities"


@pytest.fixture(scope="module")
def scorer(bundle: Path) -> CapturedScorer:
    """The language model, whose window of 96 tokens is as many shapes as a long one has."""
    opened = Bundle.open(bundle)
    role = opened.manifest.roles["lm"]
    assert isinstance(role, LanguageModelRole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring_shapes, "SHARED_WIDTH", 32)
        scorer = CapturedScorer.load(opened, role, 600, DeviceProfile.of("cuda", None))
    assert scorer is not None
    return scorer


def make_inputs(count: int, before: int, targets: int) -> dict[int, ScoringInput]:
    window = Window([], [], [], [])
    scored = ScoringInput((5,) * before, [6] * targets, [7] * targets, window, Read(1, 1, 1))
    return dict.fromkeys(range(count), scored)


def test_what_is_captured_of_a_language_model_is_one_pass(bundle: Path) -> None:
    opened = Bundle.open(bundle)
    role = opened.manifest.roles["lm"]
    assert isinstance(role, LanguageModelRole)
    scorer = CapturedScorer.load(opened, role, 600, DeviceProfile.of("cuda", None))
    assert scorer is not None
    with cuda_double.count() as counts:
        scorer.score(make_inputs(3, 10, 5))
    assert counts.total("capture").times == 1
    assert 0 < counts.total("captured").times <= LANGUAGE_MODEL


def test_keys_and_values_of_a_shared_prefix_never_move(scorer: CapturedScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run reads the prefix, the others read what it wrote; nothing but ids and log-probabilities is copied."""
    monkeypatch.setattr(scoring_shapes, "SHARED_WIDTH", 32)
    inputs = make_inputs(130, 20, 10)
    (shared,) = scorer.shapes.share_prefixes(inputs)
    runs = list(scorer.shapes.cut_texts(shared.width, 32, shared.texts[32]))
    scorer.score(inputs)
    with cuda_double.count() as counts:
        scorer.score(inputs)
    assert (counts.replays, counts.launches, counts.syncs) == (1 + len(runs), 0, 1)
    assert counts.total("copy", "DtoD").times == 0
    assert counts.total("copy", "DtoH").bytes == sum(texts * 32 * 4 for texts, _ in runs)
    assert counts.total("copy", "HtoD").times == 4 * counts.replays


def test_memory_of_a_language_model_does_not_grow(scorer: CapturedScorer) -> None:
    scorer.prepare()
    live = cuda_double.live_bytes()
    for count in (1, 2, 3, 7, 100, 300):
        for before, targets in ((0, 5), (20, 10), (40, 50), (90, 6)):
            with cuda_double.count() as counts:
                scorer.score(make_inputs(count, before, targets))
            assert (counts.launches, counts.total("capture").times) == (0, 0), (count, before, targets)
    assert cuda_double.live_bytes() == live
    assert scorer.graph.uncaptured == 0


def test_a_lost_batch_of_a_language_model_leaves_nothing(scorer: CapturedScorer) -> None:
    inputs = make_inputs(2, 10, 5)
    scorer.score(inputs)
    with cuda_double.lost_device(), pytest.raises(DeviceError):
        scorer.score(inputs)
    with cuda_double.count() as counts:
        scorer.score(inputs)
    assert (counts.replays, counts.syncs) == (1, 2), "what the lost batch left is waited for"

"""Every role answers on the CUDA provider, with no more launches and waits than it needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from groundwire.runtime.bundle import Bundle
from groundwire.runtime.calls import BeamSearch, ScoreText
from groundwire.runtime.decoding.step_graph import StepGraph, load_decoder
from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.manifest import QuestionGeneratorRole
from groundwire.runtime.models.kinds import kind_of
from groundwire.runtime.ort.session import DeviceProfile
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


@pytest.mark.parametrize(
    ("role", "launches", "uploads", "downloads"),
    [
        ("critic", 57, 3, 1),
        ("detector.facts", 59, 3, 1),
        ("embedder", 106, 2, 1),
        ("nli", 67, 2, 1),
        ("qa", 61, 3, 2),
        ("lm", 168, 9, 2),
        ("retriever", 126, 9, 2),
    ],
)
def test_a_role_answers(runtime: LocalRuntime, role: str, launches: int, uploads: int, downloads: int) -> None:
    """Models of two layers. The bounds are what was counted; lower them with the work."""
    counts = answer(runtime, role)
    assert 0 < counts.launches <= launches
    assert counts.uploads.times <= uploads
    assert counts.downloads.times <= downloads


@pytest.mark.parametrize("role", ["qg", "generator"])
def test_a_generator_answers(runtime: LocalRuntime, role: str) -> None:
    counts = answer(runtime, role)
    assert counts.launches > 0


@pytest.fixture
def step(bundle: Path) -> StepGraph:
    """The decoder step of the question generator over four sources, after its first step."""
    opened = Bundle.open(bundle)
    role = opened.manifest.roles["qg"]
    assert isinstance(role, QuestionGeneratorRole)
    session = load_decoder(opened.file(role.decoder), DeviceProfile.of("cuda", None))
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


@pytest.mark.parametrize(("role", "bytes_down"), [("qg", 1500), ("generator", 2500)])
def test_an_encoders_states_stay_on_the_device(runtime: LocalRuntime, role: str, bytes_down: int) -> None:
    """Down come scores and candidates alone; the states of the encoder are larger."""
    counts = answer(runtime, role)
    assert counts.downloads.bytes <= bytes_down


def test_a_language_models_states_stay_on_the_device(runtime: LocalRuntime) -> None:
    """Texts of several widths read the states of different prefixes."""
    texts = ("It was warmed up.", "It was warmed up in 2026, " * 4)
    calls = [ScoreText((f"Groundwire {i} was made.",), text) for i, text in enumerate(texts * 3)]
    runtime.run("lm", calls, 8)
    with cuda_double.count() as counts:
        outcomes = runtime.run("lm", calls, 8)
    assert not [outcome for outcome in outcomes if isinstance(outcome, GroundwireError)]
    scored = sum(len(outcome.log_probs) for outcome in outcomes)  # type: ignore[union-attr]
    assert counts.downloads.bytes <= (scored + 16) * 4 + 4

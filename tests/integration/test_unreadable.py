"""The embedded bundle says ``unknown`` of what it cannot read, and not how consistent the rest is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from groundwire.engine import Engine
from groundwire.runtime.bundles.bundle import embedded

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout has no embedded bundle")

CHECKSUM = "The archive is on the server, as everybody can see on the page of the project, and its published checksum"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load("compact", device="cpu", threads=1) as loaded:
        yield loaded


@pytest.mark.parametrize(
    ("response", "knowledge"),
    [
        ("도쿄는 독일의 수도입니다.", "파리는 프랑스의 수도입니다."),
        ("طوكيو هي عاصمة ألمانيا.", "باريس هي عاصمة فرنسا."),
        ("टोक्यो जर्मनी की राजधानी है।", "पेरिस फ्रांस की राजधानी है।"),
        ("Токио — столица Германии.", "Париж — столица Франции."),
        ("東京はドイツの首都です。", "パリはフランスの首都です。"),
        ("Tokyo is the capital of Germany.", "파리는 프랑스의 수도입니다."),
        ("도쿄는 독일의 수도입니다.", "Paris is the capital of France."),
        (f"The checksum is {'a1' * 64}.", f"The checksum is {'b2' * 64}."),
        (f"{CHECKSUM * 4} is {'a1' * 64}.", f"{CHECKSUM * 4} is {'b2' * 64}."),
    ],
    ids=["Korean", "Arabic", "Hindi", "Russian", "Japanese", "knowledge", "response", "checksums", "long checksums"],
)
def test_unreadable_text_has_no_verdict(engine: Engine, response: str, knowledge: str) -> None:
    score = engine.score(response, knowledge, metrics="all")
    assert (score.verdict.label, score.verdict.probability) == ("unknown", None)
    for name in ("nli", "detector.consistency"):
        assert (score.metrics[name].status, score.metrics[name].value) == ("truncated", None)
        assert "unknown to the model's tokenizer" in score.metrics[name].message


@pytest.mark.parametrize("response", ["That is great, thank you!", "Well, so it is!", "Paris."])
def test_what_states_nothing_beside_unreadable_knowledge_is_unknown_too(engine: Engine, response: str) -> None:
    score = engine.score(response, "파리는 프랑스의 수도입니다.")
    assert (score.verdict.label, score.verdict.probability) == ("unknown", None)
    assert "of the knowledge are unknown to the model's tokenizer" in score.verdict.message
    assert score.warnings[0].startswith("The knowledge does not look like English.")
    english = engine.score("That is great, thank you!", "Paris is the capital of France.")
    assert english.verdict.label == "unverifiable"
    assert english.verdict.message
    assert english.warnings == ()


def test_foreign_names_in_english_text_lower_the_coverage_alone(engine: Engine) -> None:
    knowledge = "Tokyo, officially the Tokyo Metropolis (東京都, Tōkyō-to), is the capital of Japan."
    score = engine.score("Tokyo (東京) is the capital of Japan.", knowledge, metrics="all")
    assert score.verdict.label == "consistent"
    coverages = {name: result.coverage for name, result in score.metrics.items() if result.coverage is not None}
    expected = 1 - 3 / len(knowledge)
    for name in ("nli", "detector.consistency", "q2", "bertscore"):
        assert coverages[name] == pytest.approx(expected), name
    assert expected < coverages["pmi"] < 1.0  # the prompt's own characters count too

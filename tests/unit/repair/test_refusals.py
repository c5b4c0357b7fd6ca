"""Why a response is refused, where a reader finds the sentence of the knowledge that contradicts it."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from groundwire.repair import Corrector
from groundwire.repair.correction.keeping import Kept
from groundwire.runtime.bundles.manifest import ReaderHead
from groundwire.runtime.calls import AnswerRead, Read, ReadAnswer
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import RoleInfo
from tests.support.correcting import CALIBRATION, METRICS, ROLES

HEADS = {
    "consistency": ReaderHead(("inconsistent", "consistent"), ("consistent",), "answer"),
    "nli": ReaderHead(("entailment", "neutral", "contradiction"), ("entailment",), "answer"),
    "verifiability": ReaderHead(("verifiable", "other"), ("verifiable",), "answer", ("other",)),
    "tokens": ReaderHead(("fine", "number"), ("fine",), "token"),
    "sentence": ReaderHead(("supported", "unsupported", "nothing"), ("supported",), "sentence", ("nothing",)),
}
KNOWLEDGE = "Towels are clean. A towel costs £3. Towels are denied to no guest. Guests are denied a dog."


def read(call: ReadAnswer) -> AnswerRead:
    """Contradicted by a denial, to 0.9 by that of a dog."""
    premise = " ".join(call.premises)
    share = 0.0 if "denied" not in premise else 0.9 if "dog" in premise else 0.7
    heads = {"consistency": (0.9, 0.1), "nli": (0.0, 1 - share, share), "verifiability": (1.0, 0.0)}
    return AnswerRead(heads, tuple((0.1, 0.9, 0.0) for _ in call.sentences), (), Read(1, 10, 10))


@pytest.mark.parametrize(
    ("response", "quoted"),
    [
        ("Dogs swim here.", "Guests are denied a dog."),
        ("Every towel swims.", ""),  # 0.7 is not enough,
        ("Cats swim here.", ""),  # and a sentence without a common word is not read
    ],
)
def test_a_refusal_quotes_the_sentence_that_contradicts(response: str, quoted: str) -> None:
    runtime = FakeRuntime(
        {**ROLES, "reader": read}, calibration=CALIBRATION, role_info={"reader": RoleInfo(heads=HEADS)}
    )
    with Engine(runtime) as engine:
        correction = Corrector(engine).correct(response, KNOWLEDGE, metrics=(*METRICS, "reader"))
    assert correction.status == "refused"
    expected = f"The knowledge says {quoted!r}, but no words of that" if quoted else "The knowledge has nothing of"
    assert correction.message.startswith(expected)


@pytest.mark.parametrize(
    ("response", "knowledge", "value", "reason"),
    [
        ("Two packs hold 24 batteries.", "A pack holds 12 batteries.", "24", "Two × 12 = 24"),
        ("The desk is $7 cheaper.", "The desk is $12.", "$7", "'cheaper' says that '$7' was worked out"),
        ("If 15 guests come, call us.", "We have 30 chairs.", "15", "after 'If' it may be the reader's own"),
        ("Come on Friday.", "Come on Monday.", "Friday", "a day of the week is not changed"),
    ],
)
def test_what_is_left_as_it_is_says_why(response: str, knowledge: str, value: str, reason: str) -> None:
    start = response.index(value)
    assert reason in Kept(response, [knowledge]).find_reason(start, start + len(value))

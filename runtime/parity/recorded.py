"""What the models of a bundle answered to fixed calls where it was recorded, kept in the bundle: question generators,
response generators, language models, embedders, retrievers, and token classifiers that have no logits of their
checkpoints. Other roles keep those (``reference.py``).

The answers come from the role's own graphs on a CPU, which the export has compared with the checkpoint, with int8
weights as float32, as a GPU has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..bundles.bundle import RECORDED, Bundle
from ..bundles.manifest import Parity
from ..calls import (
    ClassifiedTokens,
    ClassifyTokens,
    Embed,
    Embedded,
    Generate,
    GeneratedQuestion,
    GeneratedSequence,
    GenerateQuestions,
    Retrieve,
    ScoreText,
    TextScored,
)
from ..errors import BundleError, GroundwireError
from ..protocol import Outcome

RecordedCall: TypeAlias = GenerateQuestions | Generate | ScoreText | Embed | Retrieve | ClassifyTokens
KINDS: dict[str, type[RecordedCall]] = {
    kind.__name__: kind for kind in (GenerateQuestions, Generate, ScoreText, Embed, Retrieve, ClassifyTokens)
}
DIMENSIONS = 16
"""Numbers kept of a token's vector, evenly spaced."""


class RoleAnswers(msgspec.Struct, frozen=True):
    """The calls of a role and what it answered."""

    kind: str
    """Type of the calls, of ``KINDS``."""
    calls: tuple[msgspec.Raw, ...]
    decisions: tuple[str, ...]
    """For each call the best sequences, the best candidates or the labels; "" where nothing is decided."""
    sizes: tuple[int, ...]
    """How many numbers each call has."""
    numbers: bytes
    """Scores, log-probabilities, probabilities or vectors of all calls, float32."""
    sequences: tuple[tuple[str, ...], ...] = ()
    """For each call the sequences that have the scores; empty where numbers are compared in their order."""

    @classmethod
    def make(cls, calls: Sequence[RecordedCall], outcomes: Sequence[Outcome]) -> RoleAnswers:
        """Keep the answers to calls of one type; raises the error of a call that has one."""
        for outcome in outcomes:
            if isinstance(outcome, GroundwireError):
                raise outcome
        parts = [read_numbers(outcome) for outcome in outcomes]
        return cls(
            type(calls[0]).__name__,
            tuple(msgspec.Raw(msgspec.msgpack.encode(call)) for call in calls),
            tuple(map(read_decision, outcomes)),
            tuple(map(len, parts)),
            np.concatenate(parts).astype(np.float32).tobytes(),
            tuple(map(read_sequences, outcomes)),
        )

    def decode_calls(self) -> list[RecordedCall]:
        """The calls; raises as msgspec does."""
        return [msgspec.msgpack.decode(call, type=KINDS[self.kind]) for call in self.calls]

    def compare(self, outcomes: Sequence[Outcome]) -> Parity:
        """How other outcomes of the same calls differ; an error, or another number of numbers, differs infinitely."""
        ends = np.cumsum(self.sizes)[:-1]
        expected = np.split(np.frombuffer(self.numbers, np.float32), ends)
        return compare_answers(self.decisions, expected, outcomes, self.sequences)


def compare_answers(
    decisions: Sequence[str],
    expected: Sequence[NDArray[np.float32]],
    outcomes: Sequence[Outcome],
    sequences: Sequence[tuple[str, ...]] = (),
) -> Parity:
    """How outcomes differ from decisions and numbers of the same calls.

    With ``sequences``, the scores of one sequence are compared: a search returns other sequences after the
    best where two are nearly as probable.
    """
    failed = [isinstance(outcome, GroundwireError) for outcome in outcomes]
    same = [
        not error and read_decision(outcome) == decision
        for decision, outcome, error in zip(decisions, outcomes, failed, strict=True)
    ]
    errors = [
        np.inf if error else _find_difference(numbers, texts, outcome)
        for numbers, texts, outcome, error in zip(
            expected, sequences or [()] * len(outcomes), outcomes, failed, strict=True
        )
    ]
    return Parity(
        texts=len(outcomes),
        max_logit_error=float(np.max(errors)),  # NumPy's max, unlike Python's, keeps NaN
        logit_std=float(np.concatenate(expected).std()),
        decision_agreement=sum(same) / len(same),
    )


def read_decision(outcome: Any) -> str:
    """What an answer decides, as text."""
    if isinstance(outcome, ClassifiedTokens):
        best = [int(np.argmax(token.probabilities)) for token in outcome.tokens]
        return " ".join(outcome.labels[index] for index in best)
    if isinstance(outcome, TextScored | Embedded) or not outcome:
        return ""
    if isinstance(outcome[0], tuple):  # candidates of each mention, best first
        return "\n".join(f"{best.anchor}\t{best.entity}" for best, *_ in outcome)
    return str(outcome[0].text)


def read_sequences(outcome: Any) -> tuple[str, ...]:
    """The sequences of a search, best first; none of another answer."""
    if isinstance(outcome, tuple) and outcome and isinstance(outcome[0], GeneratedQuestion | GeneratedSequence):
        return tuple(part.text for part in outcome)
    return ()


def read_numbers(outcome: Any) -> NDArray[np.float32]:
    """The numbers of an answer, in order."""
    if isinstance(outcome, TextScored):
        return np.array(outcome.log_probs, np.float32)
    if isinstance(outcome, ClassifiedTokens):
        return np.array([token.probabilities for token in outcome.tokens], np.float32).ravel()
    if isinstance(outcome, Embedded):
        width = outcome.vectors.shape[1]
        chosen = np.linspace(0, width - 1, min(width, DIMENSIONS)).round().astype(int)
        return outcome.vectors[:, chosen].ravel()
    parts = [item for part in outcome for item in (part if isinstance(part, tuple) else (part,))]
    return np.array([part.score for part in parts], np.float32)


def write_answers(answers: dict[str, RoleAnswers]) -> bytes:
    """The content of the file, from the answers by role."""
    return msgspec.msgpack.encode(answers)


def read_answers(bundle: Bundle) -> dict[str, RoleAnswers]:
    """The answers by role, empty where none were recorded; BundleError for a damaged file."""
    content = bundle.read_recorded()
    if content is None:
        return {}
    try:
        answers = msgspec.msgpack.decode(content, type=dict[str, RoleAnswers])
        for role, of_role in answers.items():
            of_role.decode_calls()
            if not of_role.calls or len(of_role.numbers) != 4 * sum(of_role.sizes):
                raise ValueError(f"the numbers of {role} are not those of its calls")
    except (msgspec.MsgspecError, KeyError, ValueError) as error:
        raise BundleError(
            f"{bundle.directory / RECORDED} is damaged: {error}. Record the bundle again: groundwire bundle record."
        ) from error
    return answers


def _find_difference(expected: NDArray[np.float32], sequences: tuple[str, ...], outcome: Outcome) -> float:
    """The largest difference of a number; of the sequences that both have, where there are any."""
    numbers = read_numbers(outcome)
    if sequences:
        row_of = {key: index for index, key in enumerate(_number_equal(read_sequences(outcome)))}
        both = [(index, row_of[key]) for index, key in enumerate(_number_equal(sequences)) if key in row_of]
        expected, numbers = expected[[index for index, _ in both]], numbers[[index for _, index in both]]
    if len(expected) != len(numbers):
        return float("inf")
    return float(np.abs(expected - numbers).max(initial=0.0))


def _number_equal(sequences: Sequence[str]) -> list[tuple[str, int]]:
    """Each sequence with how many equal ones come before it: other tokens may make the same text."""
    return [(text, sequences[:index].count(text)) for index, text in enumerate(sequences)]

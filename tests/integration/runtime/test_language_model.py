"""Log-probabilities of texts after prefixes, against transformers, and alone against larger batches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from groundwire.runtime.bundles.manifest import LanguageModelRole
from groundwire.runtime.calls import MeasureTexts, ScoreText, TextLengths, TextScored
from groundwire.runtime.errors import GroundwireError, InvalidRequest, ModelError, TooLong
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.language_model import LanguageModel
from groundwire.runtime.models.session_scorer import MAX_PADDED_TOKENS, SessionScorer
from groundwire.runtime.ort.session import DeviceProfile, Session
from groundwire.runtime.texts.tokenization import TextEncoder
from tests.support import models
from tests.support.zoo import PROFILE, Zoo

FAMILIES = ("gpt2", "bloom", "opt")
"""Two families that keep keys and values, and one that reads prefix and text together."""
DOCUMENT = "Document: The Amazon river flows through Brazil, Peru and Colombia.\n\n"
HISTORY = "Have you been there?.\n"
RESPONSE = "Agent: Yes, I was in Peru."
CALLS = [
    ScoreText((DOCUMENT, HISTORY), RESPONSE),
    ScoreText((HISTORY,), RESPONSE),
    ScoreText((), RESPONSE),
    ScoreText(("A",), RESPONSE),
    ScoreText((DOCUMENT, HISTORY), "Agent: No."),
    ScoreText((DOCUMENT,), "a"),
    ScoreText((DOCUMENT, "", HISTORY), "Agent: Red hair is common in Scotland and Ireland, and I love pizza."),
    ScoreText(("Bob Ross",), " hosted the show"),
    ScoreText((), "no"),
]


def run(model: LanguageModel, calls: Sequence[ScoreText]) -> list[TextScored]:
    results = model.run(calls, 8)
    assert all(isinstance(result, TextScored) for result in results), results
    return results  # type: ignore[return-value]


def plain_ids(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"] if text else []


def expected(model: Any, tokenizer: PreTrainedTokenizerFast, call: ScoreText) -> list[float]:
    prefix = [index for part in call.prefix for index in plain_ids(tokenizer, part)]
    text = plain_ids(tokenizer, call.text)
    with torch.inference_mode():
        logits = model(torch.tensor([prefix + text])).logits[0].log_softmax(-1)
    first = 0 if prefix else 1
    return [float(logits[len(prefix) + index - 1, text[index]]) for index in range(first, len(text))]


@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_those_of_transformers(zoo: Zoo, family: str) -> None:
    for call, scored in zip(CALLS, run(zoo.language_model(family), CALLS), strict=True):
        want = expected(*zoo.torch("lm", family), call)
        np.testing.assert_allclose(scored.log_probs, want, atol=1e-4)
        assert scored.first == (0 if call.prefix else 1)
        assert len(scored.offsets) == scored.first + len(scored.log_probs)


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_are_measured_in_the_tokens_of_the_model(zoo: Zoo, family: str) -> None:
    texts = (DOCUMENT, "", RESPONSE)
    _, tokenizer = zoo.torch("lm", family)
    limit = zoo.bundle("lm", family).manifest.roles["lm"].max_tokens
    scored, lengths = zoo.language_model(family).run([CALLS[0], MeasureTexts(texts)], 8)
    assert isinstance(scored, TextScored)
    assert lengths == TextLengths(tuple(len(plain_ids(tokenizer, text)) for text in texts), limit)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("family", FAMILIES)
def test_values_do_not_depend_on_the_batch(zoo: Zoo, family: str, precision: str, threads: int) -> None:
    """Alone; with all others; after a prefix that two dozen other texts share; in another order."""
    bundle = zoo.bundle("lm", family, precision)
    role = bundle.manifest.roles["lm"]
    assert isinstance(role, LanguageModelRole)
    model = LanguageModel.load(bundle, role, DeviceProfile.of("cpu", threads))
    alone = [run(model, [call])[0] for call in CALLS]
    assert run(model, CALLS) == alone
    lines = list(models.sentences())[:24]
    others = [ScoreText((DOCUMENT, HISTORY), f"Agent: {line[:20]}.") for line in lines]
    others += [ScoreText((f"Document: {line}\n\n", HISTORY), RESPONSE) for line in lines]
    mixed = [call for pair in itertools.zip_longest(others, CALLS) for call in pair if call is not None]
    together = dict(zip(mixed, run(model, mixed), strict=True))
    assert [together[call] for call in CALLS] == alone
    backwards = dict(zip(mixed[::-1], run(model, mixed[::-1]), strict=True))
    assert backwards == together


def test_half_precision_states(zoo: Zoo) -> None:
    exact, half = (run(zoo.language_model("bloom", precision), CALLS) for precision in ("fp32", "fp16"))
    for expected, rounded in zip(exact, half, strict=True):
        np.testing.assert_allclose(expected.log_probs, rounded.log_probs, atol=0.1)


class RecordingSession(Session):
    """A session that records the shapes of its runs."""

    shapes: list[tuple[int, ...]]

    @classmethod
    def of(cls, bundle_file: Path) -> RecordingSession:
        session = cls.load(bundle_file, PROFILE)
        assert isinstance(session, RecordingSession)
        session.shapes = []
        return session

    def run_values(self, feeds: Any, host: Sequence[str] = ()) -> Any:
        name = "tokens" if "tokens" in feeds else "input_ids"
        self.shapes.append(tuple(feeds[name].shape()))
        return super().run_values(feeds, host)


def load_recording(zoo: Zoo, family: str) -> tuple[LanguageModel, list[tuple[int, ...]]]:
    bundle = zoo.bundle("lm", family)
    role = bundle.manifest.roles["lm"]
    assert isinstance(role, LanguageModelRole)
    session = RecordingSession.of(bundle.file(role.graph))
    encoder = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
    return LanguageModel(role, SessionScorer(role, session, PROFILE), encoder), session.shapes


def test_a_prefix_is_read_once_for_all_its_texts(zoo: Zoo) -> None:
    model, shapes = load_recording(zoo, "gpt2")
    words = [chr(ord("a") + number) for number in range(16)]
    calls = [ScoreText((prefix,), word) for word in words for prefix in (DOCUMENT, HISTORY)]
    run(model, calls)
    document, history = (len(model._encoder.encode_plain(text).ids) - 1 for text in (DOCUMENT, HISTORY))
    # Passes over the two prefixes, narrow first, each followed by its sixteen texts in one batch.
    assert shapes == [(1, 1, -(-history // 8) * 8), (1, 16, 8), (1, 1, -(-document // 8) * 8), (1, 16, 8)]


def test_prefixes_of_one_width_are_read_together(zoo: Zoo) -> None:
    model, shapes = load_recording(zoo, "gpt2")
    run(model, [ScoreText((f"{letter} b",), "a") for letter in "cdefg"])
    assert shapes == [(5, 1, 8), (5, 1, 8)]


def test_no_prefix_is_read_for_a_text_without_a_prefix(zoo: Zoo) -> None:
    model, shapes = load_recording(zoo, "gpt2")
    run(model, [ScoreText((), "a b"), ScoreText(("a",), "b c")])
    assert shapes == [(1, 2, 8)]


@pytest.mark.parametrize("family", FAMILIES)
def test_runs_keep_to_their_tokens(zoo: Zoo, family: str) -> None:
    model, shapes = load_recording(zoo, family)
    lines = list(models.sentences())
    run(model, [ScoreText((line[:30],), other[:25]) for line, other in itertools.product(lines[:8], lines[:12])])
    assert max(map(np.prod, shapes)) <= MAX_PADDED_TOKENS["cpu"]
    assert max(shape[0] for shape in shapes) > 1


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("text", [RESPONSE, " spaces  around ", "Amélie’s naïve 🙂 café — “yes”…", "a town in 日本"])
def test_offsets_are_characters_of_the_text(zoo: Zoo, family: str, text: str) -> None:
    (scored,) = run(zoo.language_model(family), [ScoreText(("Document: a b.",), text)])
    assert scored.offsets[0][0] == 0
    assert scored.offsets[-1][1] == len(text)
    covered = {index for start, end in scored.offsets for index in range(start, end)}
    assert {index for index, character in enumerate(text) if not character.isspace()} <= covered
    assert all(before[0] <= after[0] for before, after in itertools.pairwise(scored.offsets))


@pytest.mark.parametrize(("family", "token"), [("gpt2", "<|endoftext|>"), ("bloom", "</s>"), ("opt", "</s>")])
def test_a_text_never_spells_a_special_token(zoo: Zoo, family: str, token: str) -> None:
    """As text it has several pieces; as the token it would have one, and another value."""
    model, tokenizer = zoo.torch("lm", family)
    assert len(plain_ids(tokenizer, f"a {token}")) < 4
    call = ScoreText((f"Document: {token}.",), f"a {token}")
    (scored,) = run(zoo.language_model(family), [call])
    assert len(scored.log_probs) > 4
    special = set(tokenizer.all_special_ids)
    encoder = zoo.language_model(family)._encoder
    ids = [encoder.encode_plain(part).ids for part in (*call.prefix, call.text)]
    assert not special & {index for part in ids for index in part}
    with torch.inference_mode():
        logits = model(torch.tensor([ids[0] + ids[1]])).logits[0, len(ids[0]) - 1 : -1].log_softmax(-1)
    np.testing.assert_allclose(scored.log_probs, logits[range(len(ids[1])), ids[1]], atol=1e-4)


def test_the_special_tokens_of_the_tokenizer_are_left_out(zoo: Zoo) -> None:
    """OPT's texts begin with an end token when transformers reads them."""
    _, tokenizer = zoo.torch("lm", "opt")
    assert tokenizer("a b")["input_ids"][0] == tokenizer.eos_token_id
    (scored,) = run(zoo.language_model("opt"), [ScoreText((), "a b")])
    assert (scored.first, len(scored.log_probs)) == (1, len(plain_ids(tokenizer, "a b")) - 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_window_bounds_prefix_and_text_together(zoo: Zoo, family: str) -> None:
    model = zoo.language_model(family)
    room = models.MAX_TOKENS - 3  # no piece of the vocabulary has two x
    calls = [ScoreText(("x" * room,), "xxx"), ScoreText(("x" * room, "x"), "xxx"), ScoreText(("x",), "x")]
    fits, too_long, fine = model.run(calls, 1)
    assert isinstance(fits, TextScored)
    assert isinstance(too_long, TooLong)
    assert "97 tokens (94 and 3)" in str(too_long)
    assert "reads 96 at once" in str(too_long)
    assert isinstance(fine, TextScored)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (ScoreText((), "x"), "1 tokens after a prefix of 0"),
        (ScoreText(("", ""), "x"), "1 tokens after a prefix of 0"),
        (ScoreText((), ""), "0 tokens after a prefix of 0"),
        (ScoreText(("x",), ""), "0 tokens after a prefix of 1"),
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_to_predict_is_an_error_of_its_call(zoo: Zoo, family: str, call: ScoreText, message: str) -> None:
    wrong, right = zoo.language_model(family).run([call, CALLS[0]], 8)
    assert isinstance(wrong, InvalidRequest)
    assert message in str(wrong)
    assert isinstance(right, TextScored)


def test_no_calls(zoo: Zoo) -> None:
    assert [zoo.language_model(family).run([], 8) for family in FAMILIES] == [[]] * 3


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_fail_their_calls_alone(zoo: Zoo, tmp_path: Path, value: float) -> None:
    """A broken weight at position 60: only texts that reach it fail, whichever texts share their batch."""
    bundle = zoo.bundle("lm", "gpt2")
    role = bundle.manifest.roles["lm"]
    assert isinstance(role, LanguageModelRole)
    graph = ir.load(bundle.file(role.graph))
    positions = graph.graph.initializers["embed.positions.weight"]
    assert positions.const_value is not None
    broken = positions.const_value.numpy().copy()
    broken[60] = value
    positions.const_value = ir.tensor(broken, name="embed.positions.weight")
    ir.save(graph, tmp_path / "lm.onnx", external_data="weights.bin")
    encoder = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
    model = LanguageModel(role, SessionScorer(role, Session.load(tmp_path / "lm.onnx", PROFILE), PROFILE), encoder)
    results = model.run([ScoreText(("x" * 64,), RESPONSE), ScoreText(("xx",), RESPONSE)], 8)
    assert isinstance(results[0], ModelError)
    assert "log-probability of nan" in str(results[0])
    assert results[1] == zoo.language_model("gpt2").run([ScoreText(("xx",), RESPONSE)], 8)[0]


def test_the_local_runtime_serves_the_role(zoo: Zoo) -> None:
    runtime = LocalRuntime.load(zoo.bundle("lm", "bloom").directory, "cpu", threads=1)
    assert runtime.roles == {"lm"}
    assert runtime.worker_pool("lm") == "device"
    assert 1 < runtime.batch("lm") < runtime.profile.max_rows
    (warm,) = runtime.warm_calls()
    (outcome,) = runtime.run("lm", [warm], 8)
    assert isinstance(outcome, TextScored)
    assert not isinstance(outcome, GroundwireError)
    assert runtime.run("lm", CALLS, 8) == zoo.language_model("bloom").run(CALLS, 8)

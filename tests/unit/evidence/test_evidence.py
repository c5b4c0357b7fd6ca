"""Evidence packets: what is in them, that a change is noticed, and what verifying them says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from groundwire.cli import app
from groundwire.engine import Engine, InvalidRequest, LoadOptions, Options, Request, Score
from groundwire.engine.schema.options import Q2Options
from groundwire.evidence import Auditor, EvidencePacket
from groundwire.evidence.packet import digest_json
from groundwire.runtime.calls import Answer, Answered, Read
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Identity, Outcome
from tests.support.evaluation import CALIBRATION
from tests.support.fakes import answer, world

RESPONSE = "Elvis was born in 1936."
KNOWLEDGE = ("Elvis came in 1935.",)
HISTORY = ("Who was Presley?",)
WORDS = ("Elvis", "1936", "1935", "Presley")
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(world(), LoadOptions(calibration=CALIBRATION)) as loaded:
        yield loaded


def pack(engine: Engine, *, texts: bool = False, **fields: Any) -> EvidencePacket:
    score = engine.score(RESPONSE, KNOWLEDGE, history=HISTORY, metrics=["q2"])
    return Auditor(engine).pack(score, RESPONSE, KNOWLEDGE, history=HISTORY, texts=texts, **fields)


def test_a_packet_is_read_back_and_verified(engine: Engine) -> None:
    packet = pack(engine, texts=True, created=NOON.astimezone(timezone(timedelta(hours=5))))
    read = EvidencePacket.from_json(packet.to_json())
    assert read == packet
    assert read.created == NOON
    assert read.versions["groundwire"]
    assert read.score.value == 0.5
    assert read.score.signature == engine.plan(["q2"]).signature
    verification = Auditor(engine).verify(read)
    assert (verification.status, verification.differences, verification.settings) == ("verified", (), ())


def test_other_spaces_and_another_order_are_the_same_packet(engine: Engine) -> None:
    fields = json.loads(pack(engine, texts=True).to_json())
    other = json.dumps({name: fields[name] for name in reversed(fields)}, indent=3)
    assert Auditor(engine).verify(EvidencePacket.from_json(other)).status == "verified"


def test_without_texts_a_packet_quotes_nothing(engine: Engine) -> None:
    packet = pack(engine)
    # A digest may have the digits of a number.
    assert [word for word in WORDS if re.search(rf"(?<![0-9a-f]){word}(?![0-9a-f])", packet.to_json())] == []
    assert all(word in pack(engine, texts=True).to_json() for word in WORDS)
    assert Auditor(engine).verify(packet).status == "no_texts"
    assert Auditor(engine).verify(packet, Request(RESPONSE, KNOWLEDGE, HISTORY)).status == "verified"


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Request("Elvis was born in 1937.", KNOWLEDGE, HISTORY), "request.response"),
        (Request(RESPONSE, ("Elvis came.",), HISTORY), "request.knowledge"),
        (Request(RESPONSE, KNOWLEDGE), "request.history"),
    ],
)
def test_other_texts_are_named(engine: Engine, request_: Request, field: str) -> None:
    verification = Auditor(engine).verify(pack(engine), request_)
    assert verification.status == "other_texts"
    assert [difference.field for difference in verification.differences] == [field]


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.no_cover
def test_every_changed_byte_is_noticed(engine: Engine, texts: bool) -> None:
    raw = pack(engine, texts=texts).to_json().encode()
    content = json.loads(raw)
    noticed = 0
    for index in range(len(raw)):
        for change in (1, 16):
            changed = bytearray(raw)
            changed[index] ^= change
            try:
                if json.loads(changed) == content:  # 1.0e-7 and 1.0E-7
                    continue
            except ValueError:
                pass
            noticed += 1
            try:
                packet = EvidencePacket.from_json(bytes(changed))
            except InvalidRequest:
                continue
            assert Auditor(engine).verify(packet).status == "changed", bytes(changed[max(index - 40, 0) : index + 20])
    assert noticed > 1.95 * len(raw)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("score", "value"), 0.75),
        (("score", "metrics", "q2", "value"), 0.75),
        (("score", "verdict", "probability"), 0.75),
        (("score", "verdict", "label"), "inconsistent"),
        (("options", "q2", "questions"), "all"),
        (("options", "max_windows"), 4),
        (("calibration",), "0" * 64),
        (("identity", "digest"), "1" * 12),
        (("request", "knowledge"), "0" * 64),
        (("score_digest",), "0" * 64),
    ],
)
def test_a_changed_packet_with_a_digest_of_its_own_is_not_verified(
    engine: Engine, path: tuple[str, ...], value: object
) -> None:
    """Who changes a packet on purpose computes its digest again; scoring again notices it."""
    fields = json.loads(pack(engine).to_json())
    inner = fields
    for name in path[:-1]:
        inner = inner[name]
    assert inner[path[-1]] != value
    inner[path[-1]] = value
    forged = msgspec.convert(fields | {"digest": ""}, EvidencePacket)
    forged = msgspec.structs.replace(forged, digest=digest_json(forged))
    verification = Auditor(engine).verify(forged, Request(RESPONSE, KNOWLEDGE, HISTORY))
    named = [difference.field for difference in (*verification.differences, *verification.settings)]
    assert verification.differences or verification.settings, path
    assert ".".join(path) in named or "score.signature" in named, named


def test_a_score_of_other_texts_inside_a_packet_is_a_contradiction(engine: Engine) -> None:
    packet = pack(engine, texts=True)
    forged = msgspec.structs.replace(packet, texts=Request(RESPONSE, ("Elvis came.",), HISTORY), digest="")
    verification = Auditor(engine).verify(msgspec.structs.replace(forged, digest=digest_json(forged)))
    assert verification.status == "changed"
    assert [difference.field for difference in verification.differences] == ["request.knowledge"]


def test_repeated_and_unknown_fields_are_refused(engine: Engine) -> None:
    text = pack(engine).to_json()
    with pytest.raises(InvalidRequest, match="one is repeated"):
        EvidencePacket.from_json(text.replace('"value":0.5', '"value":0.9,"value":0.5', 1))
    with pytest.raises(InvalidRequest, match="a field that is unknown"):
        EvidencePacket.from_json(text.replace('"value":0.5', '"note":"fine","value":0.5', 1))


class OtherDevice(FakeRuntime):
    """The fake world on a device that answers differently."""

    @property
    def identity(self) -> Identity:
        return Identity("fake", "0" * 12, "fp16", "cuda")


def no_answer(call: Answer) -> Outcome:
    return Answered("none", "", -1, -1, -1, -1.0, Read(1, 1, 1)) if "1935" in call.passages[0] else answer(call)


def test_something_else_is_computed(engine: Engine) -> None:
    packet = pack(engine, texts=True)
    with Engine(world(qa=no_answer), LoadOptions(calibration=CALIBRATION)) as other:
        different = Auditor(other).verify(packet)
    roles = world(qa=no_answer)._answers
    with Engine(OtherDevice(roles), LoadOptions(calibration=CALIBRATION)) as elsewhere:
        explained = Auditor(elsewhere).verify(packet)
    with Engine(OtherDevice(world()._answers), LoadOptions(calibration=CALIBRATION)) as equal:
        verified = Auditor(equal).verify(packet)
    assert different.status == "different"
    assert "score.value" in [difference.field for difference in different.differences]
    assert explained.status == "other_settings"
    assert [difference.field for difference in explained.settings] == ["identity.precision", "identity.device"]
    assert verified.status == "verified"
    assert verified.settings == explained.settings


def test_a_score_of_something_else_gets_no_packet(engine: Engine) -> None:
    score = engine.score(RESPONSE, KNOWLEDGE)
    with pytest.raises(InvalidRequest, match="made with other settings"):
        Auditor(engine).pack(score, RESPONSE, KNOWLEDGE, scoring=Options(q2=Q2Options(nli=False)))
    with pytest.raises(InvalidRequest, match="not of this response"):
        Auditor(engine).pack(score, "A text of its own.", KNOWLEDGE)
    with pytest.raises(InvalidRequest, match="a time zone"):
        Auditor(engine).pack(score, RESPONSE, KNOWLEDGE, created=datetime(2026, 1, 1))
    (invalid,) = engine.score_many([("", "")])
    with pytest.raises(InvalidRequest, match="has no results"):
        Auditor(engine).pack(invalid, RESPONSE, KNOWLEDGE)


def run(*args: object) -> Result:
    return CliRunner().invoke(app, list(map(str, args)))


@pytest.fixture
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    load = classmethod(lambda cls, *args, **kwargs: cls(world(), LoadOptions(calibration=CALIBRATION)))
    monkeypatch.setattr(Engine, "load", load)


@pytest.mark.usefixtures("_fake")
def test_the_commands(tmp_path: Path) -> None:
    packet, bare, traffic = (tmp_path / name for name in ("packet.json", "bare.json", "traffic.jsonl"))
    explain = ("explain", RESPONSE, "-k", KNOWLEDGE[0], "-H", HISTORY[0])
    explained = run(*explain, "--evidence", packet, "--texts")
    assert msgspec.json.decode(explained.stdout, type=Score).value == 0.5
    assert run(*explain, "--evidence", bare).exit_code == 0
    assert EvidencePacket.from_json(run(*explain, "--evidence", "-").stdout).texts is None
    other = {"response": RESPONSE, "knowledge": "Elvis came."}
    mine = {"response": RESPONSE, "knowledge": KNOWLEDGE, "history": HISTORY}
    traffic.write_text(f"{json.dumps(other)}\n{json.dumps(mine)}\n")

    assert run("verify", packet).exit_code == 0
    assert run("verify", bare, "--texts", traffic).exit_code == 0
    without = run("verify", bare, "--table")
    assert (without.exit_code, "give them" in without.output) == (3, True)
    traffic.write_text(f"{json.dumps(other)}\n")
    others = run("verify", bare, "--texts", traffic, "--table")
    assert (others.exit_code, "request.knowledge" in others.output) == (3, True)
    packet.write_text(packet.read_text().replace('"value":0.5', '"value":0.6'))
    changed = run("verify", packet, "--json")
    assert (changed.exit_code, json.loads(changed.stdout)["status"]) == (4, "changed")


@pytest.mark.usefixtures("_fake")
def test_what_is_no_packet_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"schema": 2}')
    for arguments, message in (
        ((tmp_path / "a.json",), "Not the JSON form of EvidencePacket"),
        ((tmp_path / "absent.json",), "cannot be read"),
    ):
        result = run("verify", *arguments)
        assert isinstance(result.exception, InvalidRequest)
        assert message in str(result.exception)

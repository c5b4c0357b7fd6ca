"""Deadlines, tokens, limits, paths of fields, logs: the plain functions of the service."""

from __future__ import annotations

import io
import json
import logging
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import uvicorn

from groundwire.engine import Engine, GroundwireError, InvalidRequest, Options
from groundwire.runtime.errors import EngineClosed, ModelError, Overloaded, TooLong, Unreadable
from groundwire.runtime.triples import Triple
from groundwire.service import logs
from groundwire.service.front import Authorizer, choose_id
from groundwire.service.problems import STATUS, Refusal, find_path, refuse_error, refuse_stopped
from groundwire.service.records import ScoreBody
from groundwire.service.request import (
    bound_options,
    check_texts,
    decode,
    make_deadline,
    may_repeat_keys,
    read_headers,
)
from groundwire.service.server import DrainingServer
from groundwire.service.settings import ProxySettings, Settings, read_field_docs, read_tenants, read_tokens
from tests.support.streams import world


@pytest.mark.parametrize(
    ("headers", "ms"),
    [
        ({}, None),
        ({"grpc-timeout": "1H"}, 3_600_000.0),
        ({"grpc-timeout": "2M"}, 120_000.0),
        ({"grpc-timeout": "3S"}, 3000.0),
        ({"grpc-timeout": "99999999m"}, 99_999_999.0),
        ({"grpc-timeout": "5000u"}, 5.0),
        ({"grpc-timeout": "5000000n"}, 5.0),
        ({"groundwire-deadline-ms": "1.5"}, 1.5),
        ({"groundwire-deadline-ms": "1000", "grpc-timeout": "2S"}, 1000.0),
        ({"groundwire-deadline-ms": "3000", "grpc-timeout": "2S"}, 2000.0),
    ],
)
def test_headers_have_deadlines(headers: dict[str, str], ms: float | None) -> None:
    assert read_headers(headers) == pytest.approx(ms) if ms else read_headers(headers) is None


@pytest.mark.parametrize("value", ["", "5", "5s", "-5m", "123456789m", "5 m", "m", "1e3m"])
def test_a_wrong_grpc_timeout_is_refused(value: str) -> None:
    with pytest.raises(Refusal, match="eight digits"):
        read_headers({"grpc-timeout": value})


@pytest.mark.parametrize("value", ["", "soon", "0", "-1", "nan", "inf", "1_000"])
def test_a_wrong_deadline_is_refused(value: str) -> None:
    with pytest.raises(Refusal, match="milliseconds above 0"):
        read_headers({"groundwire-deadline-ms": value})


def test_a_deadline_counts_from_the_arrival() -> None:
    deadline = make_deadline({}, 100.0, 1000.0, 5.0, lambda: 5.06)
    assert deadline.left_ms() == pytest.approx(40)
    assert deadline.choose(80).left_ms() == pytest.approx(20)
    assert deadline.choose(None) == deadline
    assert deadline.choose(500).ms == 500.0, "100 is for a request that names none"
    assert deadline.choose(5000).ms == 1000.0, "the server's most"
    with pytest.raises(Refusal, match="within 50 ms") as refused:
        deadline.choose(50).left_ms()
    assert refused.value.status == 504
    named = make_deadline({"grpc-timeout": "9S"}, 100.0, 1000.0, 5.0, lambda: 5.0)
    assert named.ms == 1000.0, "the server's most"
    assert [named.choose(300).choose(ms).ms for ms in (200, 900)] == [200.0, 300.0], (
        "the shortest of those that are named"
    )


@pytest.mark.parametrize(
    ("level", "own", "others"),
    [
        ("debug", logging.DEBUG, logging.WARNING),
        ("info", logging.INFO, logging.WARNING),
        ("error", logging.ERROR, logging.ERROR),
    ],
)
def test_the_log_has_warnings_alone_of_uvicorn(level: str, own: int, others: int) -> None:
    names = ("", "groundwire", "uvicorn", "uvicorn.error", "asyncio", logs.connections.name)
    loggers = [logging.getLogger(name) for name in names]
    before = [(logger, logger.level, logger.handlers[:], logger.filters[:]) for logger in loggers]
    try:
        logs.configure(level)
        assert [logger.getEffectiveLevel() for logger in (logs.log, logging.getLogger("uvicorn.error"))] == [
            own,
            others,
        ]
    finally:
        for logger, level_before, handlers, filters in before:
            logger.setLevel(level_before)
            logger.handlers[:], logger.filters[:] = handlers, filters


def test_one_of_the_tokens_is_needed() -> None:
    authorizer = Authorizer(["first token", "zweites Zeichen ß"])
    for header in ("Bearer first token", "bearer  first token", "BEARER zweites Zeichen ß"):
        authorizer.check(header)
    for header in (None, "", "Bearer", "Bearer ", "Bearer First token", "Basic first token", "first token"):
        with pytest.raises(Refusal) as refused:
            authorizer.check(header)
        assert refused.value.status == 401
        assert "WWW-Authenticate" in refused.value.headers
        assert "first" not in refused.value.detail
    Authorizer([]).check(None)


def test_a_token_names_its_tenant_and_a_gateway_the_tenants_of_others() -> None:
    settings = Settings(tokens=("third",), tenant_tokens={"shop": "first", "*": "second"})
    authorizer = Authorizer(read_tokens(settings), read_tenants(settings))
    tenant_by_token = {
        token: bound_options(Options(tenant="theirs"), settings, authorizer.check(f"Bearer {token}")).tenant
        for token in ("first", "second", "third")
    }
    assert tenant_by_token == {"first": "shop", "second": "theirs", "third": ""}
    assert bound_options(Options(tenant="theirs"), Settings(), Authorizer([]).check(None)).tenant == ""


def test_tokens_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("one\n\n two \n")
    assert read_tokens(Settings(tokens=("zero",), token_file=str(file))) == ("zero", "one", "two")
    file.write_text("\n")
    for settings in (
        Settings(token_file=str(file)),
        Settings(token_file=str(tmp_path / "absent")),
        Settings(tokens=("",)),
    ):
        with pytest.raises(InvalidRequest, match="token"):
            read_tokens(settings)


def test_an_id_is_kept_if_a_log_can_show_it() -> None:
    assert choose_id("a-1:b/2") == "a-1:b/2"
    ids = {choose_id(given) for given in (None, "", "a b", "a\nb", "é", "x" * 129, '"\x00"')}
    assert len(ids) == 7
    assert all(len(new) == 32 for new in ids)


def test_options_stay_within_the_servers() -> None:
    settings = Settings(max_knowledge_chars=100, max_priority=5)
    options = bound_options(Options(max_knowledge_chars=10, max_history_chars=10**6, priority=5), settings)
    assert options == Options(max_knowledge_chars=10, max_history_chars=50_000, max_response_chars=20_000, priority=5)
    with pytest.raises(Refusal, match="allows 5 and below") as refused:
        bound_options(Options(priority=6), settings)
    assert refused.value.path == "$.options.priority"


def test_limits_are_inclusive() -> None:
    settings = Settings(max_response_chars=3, max_knowledge_chars=4, max_passages=2, max_triples=1)
    check_texts(settings, ("abc", "abc"), ("ab", "cd"), (), (Triple("a", "b", "cd"),))
    check_texts(settings, (), "abcd", (), (("a", "b", "cd"),))
    for arguments in (
        (("abcd",), (), ()),
        ((), ("ab", "cde"), ()),
        ((), ("a",) * 3, ()),
        ((), (), (), (("a", "b", "cde"),)),
        ((), (), (), (("a", "b", "c"),) * 2),
    ):
        with pytest.raises(Refusal, match="this server allows") as refused:
            check_texts(settings, *arguments)  # type: ignore[arg-type]
        assert refused.value.status == 413


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"response": ""}, "$.response"),
        ({"response": "a\0"}, "$.response"),
        ({"knowledge": 5}, "$.knowledge"),
        ({"knowledge": ["a", "\ud800"]}, "$.knowledge[1]"),
        ({"history": ["a", "\0"]}, "$.history[1]"),
        ({"triples": [("a", "b", "\0")]}, "$.triples[0].object"),
        ({"metrics": []}, "$.metrics"),
        ({"options": Options(max_response_chars=0)}, "$.options.max_response_chars"),
        ({"options": Options(q2=Options().q2.__class__(questions_at_once=0))}, "$.options.q2.questions_at_once"),
    ],
)
def test_the_engines_errors_name_their_field_first(arguments: dict[str, object], path: str) -> None:
    with Engine(world()) as engine, pytest.raises(InvalidRequest) as error:
        engine.score(**({"response": "Honey.", "knowledge": "Honey."} | arguments))  # type: ignore[arg-type]
    assert find_path(str(error.value)) == path


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidRequest("a"), "invalid"),
        (TooLong("a"), "unreadable"),
        (Unreadable("a"), "unreadable"),
        (Overloaded("a", 7), "overloaded"),
        (EngineClosed("a"), "closed"),
        (ModelError("a"), "failed"),
        (GroundwireError("a"), "failed"),
    ],
)
def test_errors_of_the_engine_have_codes(error: GroundwireError, code: str) -> None:
    refusal = refuse_error(error)
    assert (refusal.code, refusal.status) == (code, STATUS[refusal.code])
    assert refusal.headers == ({"Retry-After": "7"} if code == "overloaded" else {})


@pytest.mark.parametrize(
    ("main", "others", "code"),
    [
        ("scored", ["scored", "nothing_to_verify", "truncated"], None),
        ("nothing_to_verify", [], None),
        ("refused", [], None),
        ("scored", ["deadline"], "deadline"),
        ("scored", ["deadline", "failed"], "failed"),
        ("scored", ["deadline", "cancelled"], "closed"),
        ("truncated", ["truncated"], "unreadable"),
        ("invalid", [], "invalid"),
    ],
)
def test_nothing_that_was_stopped_is_a_success(main: str, others: list[str], code: str | None) -> None:
    if code is None:
        refuse_stopped(main, others, "why")
        return
    with pytest.raises(Refusal, match="why") as refused:
        refuse_stopped(main, others, "why", {"value": None})
    assert (refused.value.code, refused.value.describe().result) == (code, {"value": None})


def test_a_log_is_a_line_of_json() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonFormatter())
    logs.log.addHandler(handler)
    logs.log.setLevel("INFO")
    try:
        logs.write(logging.INFO, "request", status=200, route=None, name="two\nlines")
        logs.write(logging.DEBUG, "unseen")
        try:
            raise ValueError("reason")
        except ValueError as error:
            logs.log.error("defect", exc_info=error)
    finally:
        logs.log.removeHandler(handler)
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert {name: first[name] for name in ("level", "event", "status", "name")} == {
        "level": "info", "event": "request", "status": 200, "name": "two\nlines",
    }  # fmt: skip
    assert "route" not in first
    assert "ValueError: reason" in second["exception"]


def test_fields_are_described_by_the_strings_below_them() -> None:
    docs = read_field_docs()["ScoreBody"]
    assert docs["history"] == "Utterances, oldest first.", "of the base class"
    assert docs["options"].startswith("deadline_ms and priority")
    assert "response" not in docs
    assert set(read_field_docs()["Settings"]) == set(Settings.__struct_fields__)
    assert set(read_field_docs()["ProxySettings"]) == set(ProxySettings.__struct_fields__)


def test_an_unknown_field_is_answered_with_the_known_ones() -> None:
    body = {"response": "Honey is blue.", "knowlege": "Honey is golden."}
    with pytest.raises(Refusal) as caught:
        decode(json.dumps(body), msgspec.json.Decoder(ScoreBody))
    assert caught.value.path == "$.knowlege"
    assert "unknown field `knowlege` (did you mean knowledge?); allowed are knowledge, history," in caught.value.detail


@pytest.mark.parametrize(
    "text",
    [
        '{"response": "a", "knowledge": "b", "response": "c"}',
        '{"response": "a", "knowledge": "b", "r\\u0065sponse": "c"}',
        '{"response": "a", "knowledge": "\\\\", "options": {"priority": -1, "priority": 0}}',
        '{"response": "b", "knowledge": ", ", "options" : {"tenant": ": x", "tenant"\n: ": x"}}',
    ],
)
def test_a_repeated_key_is_malformed(text: str) -> None:
    for body in (text, text.encode()):
        with pytest.raises(Refusal, match="more than once; keep one") as refused:
            decode(body, msgspec.json.Decoder(ScoreBody))
        assert refused.value.code == "malformed"


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ('{"response": "\\"response\\": a", "knowledge": "response"}', False),
        ('{"triples": [{"subject": "a"}, {"subject": "b"}]}', True),
        ('{"r\\u0065sponse": "a"}', True),
        ("[]", False),
    ],
)
def test_only_keys_count_as_repeated(text: str, may: bool) -> None:
    assert may_repeat_keys(text) is may


def test_a_line_about_connections_is_logged_seldom() -> None:
    seconds = 0.0
    repeats = logs.RepeatFilter(lambda: seconds)

    def make_record(reason: str, level: int = logging.WARNING) -> logging.LogRecord:
        record = logging.LogRecord("a", level, "", 0, "connection closed", None, None)
        setattr(record, logs.FIELDS, {"reason": reason})
        return record

    assert [repeats.filter(make_record("refused")) for _ in range(5)] == [True] + [False] * 4
    assert repeats.filter(make_record("displaced"))
    assert repeats.filter(make_record("refused", logging.INFO))
    seconds = logs.REPEAT_SECONDS
    record = make_record("refused")
    assert repeats.filter(record)
    assert getattr(record, logs.FIELDS) == {"reason": "refused", "left_out": 4}


def test_a_further_signal_ends_the_requests(caplog: pytest.LogCaptureFixture) -> None:
    readiness = SimpleNamespace(is_draining=False)
    front: Any = SimpleNamespace(service=SimpleNamespace(readiness=readiness))
    server = DrainingServer(uvicorn.Config(lambda: None), front, 0.0)
    with caplog.at_level(logging.INFO, "groundwire.service"):
        server.handle_exit(signal.SIGTERM, None)
        assert (server.should_exit, server.force_exit, readiness.is_draining) == (True, False, True)
        server.handle_exit(signal.SIGTERM, None)
    assert server.force_exit
    assert [record.getMessage() for record in caplog.records] == ["draining"]

"""Packs a score with all that it depends on, and compares a packet with what is computed now."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
from msgspec.structs import replace

from groundwire.engine import MetricResult, Plan, Request, Score, UnsupportedSpan, Verdict
from groundwire.engine.schema.results import Citation, SentenceVerdict, Timings
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.protocol import Identity

from .records import Difference, EvidencePacket, RequestDigests, Verification, VerificationStatus

LIBRARIES = ("groundwire", "numpy", "onnxruntime", "onnxruntime-gpu", "spacy", "tokenizers")
"""Distributions whose version may change a value."""
_MESSAGES: dict[VerificationStatus, str] = {
    "verified": "The same texts were scored again, and every result is the same.",
    "changed": "The packet is not as it was made: its digest is not that of its content, or its parts contradict each "
    "other.",
    "different": "With the same versions, bundles and device, something else was computed.",
    "other_texts": "The texts are not those of the packet.",
    "other_settings": "Something else was computed, with other versions, bundles or another device than the packet "
    "names. Verify it with those.",
    "no_texts": "The packet is as it was made. It has no texts, so nothing was computed again: give them.",
}


def make_packet(
    score: Score, request: Request, plan: Plan, identity: Identity, created: datetime | None, *, texts: bool
) -> EvidencePacket:
    """The packet of a score; InvalidRequest if the score is not one of this request and plan, as far as it can be seen.

    ``created`` needs a time zone; None is now.
    """
    if created is not None and (not isinstance(created, datetime) or created.tzinfo is None):
        raise InvalidRequest(f"created is {created!r}; pass a datetime with a time zone, or None for now.")
    if score.signature != plan.signature:
        raise InvalidRequest(
            f"The score was made with other settings than this engine and these options have: {score.signature}, not "
            f"{plan.signature}. Pass the options that it was made with, to the engine that made it."
        )
    parts: tuple[UnsupportedSpan | SentenceVerdict, ...] = (*score.unsupported, *score.sentences)
    for part in parts:
        if request.response[part.start : part.end] != part.text:
            raise InvalidRequest(
                f"The score is not of this response: it has {part.text!r:.80} at {part.start}. Pass the response that "
                "was scored."
            )
    packet = EvidencePacket(
        created=(created or datetime.now(UTC)).astimezone(UTC),
        versions=_list_versions(),
        identity=identity,
        calibration=digest_calibration(plan),
        metrics=plan.names,
        options=plan.options,
        request=digest_texts(request),
        score=score if texts else remove_texts(score),
        score_digest=digest_json(_comparable(score)),
        texts=request if texts else None,
    )
    return replace(packet, digest=digest_json(packet))


def check_packet(packet: EvidencePacket) -> tuple[Difference, ...]:
    """What in a packet contradicts its digests or itself."""
    pairs: list[tuple[str, Any, Any]] = [("digest", packet.digest, digest_json(replace(packet, digest="")))]
    if packet.texts is not None:
        pairs += [
            ("request", packet.request, digest_texts(packet.texts)),
            ("score_digest", packet.score_digest, digest_json(_comparable(packet.score))),
        ]
    return tuple(difference for name, recorded, computed in pairs for difference in _compare(name, recorded, computed))


def compare_settings(packet: EvidencePacket, plan: Plan, identity: Identity) -> tuple[Difference, ...]:
    """Versions, bundles, device and calibration that differ from the packet's."""
    return (
        *_compare("versions", packet.versions, _list_versions()),
        *_compare("identity", packet.identity, identity),
        *_compare("calibration", packet.calibration, digest_calibration(plan)),
    )


def compare_scores(packet: EvidencePacket, score: Score, *, same_settings: bool) -> tuple[Difference, ...]:
    """Where a score differs from the packet's; other settings have another signature."""
    shown = score if packet.texts is not None else remove_texts(score)
    return (
        *_compare("score", _comparable(packet.score), _comparable(shown)),
        *_compare("score_digest", packet.score_digest, digest_json(_comparable(score))),
        *(_compare("score.signature", packet.score.signature, score.signature) if same_settings else ()),
    )


def conclude(
    status: VerificationStatus, differences: tuple[Difference, ...] = (), settings: tuple[Difference, ...] = ()
) -> Verification:
    """The verification with its message."""
    return Verification(status, _MESSAGES[status], differences, settings)


def compare_texts(packet: EvidencePacket, request: Request) -> tuple[Difference, ...]:
    """Which texts of a request differ from the packet's."""
    return tuple(_compare("request", packet.request, digest_texts(request)))


def digest_texts(request: Request) -> RequestDigests:
    """The digests of a request."""
    return RequestDigests(
        digest_json(request.response),
        digest_json(request.knowledge),
        digest_json(request.history),
        digest_json(request.triples),
    )


def digest_calibration(plan: Plan) -> str | None:
    """The digest of the calibration of a plan; None without one."""
    return None if plan.calibration is None else digest_json(plan.calibration)


def remove_texts(score: Score) -> Score:
    """The score with its numbers, names and ranges alone: nothing that quotes response, knowledge or history.

    Built from what is known to be no text, so that a field of a later version is left out until it is named here.
    """
    return Score(
        status=score.status,
        value=score.value,
        verdict=_without_message(score.verdict),
        metrics={
            name: MetricResult(
                name,
                result.status,
                result.value,
                unsupported=tuple(map(_without_text, result.unsupported)),
                coverage=result.coverage,
                decision=result.decision,
            )
            for name, result in score.metrics.items()
        },
        unsupported=tuple(map(_without_text, score.unsupported)),
        coverage=score.coverage,
        timings=score.timings,
        signature=score.signature,
        sentences=tuple(
            SentenceVerdict(
                "",
                sentence.start,
                sentence.end,
                _without_message(sentence.verdict),
                tuple(map(_without_text, sentence.unsupported)),
            )
            for sentence in score.sentences
        ),
        citations=tuple(
            Citation(cited.start, cited.end, cited.evidence, "", cited.support) for cited in score.citations
        ),
    )


def _without_text(span: UnsupportedSpan) -> UnsupportedSpan:
    return UnsupportedSpan("", span.start, span.end, span.reason, "", span.metric, span.metrics)


def _without_message(verdict: Verdict) -> Verdict:
    return replace(verdict, message="")


def _comparable(score: Score) -> Score:
    """The score without what differs between two runs, or is compared by itself."""
    return replace(score, timings=Timings(0.0, {}), signature="")


def digest_json(value: Any) -> str:
    """SHA-256 of the JSON form of a record or a text, in hexadecimal digits; the order of a mapping does not matter."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


def _list_versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            continue
    return versions


def _compare(path: str, recorded: Any, computed: Any) -> Iterator[Difference]:
    """The leaves that differ, in order."""
    yield from _compare_plain(path, msgspec.to_builtins(recorded), msgspec.to_builtins(computed))


def _compare_plain(path: str, recorded: Any, computed: Any) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(computed, dict):
        for name in (*recorded, *(name for name in computed if name not in recorded)):
            yield from _compare_plain(f"{path}.{name}", recorded.get(name, _ABSENT), computed.get(name, _ABSENT))
    elif isinstance(recorded, list | tuple) and isinstance(computed, list | tuple) and len(recorded) == len(computed):
        for index, pair in enumerate(zip(recorded, computed, strict=True)):
            yield from _compare_plain(f"{path}[{index}]", *pair)
    elif recorded != computed:
        yield Difference(path, _show(recorded), _show(computed))


_ABSENT = object()


def _show(value: Any) -> str:
    return "" if value is _ABSENT else msgspec.json.encode(value).decode()

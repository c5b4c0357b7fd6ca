"""``groundwire verify``: compares an evidence packet with what is computed now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from groundwire.engine import Request
from groundwire.evidence import Auditor
from groundwire.evidence.packet import compare_texts
from groundwire.evidence.records import Difference, EvidencePacket, Verification, VerificationStatus
from groundwire.files.results_file import translate_write_errors
from groundwire.files.sources import open_source, translate_read_errors
from groundwire.runtime.errors import InvalidRequest

from . import display, options
from .groups import expand_groups
from .output import STDOUT, print_json, prints_tables
from .score import read_request

EXIT_CODES: dict[VerificationStatus, int] = {
    "verified": 0,
    "no_texts": display.EXIT_UNSCORED,
    "other_texts": display.EXIT_UNSCORED,
    "other_settings": display.EXIT_UNSCORED,
    "changed": display.EXIT_WORSE,
    "different": display.EXIT_WORSE,
}
SHOWN = 20
"""Differences that are printed; --json has all."""


@expand_groups
def verify_packet(
    packet: Annotated[Path, typer.Argument(help="An evidence packet; - is standard input.", metavar="PACKET")],
    texts: Annotated[
        Path | None,
        typer.Option(
            help="The scored texts, where the packet has none: a file as for `groundwire score`, of which the line "
            "with the packet's digests is read.",
        ),
    ] = None,
    columns: options.ColumnsOption = None,
    json: options.JsonOption = None,
    *,
    engine_options: options.StoredEngineOptions,
) -> None:
    """Score the response of an evidence packet again, and compare everything with the packet.

    The command prints every difference. The exit code is 0 if there is none; 4 if the packet was changed after it was
    made, or if the same versions, bundles and device compute another result; and 3 if the comparison is not possible:
    the texts are absent, or the results differ and the versions, bundles or device differ too.

        groundwire verify packet.json
        groundwire verify packet.json --texts traffic.jsonl
    """
    document = _read_packet(packet)
    candidates = [] if texts is None else _read_texts(texts, columns, document)
    names = document.identity.bundle.split("+")
    has_bundles = engine_options.bundle is not None or engine_options.extra
    chosen = options.EngineOptions(
        engine_options.bundle or names[0],
        engine_options.extra if has_bundles else names[1:],
        engine_options.device or document.identity.device,
        engine_options.threads,
        engine_options.calibration,
    )
    with chosen.open() as engine:
        verification = Auditor(engine).verify(document, _choose_request(document, candidates))
    if prints_tables(json):
        with translate_write_errors(STDOUT):
            _print_verification(verification)
    else:
        print_json(verification)
    if code := EXIT_CODES[verification.status]:
        raise typer.Exit(code)


def _read_packet(path: Path) -> EvidencePacket:
    with translate_read_errors(path), open_source(path) as stream:
        raw = stream.read()
    try:
        return EvidencePacket.from_json(raw)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error}") from error


def _read_texts(source: Path, columns: str | None, packet: EvidencePacket) -> list[Request]:
    """The request of the packet alone, if the file has it; else all of its requests."""
    requests = []
    with options.open_lines(source, columns) as lines:
        for line in lines:
            request = read_request(line, packet.options)
            if isinstance(request, InvalidRequest):
                display.print_line_error(display.error_console(), line, str(request))
            elif not compare_texts(packet, request):
                return [request]
            else:
                requests.append(request)
    if not requests:
        raise InvalidRequest(f"{source} has no line that can be scored; give the texts of the packet.")
    return requests


def _choose_request(packet: EvidencePacket, requests: Sequence[Request]) -> Request | None:
    """The request that is the packet's, or differs least from it; None without any."""
    return min(requests, key=lambda request: len(compare_texts(packet, request)), default=None)


def _print_verification(verification: Verification) -> None:
    console = display.output_console()
    colour = {0: "green", display.EXIT_UNSCORED: "yellow", display.EXIT_WORSE: "red"}[EXIT_CODES[verification.status]]
    console.print(f"[{colour}]{verification.status.replace('_', ' ')}[/]: {verification.message}")
    _print_differences("results", verification.differences)
    _print_differences("settings", verification.settings)


def _print_differences(title: str, differences: Sequence[Difference]) -> None:
    console = display.output_console()
    for difference in differences[:SHOWN]:
        values = (difference.field, difference.packet, difference.here)
        field, packet, here = map(display.escape_markup, values)
        console.print(
            f"  {title}: {field} is {packet or 'absent'} in the packet, {here or 'absent'} here", soft_wrap=True
        )
    if len(differences) > SHOWN:
        console.print(f"  {title}: {len(differences) - SHOWN} more; --json has all of them")

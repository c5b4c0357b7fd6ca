"""Turns of assistants with tools: which invented arguments, claimed actions and wrong figures are found.

``python -m bench turns`` reads the development half of ``bench/quality/turns`` and prints, by kind, how many marked
findings the checker finds and how many of the unmarked arguments, claims and right turns it calls wrong. With
``--data`` it also reads turns of services of SGD that nothing is trained on: right calls and successes as they are, and
with an argument of another dialogue, without the call, or with a call that failed or is pending.
"""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("turns")
sys.path.insert(0, str(ROOT))

from bench.quality.pairs import make_parser, read_pairs  # noqa: E402
from groundwire.engine import Engine  # noqa: E402
from groundwire.turns import Finding, TurnChecker  # noqa: E402

HALVES = ("development.jsonl", "younger.jsonl", "sealed.jsonl.gz")
KINDS = ("argument", "action", "value")
SGD = "more/sgd_turns.jsonl.gz"
SAMPLE = 1_000
TRANSACTIONS = ("GetRide", "GetTrainTickets")
"""Tools that SGD's schema calls transactional, and whose names do not say so."""
FEW = 15
"""Values of an argument that are taken for an enumeration, at most."""
SUCCESS = "NOTIFY_SUCCESS"


class MarkedFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is wrong with a turn."""

    kind: str
    where: str
    why: str


class LabelledTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A turn of ``bench/quality/turns``."""

    id: str
    service: str
    history: tuple[dict[str, str], ...]
    log: tuple[dict[str, Any], ...]
    text: str
    calls: tuple[dict[str, Any], ...]
    findings: tuple[MarkedFinding, ...]
    twin_of: str = ""


def fits(finding: Finding, marked: MarkedFinding, text: str) -> bool:
    """Whether a finding is about what is marked: the argument or a part of it, or words that overlap."""
    if finding.kind == "argument" or marked.kind == "argument":
        return finding.where.startswith(marked.where) or marked.where.startswith(finding.where)
    begin = text.index(marked.where)
    return (
        finding.start is not None
        and finding.end is not None
        and finding.start < begin + len(marked.where)
        and begin < finding.end
    )


def count_turns(turns: Sequence[LabelledTurn], checker: TurnChecker, *, show: bool) -> Counter[tuple[str, str]]:
    """Count what is found, what is missed and what is wrong, by kind; ``show`` prints the mistakes."""
    counts: Counter[tuple[str, str]] = Counter()
    for turn in turns:
        checked = checker.check(turn.text, turn.calls, log=turn.log, history=turn.history, sentences=False)
        problems = [finding for finding in checked.findings if finding.is_problem]
        for kind in {marked.kind for marked in turn.findings}:
            marks = [marked for marked in turn.findings if marked.kind == kind]
            found = any(fits(finding, marked, turn.text) for marked in marks for finding in problems)
            counts[kind, "marked"] += 1
            counts[kind, "found"] += found
            if show and not found:
                print("missed", turn.id, kind, "; ".join(f"{marked.where} ({marked.why})" for marked in marks))
        for finding in checked.findings:
            if any(fits(finding, marked, turn.text) for marked in turn.findings):
                continue
            counts[finding.kind, "others"] += 1
            counts[finding.kind, "wrong"] += finding.is_problem
            if show and finding.is_problem:
                print("wrong ", turn.id, finding.kind, finding.where, finding.status, finding.message)
        if not turn.findings:
            counts["turn", "right"] += 1
            counts["turn", "stopped"] += bool(problems)
            counts["value", "right turns"] += bool(turn.text)
            counts["value", "stopped"] += any(finding.kind == "value" for finding in problems)
        else:
            counts["turn", "marked"] += 1
            counts["turn", "found"] += bool(problems)
    return counts


def describe_turns(counts: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Yield the lines of a table: found, of marked, and false positives."""
    yield f"{'kind':<10} {'found':>14} {'false positives':>22}"
    for kind in KINDS:
        wrong, others = counts[kind, "wrong"], counts[kind, "others"]
        if kind == "value":  # figures that are right are not listed
            wrong, others = counts[kind, "stopped"], counts[kind, "right turns"]
        yield f"{kind:<10} {share(counts[kind, 'found'], counts[kind, 'marked'])} {share(wrong, others, 22)}"
    found, stopped = (
        share(counts["turn", "found"], counts["turn", "marked"]),
        share(counts["turn", "stopped"], counts["turn", "right"], 22),
    )
    yield f"{'turns':<10} {found} {stopped}"


def share(part: int, whole: int, width: int = 14) -> str:
    """Return a part of a whole as text."""
    return f"{part}/{whole} {100 * part / max(1, whole):5.1f} %".rjust(width)


def read_services(data: Path) -> list[dict[str, Any]]:
    """The turns of SGD's services that its training split lacks, with whole dialogues before them."""
    return [row for row in read_pairs(data / SGD, dict[str, Any]) if row["split"] != "train"]


def count_services(rows: Sequence[dict[str, Any]], engine: Engine) -> Iterator[str]:
    """Yield lines about right and changed turns of SGD, without and with the enumerations of its tools."""
    checker = TurnChecker(engine, actions=TRANSACTIONS)
    called = [row for row in rows if row.get("call") and row["call"]["arguments"] and 2 <= len(row["history"]) < 6]
    pool: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for row in called:
        for key, value in row["call"]["arguments"].items():
            pool[row["call"]["method"], key].add(value)
    tools = [
        {"name": method, "parameters": {"properties": {key: {"enum": sorted(values)}}}}
        for (method, key), values in pool.items()
        if len(values) <= FEW
    ]
    sample = random.Random(101).sample(called, min(SAMPLE, len(called)))
    with_tools = TurnChecker(engine, tools=tools, actions=TRANSACTIONS)
    for name, chosen in (("", checker), (" with enumerations", with_tools)):
        counts = count_arguments(sample, chosen, pool)
        yield f"SGD{name}, arguments of another dialogue, found: {share(counts['found'], counts['changed'])}"
        yield f"SGD{name}, right arguments, called wrong: {share(counts['wrong'], counts['arguments'])}"
    done = [
        row
        for row in rows
        if SUCCESS in row["acts"]
        and row.get("call")
        and any(call["name"] == row["call"]["method"] for call in _list_log(row))
    ]
    for status in ("succeeded", "failed", "pending", "absent"):
        stopped = total = 0
        for row in random.Random(101).sample(done, min(SAMPLE, len(done))):
            log = _list_log(row, status)
            checked = checker.check(row["response"], log=log, history=_list_history(row), sentences=False)
            actions = [finding for finding in checked.findings if finding.kind == "action"]
            total += 1
            stopped += any(finding.is_problem for finding in actions)
        yield f"SGD, successes whose call is {status}: stopped {share(stopped, total)}"


def count_arguments(
    rows: Sequence[dict[str, Any]], checker: TurnChecker, pool: Mapping[tuple[str, str], set[str]]
) -> Counter[str]:
    """Count what is found of arguments of another dialogue, and what is wrong of right ones."""
    rng = random.Random(7)
    counts: Counter[str] = Counter()
    for row in rows:
        method = row["call"]["method"]
        arguments = {key: _read(value) for key, value in row["call"]["arguments"].items()}
        log = [call for call in _list_log(row) if call["name"] != method]
        checked = checker.check(calls=[{"name": method, "arguments": arguments}], log=log, history=_list_history(row))
        counts["arguments"] += len(checked.findings)
        counts["wrong"] += len(checked.problems)
        key = rng.choice(sorted(arguments))
        others = sorted(pool[method, key] - {str(arguments[key])})
        if others and not isinstance(arguments[key], bool):
            changed = arguments | {key: _read(rng.choice(others))}
            checked = checker.check(calls=[{"name": method, "arguments": changed}], log=log, history=_list_history(row))
            counts["changed"] += 1
            counts["found"] += any(finding.where.endswith(f".{key}") for finding in checked.problems)
    return counts


def _read(value: str) -> Any:
    return {"True": True, "False": False}.get(value, value)


def _list_history(row: Mapping[str, Any]) -> list[dict[str, str]]:
    return [dict(zip(("role", "content"), turn.split(": ", 1), strict=True)) for turn in row["history"]]


def _list_log(row: Mapping[str, Any], status: str = "succeeded") -> list[dict[str, Any]]:
    """The log of a row; the call of the row has a status, or is left out if it is absent."""
    log = []
    for call in msgspec.json.decode(row["knowledge"]) if row["knowledge"] else ():
        is_own = call["tool"] == row["call"]["method"]
        if is_own and status == "absent":
            continue
        result = {"error": "unavailable"} if is_own and status == "failed" else call["result"]
        arguments = row["call"]["arguments"] if is_own else {}
        log.append(
            {
                "name": call["tool"],
                "arguments": arguments,
                "result": result,
                "status": status if is_own else "succeeded",
            }
        )
    return log


def main() -> None:
    """Print the tables."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("--half", choices=HALVES, default=HALVES[0])
    parser.add_argument("--data", type=Path, help="folder of the training sets, for SGD's turns")
    parser.add_argument("--show", action="store_true", help="print the mistakes")
    options = parser.parse_args()
    with Engine.load() as engine:
        checker = TurnChecker(engine, actions=TRANSACTIONS)
        counts = count_turns(read_pairs(FOLDER / options.half, LabelledTurn), checker, show=options.show)
        print(*describe_turns(counts), sep="\n")
        if options.data:
            print(*count_services(read_services(options.data), engine), sep="\n")


if __name__ == "__main__":
    main()

"""Names of source code: what is read as one, and what the knowledge says about it."""

from __future__ import annotations

import pytest

from groundwire.engine.values.codes import is_source_name
from groundwire.engine.values.knowledge import find_values
from groundwire.engine.values.support import check_values
from groundwire.engine.values.tokens import tokenize

KNOWLEDGE = (
    "larkvault prune drops references; --dry-run only lists them and --include-named adds named snapshots. "
    "Then run `larkvault compact`. Settings are read from vault.toml: `retry(attempts=3)` is the default."
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Pass --dry-run or --include-named.", ["--dry-run", "--include-named"]),
        ("Edit setup.cfg and src/app/main.py.", ["setup.cfg", "main.py"]),
        ("I can use read_file and MAX_SIZE.", ["read_file", "MAX_SIZE"]),
        ("Use `larkvault reindex backup`.", ["larkvault", "reindex"]),
        ("Use `retry(attempts=3)` or `retryCount`.", ["retry", "attempts", "retryCount"]),
        ("```\nlarkvault prune --force docs_old\n```", ["--force"]),
        ("It is _so_ good -- and well-known, e.g. -v or 5 - 3.", []),
        ("See https://a.example/x_y.html or write to a_b@c.example.", []),
        ("Set `your_key`, `--my-option` and `my_file.txt`.", []),
        ("Use `for`, `true`, `import json` and `3`.", []),
        ("`src/app/` is a folder.", []),
        ("His nickname is `` Dog . ``", []),
    ],
)
def test_names_of_source_code_are_found(text: str, names: list[str]) -> None:
    found = [value for value in find_values(tokenize(text)) if is_source_name(value.content)]
    assert [text[value.start : value.end] for value in found] == names


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("Run `larkvault compact` with --dry-run.", {}),
        ("Run `larkvault reindex` afterwards.", {"reindex": "compact"}),
        ("`larkvault prune --consider-named --dry-run`", {"--consider-named": "--include-named"}),
        ("```\nlarkvault prune --consider-named\n```", {"--consider-named": "--include-named"}),
        ("Settings are in vaults.toml.", {"vaults.toml": "vault.toml"}),
        ("Set `retry(tries=3)`.", {"tries": "attempts"}),
        ("There is no --force flag.", {}),
    ],
)
def test_a_name_that_the_knowledge_lacks_is_doubted(response: str, expected: dict[str, str]) -> None:
    checks = check_values(response, [KNOWLEDGE])
    doubted = {
        response[check.value.start : check.value.end]: KNOWLEDGE[check.evidence.start : check.evidence.end]
        for check in checks
        if check.outcome in ("contradicted", "absent") and check.evidence is not None
    }
    assert doubted == expected


def test_a_name_that_the_user_gave_is_not_doubted() -> None:
    (check,) = check_values("I deleted notes.toml.", [KNOWLEDGE], ["Please delete notes.toml."])
    assert (check.outcome, check.evidence) == ("absent", None)


def test_a_name_in_a_tool_log_supports_itself_alone() -> None:
    log = 'delete_file(path="verification.py") -> {"status": "ok"}'
    outcomes = [
        check.outcome
        for response in ("verification.py was deleted.", "validation.py was deleted.")
        for check in check_values(response, [log])
    ]
    assert outcomes == ["supported", "contradicted"]

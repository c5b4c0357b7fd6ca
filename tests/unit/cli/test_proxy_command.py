"""The command line of the proxy."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from groundwire.cli.proxy import OPTIONS, proxy
from groundwire.engine import BundleError, GroundwireError, InvalidRequest
from groundwire.service import server
from groundwire.service.proxy import make_proxy
from groundwire.service.settings import FORMS, ProxySettings, list_hints

PROGRAM = typer.Typer()
PROGRAM.command("proxy")(proxy)
PROGRAM.command("other")(lambda: None)
UPSTREAM = "http://localhost:8001/v1"


def invoke(*arguments: str, **environment: str) -> tuple[int, str]:
    result = CliRunner().invoke(PROGRAM, ["proxy", *arguments], env={"COLUMNS": "400", **environment})
    if isinstance(result.exception, GroundwireError):
        raise result.exception
    return result.exit_code, re.sub(r"[^\S\n]+", " ", re.sub(r"\x1b\[\d*m", "", result.output))


def test_the_help_has_every_setting() -> None:
    code, text = invoke("--help")
    assert code == 0
    others = text.partition("that are not options: ")[2].partition(".")[0].replace("\n", " ")
    for name in list_hints(ProxySettings):
        assert (f"--{name.replace('_', '-')} " in text) == (name in OPTIONS), name
        assert (name in others.replace(",", " ").split()) == (name not in OPTIONS), name
    for name in FORMS:
        assert f" {name} = " in text
        assert f" GROUNDWIRE_{name.upper()}=" in text


def test_the_options_reach_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def run(settings: ProxySettings, *, make: Callable[..., Any]) -> int:
        given.extend((settings, make))
        return 0

    monkeypatch.setattr(server, "run", run)
    options = ("--upstream", UPSTREAM, "--policy", "redact", "--port", "9")
    variables = {"GROUNDWIRE_UPSTREAM_KEY": "key", "GROUNDWIRE_KNOWLEDGE_FROM": "tool"}
    assert invoke(*options, **variables)[0] == 0
    settings = ProxySettings(upstream=UPSTREAM, policy="redact", knowledge_from=("tool",), port=9, upstream_key="key")
    assert given == [settings, make_proxy]


def test_settings_can_be_checked_without_serving(tmp_path: Path) -> None:
    file = tmp_path / "groundwire.toml"
    file.write_text(f'upstream = "{UPSTREAM}"\nwithout_knowledge = "refuse"\n')
    code, text = invoke("--check", "--config", str(file), "--host", "0.0.0.0", GROUNDWIRE_UPSTREAM_KYE="key")
    assert (code, "The settings are usable: bundle compact" in text) == (0, True)
    assert "There are no tokens and the host is 0.0.0.0" in text
    assert "GROUNDWIRE_UPSTREAM_KYE, which is no setting (did you mean GROUNDWIRE_UPSTREAM_KEY?)" in text
    with pytest.raises(BundleError, match="No bundle 'absent'"):
        invoke("--check", "--config", str(file), "--bundle", "absent")
    with pytest.raises(InvalidRequest, match=r"upstream is '', no address of a server"):
        invoke("--check")
    code, text = invoke("--upstream", UPSTREAM, "--policy", "pass")
    assert (code, "policy of the options is 'pass'" in text) == (2, True)


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("chat", "proxy", "upstream"):
        monkeypatch.delitem(sys.modules, f"groundwire.service.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "httpx", None)
    code, text = invoke("--upstream", UPSTREAM)
    assert (code, "pip install 'groundwire[proxy]'" in text) == (1, True)

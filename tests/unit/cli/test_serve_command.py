"""The command line of the service, and the socket that it opens."""

from __future__ import annotations

import re
import shutil
import socket
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from groundwire.cli.serve import OPTIONS, serve
from groundwire.engine import BundleError, GroundwireError, InvalidRequest
from groundwire.runtime.bundles.bundle import locate
from groundwire.service import server
from groundwire.service.settings import FORMS, Settings, list_hints

PROGRAM = typer.Typer()
PROGRAM.command("serve")(serve)
PROGRAM.command("other")(lambda: None)


def invoke(*arguments: str, **environment: str) -> tuple[int, str]:
    result = CliRunner().invoke(PROGRAM, ["serve", *arguments], env={"COLUMNS": "400", **environment})
    return result.exit_code, re.sub(r"[^\S\n]+", " ", re.sub(r"\x1b\[\d*m", "", result.output))


def test_the_help_has_every_setting() -> None:
    code, text = invoke("--help")
    assert code == 0
    others = text.partition("that are not options: ")[2].partition(".")[0].replace("\n", " ")
    for name in list_hints(Settings):
        assert (f"--{name.replace('_', '-')} " in text) == (name in OPTIONS), name
        assert (name in others.replace(",", " ").split()) == (name not in OPTIONS), name
    assert "Port to listen at; 0 chooses a free one. Default: 8000." in text
    assert "groundwire serve --extra nph" in text


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--port", "70000"], {}, "port of the options is 70000: Expected `int` <= 65535"),
        (["--config", "absent.toml"], {}, "absent.toml cannot be read"),
        ([], {"GROUNDWIRE_LOG_LEVEL": "loud"}, "log_level of the environment is 'loud'"),
        ([], {"GROUNDWIRE_WORKERS": "-1"}, "workers of the environment is '-1'"),
        (["--check"], {"GROUNDWIRE_MAX_TURN": "5"}, "GROUNDWIRE_MAX_TURNS"),
    ],
)
def test_a_wrong_setting_is_wrong_usage(arguments: list[str], environment: dict[str, str], message: str) -> None:
    code, text = invoke(*arguments, **environment)
    assert code == 2
    assert message in text.replace("\n", " ")


def test_settings_can_be_checked_without_serving(tmp_path: Path) -> None:
    file = tmp_path / "groundwire.toml"
    file.write_text('port = 9000\nextra = ["nph"]\n')
    code, text = invoke("--check", "--config", str(file), "--metrics", "fast", GROUNDWIRE_TOKENS="a,b")
    assert code == 0
    assert re.fullmatch(
        r"The settings are usable: bundle compact\S* [0-9a-f+]+ on cpu, metrics nli, .*, 1 worker, 2 tokens\.\n", text
    )


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("BUNDLE", "absent", "No bundle 'absent'"),
        ("METRICS", "nil", r"Unknown metric 'nil'.*did you mean nli"),
        ("CALIBRATION", "absent.json", r"absent\.json"),
        ("TOKEN_FILE", "absent", "token_file absent cannot be read"),
    ],
)
def test_what_a_check_finds_is_an_error(setting: str, value: str, message: str) -> None:
    result = CliRunner().invoke(PROGRAM, ["serve", "--check"], env={f"GROUNDWIRE_{setting}": value})
    assert isinstance(result.exception, GroundwireError)
    assert re.search(message, str(result.exception))


def test_a_check_reads_the_files_of_the_bundle(tmp_path: Path) -> None:
    shutil.copytree(locate("nph"), tmp_path / "nph")
    damaged = max((tmp_path / "nph").rglob("*.onnx"), key=lambda path: path.stat().st_size)
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    result = CliRunner().invoke(PROGRAM, ["serve", "--check", "--bundle", str(tmp_path / "nph")])
    assert isinstance(result.exception, BundleError)
    assert f"{damaged} has SHA-256" in str(result.exception)


def test_a_check_warns_of_an_open_server_and_of_unknown_variables() -> None:
    code, text = invoke("--check", "--metrics", "overlap", "--host", "0.0.0.0", GROUNDWIRE_WORKER="2")
    assert code == 0
    assert "There are no tokens and the host is 0.0.0.0" in text
    assert "GROUNDWIRE_WORKER, which is no setting (did you mean GROUNDWIRE_WORKERS?)" in text


def test_the_help_says_how_to_write_tokens() -> None:
    _, text = invoke("--help")
    for name in list_hints(Settings).keys() & FORMS.keys():
        assert f" {name} = " in text
        assert f" GROUNDWIRE_{name.upper()}=" in text
    assert "upstream_key" not in text


def test_the_options_reach_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Settings] = []
    monkeypatch.setattr(server, "run", lambda settings: given.append(settings) or 0)
    variables = {"GROUNDWIRE_TOKENS": "t", "GROUNDWIRE_LOG_TEXTS": "true"}
    assert invoke("--extra", "a,b", "--extra", "c", "--port", "9", **variables)[0] == 0
    assert given == [Settings(extra=("a", "b", "c"), port=9, log_texts=True, tokens=("t",))]


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "groundwire.service.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, text = invoke()
    assert (code, "pip install 'groundwire[serve]'" in text) == (1, True)


def test_a_port_in_use_is_an_error() -> None:
    with server.listen(Settings(port=0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(InvalidRequest, match=rf"port {port}: Address already in use"):
            server.listen(Settings(port=port))
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_the_page_is_opened_when_the_server_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    settings: list[Settings] = []

    def run(given: Settings, on_listening: Callable[[str], object]) -> int:
        settings.append(given)
        on_listening("http://127.0.0.1:1234")
        return 0

    monkeypatch.setattr(server, "run", run)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert invoke("--open", "--port", "1234") == (0, "http://127.0.0.1:1234/ui\n")
    assert opened == ["http://127.0.0.1:1234/ui"]
    assert settings == [Settings(port=1234)]
    code, text = invoke("--open", GROUNDWIRE_UI="false")
    assert (code, "the settings leave the page /ui out" in text) == (2, True)

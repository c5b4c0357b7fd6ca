"""Settings from a file, the environment and the command line, by one schema."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine import InvalidRequest
from groundwire.service.settings import (
    ProxySettings,
    Settings,
    is_list,
    list_hints,
    list_warnings,
    load_settings,
    plain_type,
    read_tenants,
    read_tokens,
)


def write(folder: Path, text: str) -> Path:
    file = folder / "groundwire.toml"
    file.write_text(text)
    return file


def test_the_command_line_wins_over_the_environment_and_this_over_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, 'port = 1\nworkers = 1\nhost = "file"\nextra = ["nph"]\nmax_deadline_ms = 20000')
    environment = {"GROUNDWIRE_PORT": "2", "GROUNDWIRE_WORKERS": "2", "GROUNDWIRE_TOKENS": "a,b", "HOME": "/"}
    settings = load_settings(file, environment, {"port": 3, "threads": None, "log_texts": True})
    assert settings == Settings(
        port=3, workers=2, host="file", extra=("nph",), max_deadline_ms=20_000.0, tokens=("a", "b"), log_texts=True
    )
    assert load_settings() == Settings()


def test_variables_are_text() -> None:
    environment = {
        "GROUNDWIRE_LOG_TEXTS": "true",
        "GROUNDWIRE_THREADS": "3",
        "GROUNDWIRE_DRAIN_DELAY_MS": "1.5",
        "GROUNDWIRE_METRICS": "nli,q2",
        "GROUNDWIRE_BUNDLE": "",
    }
    assert load_settings(environment=environment) == Settings(
        log_texts=True, threads=3, drain_delay_ms=1.5, metrics=("nli", "q2")
    )


def test_weights_of_tenants_come_from_the_file_or_the_environment(tmp_path: Path) -> None:
    file = write(tmp_path, "[tenant_weights]\nshop = 3\n")
    assert load_settings(file).tenant_weights == {"shop": 3.0}
    assert load_settings(file, {"GROUNDWIRE_TENANT_WEIGHTS": "a=2,b=0.5"}).tenant_weights == {"a": 2.0, "b": 0.5}


@pytest.mark.parametrize(
    ("text", "environment", "message"),
    [
        ("ELSEWHERE = 1", {}, r"no setting\. Settings are bundle, extra, device, threads, "),
        ("prot = 1", {}, r"'prot', which is no setting \(did you mean port\?\)"),
        ('port = "8000"', {}, "port of .*groundwire.toml is '8000': Expected `int`"),
        ("port = 70000", {}, "Expected `int` <= 65535"),
        ("port = ", {}, "is not TOML"),
        ("workers = -1", {}, ">= 0"),
        ("", {"GROUNDWIRE_TENANT_WEIGHTS": "a=0"}, "tenant_weights of the environment is {'a': '0'}"),
        ("", {"GROUNDWIRE_TENANT_WEIGHTS": "a"}, "tenant_weights of the environment is {'a': ''}"),
        ('tenant_tokens = "a=b"', {}, r"Write tenant_tokens = \{shop = \"TOKEN\""),
        ("", {"GROUNDWIRE_PORT": "http"}, "port of the environment is 'http'"),
        ("", {"GROUNDWIRE_PORT": "tcp://10.0.0.1:80"}, "enableServiceLinks"),
        ("", {"GROUNDWIRE_MAX_BODY_BYTE": "5"}, "did you mean GROUNDWIRE_MAX_BODY_BYTES"),
        ("", {"GROUNDWIRE_MAX_TURNS": "many"}, "max_turns"),
        ("max_deadline_ms = 5.0", {}, "default_deadline_ms is 10000; allowed is up to max_deadline_ms, 5"),
    ],
)
def test_a_wrong_setting_is_named_with_its_source(
    tmp_path: Path, text: str, environment: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        load_settings(write(tmp_path, text), environment)


def test_a_file_that_is_absent_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        load_settings(tmp_path / "absent.toml")


def test_a_token_is_never_shown(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="not shown") as error:
        load_settings(write(tmp_path, 'tokens = "secret-1"'))
    assert "secret" not in str(error.value)


def test_a_tenant_may_have_several_tokens_while_one_takes_the_place_of_another(tmp_path: Path) -> None:
    expected = {"t": "shop", "new": "shop", "g": "*"}
    file = write(tmp_path, '[tenant_tokens]\nshop = ["t", "new"]\n"*" = "g"\n')
    assert read_tenants(load_settings(file)) == expected
    settings = load_settings(environment={"GROUNDWIRE_TENANT_TOKENS": "shop=t, shop=new,*=g", "GROUNDWIRE_TOKENS": "o"})
    assert read_tenants(settings) == expected
    assert read_tokens(settings) == ("o", "t", "new", "g")


@pytest.mark.parametrize("value", ["secret", "shop=", "=secret", "shop=secret,mail=secret"])
def test_tokens_of_tenants_that_are_not_usable_are_said_without_them(value: str) -> None:
    settings = load_settings(environment={"GROUNDWIRE_TENANT_TOKENS": value})
    with pytest.raises(InvalidRequest, match="tenant_tokens") as error:
        read_tokens(settings)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("name", ["TOKENS", "TOKEN_FILE", "TENANT_TOKENS"])
def test_an_empty_variable_of_tokens_is_a_secret_that_is_missing(name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"GROUNDWIRE_{name}, and it is empty"):
        load_settings(environment={f"GROUNDWIRE_{name}": "", "GROUNDWIRE_HOST": ""})


def test_a_weight_of_a_tenant_without_a_token_is_refused() -> None:
    weights, tokens = {"shopp": 2.0, "": 0.5}, {"shop": "secret"}
    with pytest.raises(InvalidRequest, match=r"tenant_weights names 'shopp', .* \(did you mean shop\?\)") as error:
        read_tokens(Settings(tenant_weights=weights, tenant_tokens=tokens))
    assert "secret" not in str(error.value)
    assert len(read_tokens(Settings(tenant_weights=weights, tenant_tokens=tokens | {"*": "gateway"}))) == 2
    assert read_tokens(Settings(tenant_weights={"": 0.5})) == ()


@pytest.mark.parametrize(
    ("settings", "environment", "warnings"),
    [
        ({}, {"HOME": "/", "GROUNDWIRE_PORT": "1"}, []),
        ({"host": "localhost"}, {}, []),
        ({"host": "::1"}, {}, []),
        ({"host": "0.0.0.0"}, {}, ["There are no tokens and the host is 0.0.0.0"]),
        ({"host": "0.0.0.0", "tokens": ("a",)}, {}, []),
        ({"host": "0.0.0.0", "tenant_tokens": {"a": "b"}}, {}, []),
        (
            {},
            {"GROUNDWIRE_TOKEN": "secret"},
            ["GROUNDWIRE_TOKEN, which is no setting (did you mean GROUNDWIRE_TOKENS?)"],
        ),
    ],
)
def test_what_is_probably_not_meant_is_a_warning(
    settings: dict[str, Any], environment: dict[str, str], warnings: list[str]
) -> None:
    said = list_warnings(Settings(**settings), environment)
    assert len(said) == len(warnings)
    for line, warning in zip(said, warnings, strict=True):
        assert warning in line
        assert "secret" not in line


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")
def test_a_file_of_tokens_that_everyone_can_read_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("secret")
    for mode, warnings in ((0o644, 1), (0o640, 0), (0o600, 0)):
        file.chmod(mode)
        said = list_warnings(Settings(token_file=str(file)), {})
        assert len(said) == warnings
        assert all(f"chmod 600 {file}" in line and "secret" not in line for line in said)


def test_every_setting_has_a_plain_type() -> None:
    hints = list_hints(ProxySettings)
    kinds = {name: plain_type(hint) for name, hint in hints.items()}
    assert {kinds[name] for name in kinds} == {str, int, float, bool}
    assert (kinds["threads"], kinds["log_level"], kinds["extra"], kinds["drain_delay_ms"]) == (int, str, str, float)
    assert [name for name in hints if is_list(hints[name])] == ["extra", "metrics", "tokens", "knowledge_from"]


def test_the_proxy_has_settings_besides(tmp_path: Path) -> None:
    file = write(tmp_path, 'upstream = "http://a/v1"\nknowledge_from = ["tool"]')
    environment = {"GROUNDWIRE_UPSTREAM_KEY": "k", "GROUNDWIRE_POLICY": "annotate"}
    settings = load_settings(file, environment, {"port": 3}, ProxySettings)
    assert settings == ProxySettings(
        upstream="http://a/v1", upstream_key="k", knowledge_from=("tool",), policy="annotate", port=3
    )
    with pytest.raises(InvalidRequest, match="'upstream', which is no setting"):
        load_settings(file)
    with pytest.raises(InvalidRequest, match="policy of the options is 'pass'"):
        load_settings(options={"policy": "pass"}, record=ProxySettings)

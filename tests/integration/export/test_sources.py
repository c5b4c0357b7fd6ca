"""Names and checkpoints are checked before torch is imported, and the hub is asked once."""

from __future__ import annotations

import http.server
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from groundwire.export.options import RoleOptions
from groundwire.export.presets import PRESETS
from groundwire.export.roles.names import ROLES, find_kind_name
from groundwire.export.roles.registry import KINDS
from groundwire.export.sources import check_hub, is_local
from groundwire.runtime.errors import ExportError
from tests.support.commands import command


@pytest.fixture
def silent() -> str:
    """An address where nothing answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def hub() -> Iterator[str]:
    """A hub that has nothing."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def export(*arguments: str, **environment: str) -> list[str]:
    """What a process of ``groundwire export`` prints and raises, and which large libraries it has imported."""
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from groundwire.cli.export import app\n"
        f"result = CliRunner().invoke(app, {list(arguments)!r})\n"
        "print(*result.output.replace('│', ' ').split(), repr(result.exception))\n"
        "print(sorted({'torch', 'transformers', 'onnx'} & set(sys.modules)))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    assert run.stderr == ""
    return run.stdout.splitlines()


def test_help_lists_every_preset_and_role() -> None:
    # Words are compared, because the table breaks its lines anywhere.
    words = set(command("--help").replace(",", " ").replace(".  ", " ").split())
    names = [name for roles in ROLES.values() for name in roles]
    assert {*PRESETS, *names} <= {word.rstrip(".") for word in words}


def test_every_kind_of_model_has_roles() -> None:
    assert set(ROLES) == set(KINDS)
    assert all(kind.name == name for name, kind in KINDS.items())


@pytest.mark.parametrize(
    ("role", "kind"),
    [("qa", "extractive_qa"), ("detector.mine", "classifier"), ("critic", "token_classifier"), ("spans", "spans")],
)
def test_a_role_has_a_kind(role: str, kind: str) -> None:
    assert find_kind_name(role) == kind


@pytest.mark.parametrize("role", ["poet", "detector.", "detector", "", "QA"])
def test_other_names_are_no_roles(role: str) -> None:
    with pytest.raises(ExportError, match=r"roles? .*Roles are qa, qg, nli, detector\.NAME.* and spans\."):
        find_kind_name(role)


def test_a_mistyped_preset_is_said_before_torch_is_imported(tmp_path: Path) -> None:
    error, modules = export("paper-q3", "--out", str(tmp_path / "b"))
    assert "Unknown preset or role 'paper-q3'; did you mean paper-q2?" in error
    assert all(name in error for name in (*PRESETS, "retriever"))
    assert modules == "[]"


def test_a_missing_directory_is_said_before_torch_is_imported(tmp_path: Path) -> None:
    error, modules = export("nli", "--source", "./my-nli", "--out", str(tmp_path / "b"))
    assert "There is no directory './my-nli'" in error
    assert modules == "[]"


def test_without_a_hub_one_line_names_what_is_missing(tmp_path: Path, silent: str) -> None:
    arguments = ("minicheck", "--out", str(tmp_path / "b"))
    error, modules = export(*arguments, HF_ENDPOINT=silent, HF_HUB_CACHE=str(tmp_path))
    assert "Not on this machine: lytang/MiniCheck-RoBERTa-Large, lytang/MiniCheck-DeBERTa-v3-Large. " in error
    assert f"The hub ({silent}) does not answer" in error
    assert modules == "[]"
    error, _ = export(*arguments, HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(tmp_path))
    assert "HF_HUB_OFFLINE is set" in error


def test_without_a_hub_its_cache_is_used(tmp_path: Path, silent: str) -> None:
    repository = tmp_path / "models--org--here"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40, encoding="utf-8")
    (repository / "snapshots" / ("0" * 40)).mkdir(parents=True)
    (repository / "snapshots" / ("0" * 40) / "config.json").write_text("{}", encoding="utf-8")
    code = (
        "import os\n"
        "from groundwire.export.options import RoleOptions\n"
        "from groundwire.export.sources import check_hub\n"
        "check_hub([RoleOptions('org/here')])\n"
        "from huggingface_hub import constants\n"
        "print(os.environ['HF_HUB_OFFLINE'], constants.HF_HUB_OFFLINE)\n"
    )
    environment = {"HF_ENDPOINT": silent, "HF_HUB_CACHE": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    assert run.stdout == "1 True\n"


def test_a_hub_that_answers_is_left_to_the_download(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", hub)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    check_hub([RoleOptions("org/never-downloaded")])
    assert constants.HF_HUB_OFFLINE is False


def test_directories_need_no_hub(tmp_path: Path, silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", silent)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    check_hub([RoleOptions(str(tmp_path))])
    assert constants.HF_HUB_OFFLINE is False


@pytest.mark.parametrize("source", ["org/name", "gpt2", "cross-encoder/nli-deberta-v3-base", "a_b/c.d-e"])
def test_hub_ids(source: str) -> None:
    assert not is_local(source)


@pytest.mark.parametrize("source", ["./my-nli", "../x", "~/x", "/nope/x", "a/b/c", "org/", "a b", "C:\\x"])
def test_paths_that_do_not_exist(source: str) -> None:
    with pytest.raises(ExportError, match="There is no directory"):
        is_local(source)


def test_a_file_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ExportError, match=r"model\.safetensors' is a file"):
        is_local(str(tmp_path / "model.safetensors"))

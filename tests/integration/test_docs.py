"""README, documentation and examples do what they say, on the embedded bundles."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.engine import Engine
from groundwire.runtime.bundles.bundle import embedded
from groundwire.runtime.local import LocalRuntime

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SKIP = "# doc: skip"
"""First line of a Python block that needs what a fresh machine lacks; the reason is in parentheses after it."""
NEEDS_CHECKPOINTS = ("groundwire export", "paper-q2", "minicheck")
NEEDS_GENERATOR = ("groundwire generate ", '"generator"')
"""What only runs in a checkout that has the embedded generator."""
NEEDS_DATASETS = {DOCS / "reproduce.md"}
"""Pages whose commands read sets that are not part of the project."""
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
COMPARED = {ROOT / "README.md"} | {
    DOCS / "guides" / name for name in ("agents.md", "settings.md", "streaming.md", "migration.md", "integrations.md")
}
"""Pages whose Python blocks print the block of text after them, where there is one."""
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SERVERS = ("service", "fastapi_dialogue")
"""Examples that would not end; others test them."""
PROSE = [
    *ROOT.glob("*.md"),
    *ROOT.glob("bundles/*/README.md"),
    ROOT / "examples" / "README.md",
    ROOT / "bench" / "README.md",
]

needs_bundles = pytest.mark.skipif(
    not {"compact", "nph"} <= set(embedded()), reason="this checkout does not have the embedded bundles"
)


class Block(NamedTuple):
    """Code of a page: a Python block, or one command."""

    language: str
    text: str


def needs_absent_generator(text: str) -> bool:
    return "generator" not in embedded() and any(word in text for word in NEEDS_GENERATOR)


def blocks(page: Path) -> list[Block]:
    """What of a page can run, in order."""
    runnable: list[Block] = []
    for language, text in re.findall(r"^```(python|sh)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.M):
        if language == "python" and not text.startswith(SKIP):
            runnable.append(Block(language, text))
        if language == "sh":
            commands = (line.partition(" # ")[0].strip() for line in text.splitlines())
            runnable.extend(
                Block(language, command)
                for command in commands
                if command.startswith("groundwire ") and not any(word in command for word in NEEDS_CHECKPOINTS)
            )
    return [block for block in runnable if not needs_absent_generator(block.text)]


PAGES = [
    page for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))) if page not in NEEDS_DATASETS and blocks(page)
]
passed: set[str] = set()
"""Commands that have run, with what they wrote still there: several pages and the help show the same ones."""


def run_command(text: str) -> None:
    """Run a command of a page or of the help, unless it has run; the help names the examples without their folder."""
    if (name := text.replace("examples/", "")) in passed:
        return
    result = CliRunner().invoke(app, shlex.split(text)[1:])
    assert result.exit_code == 0, f"{text}: {result.output} {result.exception}"
    if "runs/" in text or not re.search("--(out|sheet|evidence) ", text):
        passed.add(name)


@pytest.fixture(scope="module", autouse=True)
def shared_runtimes() -> Iterator[None]:
    """Load each bundle once for all pages, and keep it when an engine is closed."""
    load: Callable[..., LocalRuntime] = LocalRuntime.load
    loaded: dict[str, LocalRuntime] = {}

    def load_once(*arguments: Any, **settings: Any) -> LocalRuntime:
        key = repr((arguments, settings)).replace("'auto'", "'cpu'")
        return loaded.setdefault(key, loaded.get(key) or load(*arguments, **settings))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalRuntime, "load", staticmethod(load_once))
        for ending in ("interrupt", "close"):
            patch.setattr(LocalRuntime, ending, lambda runtime: None)
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where commands keep their scores: what one page has scored, the next one reads."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def folder(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a page."""
    for name in ("runs", "mine.run"):
        (kept / name).mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(kept / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@needs_bundles
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All blocks of a page, one after another in one directory; a Python block prints something."""
    (folder / "examples").symlink_to(ROOT / "examples")
    for language, text in blocks(page):
        if language == "sh":
            run_command(text)
        else:
            exec(compile(text, page.name, "exec"), {"__name__": "page"})
            assert capsys.readouterr().out.strip(), text


def list_help_examples() -> list[str]:
    """The commands in the help texts that need no file but the examples, and no model but the embedded ones.

    The help names files of the reader's own; ``examples/`` has such files of the same names.
    """
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    texts = [root.help or "", *(command.help or "" for command in root.commands.values())]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    commands = [re.split(r" [|>] ", line)[0] for line in lines if line.startswith("groundwire ")]
    files = {path.name for path in (ROOT / "examples").iterdir()}
    chosen = {command for command in commands if files.intersection(command.split()) or " explain " in command}
    return sorted(command for command in chosen if not needs_absent_generator(command))


@needs_bundles
def test_the_examples_of_the_help_run(folder: Path) -> None:
    for path in (ROOT / "examples").iterdir():
        (folder / path.name).symlink_to(path)
    examples = list_help_examples()
    assert len(examples) > 8
    for text in sorted(examples, key=lambda text: "mine.json" in text and "calibrate" not in text):
        run_command(text)


@needs_bundles
@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "index.md"], ids=lambda page: page.name)
def test_the_first_example_prints_what_the_page_shows(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, output = re.findall(r"```(?:python|text)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[:2]
    exec(compile(code, page.name, "exec"), {"__name__": "page"})
    assert capsys.readouterr().out == output


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.name)
def test_a_page_reads_as_plain_markdown(page: Path) -> None:
    """No template, admonition or definition list; no comment at the begin of a line, where it ends its paragraph."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"\{\{|^!!! |^:   |^<!-- begin: [^>]*-->.", text, re.MULTILINE)
    assert text.count("<!-- begin: ") == len(re.findall(r"<!-- begin: (?:(?!<!-- ).)*<!-- end -->", text, re.DOTALL))


@needs_bundles
@pytest.mark.parametrize("page", sorted(COMPARED), ids=lambda page: page.name)
def test_examples_print_what_their_page_shows(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = r"((?:(?!```).*\n)*)"
    pairs = re.findall(rf"^```python\n{lines}```\n\n```text\n{lines}```", page.read_text(encoding="utf-8"), re.M)
    assert pairs
    for code, output in pairs:
        if code.startswith(SKIP):
            continue
        exec(compile(code, page.name, "exec"), {"__name__": "page"})
        assert capsys.readouterr().out == output, code


@needs_bundles
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its cells run one after another; the output of cells with the tag ``varies`` depends on the models."""
    monkeypatch.chdir(ROOT)
    namespace = {"__name__": "notebook"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        code = "".join(cell["source"])
        exec(compile(code, path.name, "exec"), namespace)
        printed = capsys.readouterr().out
        shown = "".join(line for output in cell["outputs"] for line in output["text"])
        assert bool(printed) if "varies" in cell["metadata"].get("tags", ()) else printed == shown, code


@needs_bundles
@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem not in SERVERS], ids=lambda path: path.stem)
def test_an_example_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="example")["main"]()
    assert capsys.readouterr().out.strip()


@needs_bundles
def test_the_example_service_answers() -> None:
    make_server = runpy.run_path(str(ROOT / "examples" / "service.py"), run_name="example")["make_server"]
    with Engine.load("compact") as engine:
        server = make_server(engine, 0)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}"
            answers = [
                post(address, {"response": "Bees make honey.", "knowledge": "Honey is made by bees."}),
                post(address, {"response": "", "knowledge": "Honey is made by bees."}),
            ]
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
    assert [code for code, _ in answers] == [200, 400]
    assert answers[0][1]["label"] in {"consistent", "inconsistent", "unverifiable"}
    assert "response is empty" in answers[1][1]["error"]


def post(address: str, content: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The status and the decoded body of an answer."""
    request = urllib.request.Request(address, json.dumps(content).encode())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    """mkdocs checks the pages of docs/; these are outside it."""
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_decision_is_dated_complete_and_listed_once() -> None:
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (DOCS / "adr" / "index.md").read_text(encoding="utf-8"))
    decisions = sorted(path.name for path in (DOCS / "adr").glob("0*.md"))
    assert sorted(set(listed)) == decisions
    assert [int(name[:4]) for name in decisions] == list(range(1, len(decisions) + 1))
    for name in decisions:
        text = (DOCS / "adr" / name).read_text(encoding="utf-8")
        assert re.match(
            rf"# {int(name[:4])}\. \S.*\n\n"
            r"- Date: \d{4}-\d\d-\d\d\n- Status: (Accepted|Superseded by)",
            text,
        )
        assert re.findall(r"^## (.*)$", text, re.M) == ["Context", "Decision", "Consequences"], name


def test_every_metric_has_a_page() -> None:
    from groundwire.engine.metrics import METRICS

    index = (DOCS / "metrics" / "index.md").read_text(encoding="utf-8")
    assert [name for name in METRICS if f"`{name}`" not in index] == []

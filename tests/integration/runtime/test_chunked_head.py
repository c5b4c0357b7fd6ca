"""Language models whose head reads its table in chunks, against the same models in one graph."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import numpy as np
import onnx_ir as ir
import pytest
from onnxruntime import OrtValue

from groundwire.export import RoleOptions, export_role, store
from groundwire.export.passes import head, quantize
from groundwire.export.passes.chunked_head import split_head
from groundwire.export.store import RoleFiles, Title
from groundwire.runtime.bundles.bundle import MANIFEST, Bundle
from groundwire.runtime.bundles.manifest import Head, LanguageModelRole
from groundwire.runtime.calls import ScoreText, TextScored
from groundwire.runtime.errors import BundleError
from groundwire.runtime.models.language_model import LanguageModel
from groundwire.runtime.ort import chunked_head
from groundwire.runtime.ort.chunked_head import ChunkedHead, MappedTable, combine_parts
from groundwire.runtime.ort.session import DeviceProfile
from tests.support import models
from tests.support.heads import lone
from tests.support.processor import exact_products
from tests.support.roles import make_role
from tests.support.zoo import PROFILE, Zoo

FAMILIES = ("bloom", "opt")
"""One shares its table with the look-up, keeps keys and values and has three blocks; one reads all at once."""
PREFIX = "Document: The Amazon river flows through Brazil, Peru and Colombia.\n\n"
CALLS = [
    ScoreText((PREFIX, "Have you been there?.\n"), "Agent: Yes, I was in Peru."),
    ScoreText((PREFIX,), "a"),
    ScoreText((), "Agent: Red hair is common in Scotland and Ireland."),
    ScoreText(("Bob Ross",), " hosted the show"),
]


@pytest.fixture(scope="module")
def bundles(zoo: Zoo, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    """The int8 bundles of the families, exported as if their tables were large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(head, "SHARED", 1000)
        return {
            family: export_role(
                "lm",
                RoleOptions(str(zoo.checkpoint("lm", family)), precision="int8", allow_unverified=True),
                tmp_path_factory.mktemp(family),
            )
            for family in FAMILIES
        }


@pytest.fixture(autouse=True)
def two_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of two blocks of BLOOM, so that the last one is narrower."""
    monkeypatch.setattr(chunked_head, "CHUNK_BYTES", 2 * 2048 * 48 + 1)


def record(bundle: Bundle) -> tuple[LanguageModelRole, Head]:
    role = bundle.manifest.roles["lm"]
    assert isinstance(role, LanguageModelRole)
    assert isinstance(role.head, Head)
    return role, role.head


def load(bundle: Bundle, profile: DeviceProfile = PROFILE) -> LanguageModel:
    return LanguageModel.load(bundle, record(bundle)[0], profile)


def load_table(bundle: Bundle) -> MappedTable:
    return chunked_head.map_table(bundle, record(bundle)[1])


def run(model: LanguageModel, calls: list[ScoreText]) -> list[TextScored]:
    results = model.run(calls, 8)
    assert all(isinstance(result, TextScored) for result in results), results
    return results  # type: ignore[return-value]


@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_those_of_one_graph(zoo: Zoo, bundles: dict[str, Bundle], family: str) -> None:
    whole = zoo.bundle("lm", family, "int8").manifest.roles["lm"]
    assert isinstance(whole, LanguageModelRole)
    assert not isinstance(whole.head, Head)
    expected = run(zoo.language_model(family, "int8"), CALLS)
    for scored, want in zip(run(load(bundles[family]), CALLS), expected, strict=True):
        np.testing.assert_allclose(scored.log_probs, want.log_probs, atol=1e-5)
        assert (scored.offsets, scored.first) == (want.offsets, want.first)


def test_bloom_has_several_chunks(bundles: dict[str, Bundle]) -> None:
    """Its graph does not hold the table: the looked-up rows are an input."""
    role, made = record(bundles["bloom"])
    assert made.shape == (3, 2048, 48)
    graph = ir.load(bundles["bloom"].file(role.graph)).graph
    assert "words" in [value.name for value in graph.inputs]
    assert not [value for value in graph.initializers.values() if value.const_value.nbytes >= 3 * 2048 * 48]


def test_looked_up_rows_are_those_of_their_tokens(bundles: dict[str, Bundle]) -> None:
    chunked = ChunkedHead.load(bundles["bloom"], record(bundles["bloom"])[1], PROFILE)
    ids = np.random.default_rng(0).integers(0, 3 * 2048, (2, 3, 5))
    ids[0, 0] = 0, 2047, 2048, 4096, 3 * 2048 - 1
    assert np.array_equal(chunked.look_up_rows(ids), load_table(bundles["bloom"]).array.reshape(-1, 48)[ids])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_values_do_not_depend_on_the_batch(bundles: dict[str, Bundle], family: str, threads: int) -> None:
    model = load(bundles[family], DeviceProfile.of("cpu", threads))
    alone = [run(model, [call])[0] for call in CALLS]
    lines = list(models.sentences())[:12]
    others = [ScoreText((PREFIX,), f"Agent: {line[:20]}.") for line in lines]
    results = run(model, [*others, *CALLS, *(ScoreText((line,), "Agent: No.") for line in lines)])
    assert results[len(others) : len(others) + len(CALLS)] == alone


def test_a_prefix_does_not_read_the_table(bundles: dict[str, Bundle], monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    real = ChunkedHead.log_probs

    def count(self: ChunkedHead, hidden: object, targets: np.ndarray) -> np.ndarray:
        counts.append(len(targets))
        return real(self, hidden, targets)  # type: ignore[arg-type]

    monkeypatch.setattr(ChunkedHead, "log_probs", count)
    (scored,) = run(load(bundles["bloom"]), CALLS[:1])
    assert counts == [-(-len(scored.log_probs) // 8) * 8]


def resident(table: MappedTable) -> int:
    """Bytes of the table's mapping that are in memory."""
    address = table.array.ctypes.data
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        start, dash, end = line.split(" ", 1)[0].partition("-")
        if dash:
            inside = int(start, 16) <= address < int(end, 16)
        elif inside and line.startswith("Rss:"):
            return 1024 * int(line.split()[1])
    raise AssertionError("the table is not mapped")


@exact_products
@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="resident pages are read from /proc")
def test_pages_are_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of 16 MB in chunks of 2 MB: reading a page may map any number of its neighbours."""
    monkeypatch.setattr(head, "SHARED", 1000)
    monkeypatch.setattr(chunked_head, "CHUNK_BYTES", 1 << 21)
    given = lone(512 * 2048, bias=False)
    given = given._replace(states=given.states[:8], targets=given.targets[:8])
    model = given.graph(streamed=True)
    model.graph.inputs[0].name = "states"
    quantize(model)
    graph = split_head(model)
    assert graph is not None
    bundle = store.write(tmp_path / "b", Title("t"), {"lm": head_alone(graph)})
    chunked = ChunkedHead.load(bundle, record(bundle)[1], PROFILE)
    table = chunked._table
    assert table.array.max() > 0
    assert resident(table) >= table.array.nbytes == 1 << 24
    table.release_pages(slice(0, len(table.array)))
    seen = []
    release_pages = MappedTable.release_pages
    monkeypatch.setattr(
        MappedTable, "release_pages", lambda self, blocks: (seen.append(resident(self)), release_pages(self, blocks))[1]
    )
    log_probs = chunked.log_probs(OrtValue.ortvalue_from_numpy(given.states), given.targets)
    np.testing.assert_allclose(log_probs, given.expected(), atol=0.3)
    assert len(seen) == 8
    assert (1 << 21) <= max(seen) <= (1 << 23)
    assert resident(table) <= 1 << 22


def head_alone(graph: ir.Model) -> RoleFiles:
    """The files of a language model that consists of its head alone."""
    name = "lm.head.onnx"
    head_record = store.describe_head(name, graph)
    made = make_role(LanguageModelRole, "lm.tokenizer.json", precision="int8", graph=name, head=head_record)
    return RoleFiles(made, {name: graph}, "{}")


@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_the_same_where_pages_cannot_be_released(
    bundles: dict[str, Bundle], family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(load(bundles[family]), CALLS)
    monkeypatch.setattr(MappedTable, "release_pages", lambda self, blocks: None)
    assert run(load(bundles[family]), CALLS) == expected


def test_the_offset_of_the_table_moves_with_the_weights(bundles: dict[str, Bundle], zoo: Zoo, tmp_path: Path) -> None:
    """A role whose weights are stored before the table moves it; the bundle's model stays the same."""
    first = bundles["bloom"]
    role = record(first)[0]
    graphs = {name: ir.load(first.file(name)) for name in role.graph_files}
    assert set(graphs) == {"lm.onnx", "lm.head.onnx"}
    out = tmp_path / "b"
    store.write(out, Title("t"), {"lm": RoleFiles(role, graphs, first.file(role.tokenizer).read_text())})
    other = zoo.bundle("nli", "bert")
    text = other.file("nli.tokenizer.json").read_text()
    files = RoleFiles(other.manifest.roles["nli"], {"nli.onnx": ir.load(other.file("nli.onnx"))}, text)
    # Graphs are written in the order of their names, and this one takes the role's.
    grown = store.write(out, Title("t"), {"detector.first": files})
    assert record(grown)[1].offset > record(first)[1].offset
    assert np.array_equal(load_table(grown).array, load_table(first).array)
    assert run(load(grown), CALLS) == run(load(first), CALLS)
    size = sum((bundle.directory / store.WEIGHTS).stat().st_size for bundle in (first, other))
    assert (grown.directory / store.WEIGHTS).stat().st_size <= size + store.ALIGNMENT


@pytest.mark.parametrize(
    "change",
    [
        {"offset": -64},
        {"offset": 1 << 40},
        {"shape": (1 << 20, 2048, 48)},
        {"shape": (0, 2048, 48)},
        {"shape": (-3, -2048, 48)},
        {"file": "lm.tokenizer.json"},
        {"file": "other.bin"},
        {"file": "../weights.bin"},
        {"graph": "other.onnx"},
    ],
)
def test_invalid_heads_are_refused(bundles: dict[str, Bundle], change: dict[str, object]) -> None:
    bundle = bundles["bloom"]
    role, kept = record(bundle)
    broken = msgspec.structs.replace(role, head=msgspec.structs.replace(kept, **change))
    with pytest.raises(BundleError, match=r"manifest|does not list"):
        LanguageModel.load(bundle, broken, PROFILE)


def test_manifests_without_a_head_do_not_have_the_field(zoo: Zoo) -> None:
    """Their digest counts every field that is written."""
    bundle = zoo.bundle("lm", "bloom")
    assert "head" not in msgspec.json.decode((bundle.directory / MANIFEST).read_bytes())["roles"]["lm"]
    assert b'"head"' not in msgspec.json.encode(bundle.manifest.roles["lm"])


def test_combining_parts_is_exact_and_does_not_depend_on_the_number_of_positions() -> None:
    rng = np.random.default_rng(0)
    parts = (rng.normal(size=(131, 2, 24)) * 30).astype(np.float32)
    parts[1:, 1, 3] = -np.inf
    together = combine_parts(parts)
    exact = parts[:, 0].astype(np.float64)
    exact = parts[:, 1].max(axis=0) - exact.max(axis=0) - np.log(np.exp(exact - exact.max(axis=0)).sum(axis=0))
    np.testing.assert_allclose(together, exact, rtol=1e-6)
    for count in (1, 2, 7):
        assert np.array_equal(combine_parts(np.ascontiguousarray(parts[..., :count])), together[:count])


def test_numbers_that_are_not_finite_stay_so() -> None:
    parts = np.zeros((3, 2, 8), np.float32)
    parts[1, 0, 0], parts[:, :, 1], parts[2, 0, 2] = np.inf, np.nan, -np.inf
    assert np.isfinite(combine_parts(parts)).tolist() == [False, False, *[True] * 6]


@pytest.mark.skipif(sys.platform == "win32", reason="mmap has no madvise there")
def test_released_pages_are_read_again(bundles: dict[str, Bundle]) -> None:
    table = load_table(bundles["bloom"])
    before = table.array.copy()
    table.release_pages(slice(1, 3))
    assert np.array_equal(table.array, before)

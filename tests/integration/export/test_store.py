"""Bundles on disk: shared weights, adding roles, and nothing half-written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import onnx
import onnx_ir as ir
import pytest

from groundwire.export import store
from groundwire.export.store import RoleFiles, Title, write
from groundwire.runtime.bundles.bundle import MANIFEST, Bundle
from groundwire.runtime.bundles.manifest import ExtractiveQARole, SpansRole
from groundwire.runtime.errors import ExportError
from tests.support.evaluation import CALIBRATION
from tests.support.roles import make_role

TABLE = np.random.default_rng(0).normal(size=(300, 64)).astype(np.float32)
"""76,800 bytes: large enough to leave its graph."""


def graph(*tables: np.ndarray) -> ir.Model:
    """Looks its input up in every table and adds the rows."""
    nodes = [onnx.helper.make_node("Gather", [f"t{i}", "ids"], [f"r{i}"]) for i in range(len(tables))]
    nodes.append(onnx.helper.make_node("Sum", [f"r{i}" for i in range(len(tables))], ["y"]))
    proto = onnx.helper.make_graph(
        nodes,
        "test",
        [onnx.helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, ["n"])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 64])],
        [onnx.numpy_helper.from_array(table, f"t{i}") for i, table in enumerate(tables)],
    )
    return ir.from_proto(onnx.helper.make_model(proto, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9))


def role(name: str, *tables: np.ndarray, tokenizer: str = "{}") -> RoleFiles:
    record = make_role(ExtractiveQARole, f"{name}.tokenizer.json", graph=f"{name}.onnx")
    return RoleFiles(record, {record.graph: graph(*tables)}, tokenizer)


def run(bundle: Bundle, name: str) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(bundle.directory / f"{name}.onnx", providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(None, {"ids": np.arange(3)})[0]
    return result


def state(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_equal_weights_are_stored_once(tmp_path: Path) -> None:
    other = TABLE + 1
    bundle = write(tmp_path / "b", Title("t"), {"qa": role("qa", TABLE, other), "qa2": role("qa2", TABLE.copy())})
    assert (bundle.directory / store.WEIGHTS).stat().st_size == 2 * TABLE.nbytes
    np.testing.assert_array_equal(run(bundle, "qa"), TABLE[:3] + other[:3])
    np.testing.assert_array_equal(run(bundle, "qa2"), TABLE[:3])
    bundle.verify()


def test_equal_bytes_are_stored_once_in_whatever_shape(tmp_path: Path) -> None:
    square = TABLE.reshape(150, 128)
    graphs = {"a.onnx": graph(TABLE)}
    graphs["a.onnx"].graph.initializers["t0"].const_value = ir.tensor(TABLE)
    extra = ir.Value(name="square")
    extra.const_value = ir.tensor(square)
    graphs["a.onnx"].graph.register_initializer(extra)
    bundle = write(tmp_path / "b", Title("t"), {"qa": RoleFiles(role("qa").record, graphs, role("qa").tokenizer)})
    assert (bundle.directory / store.WEIGHTS).stat().st_size == TABLE.nbytes
    initializers = ir.load(bundle.file("a.onnx")).graph.initializers
    for name, array in (("t0", TABLE), ("square", square)):
        held = initializers[name].const_value
        assert held is not None
        assert np.array_equal(held.numpy(), array)


def test_weights_are_aligned_and_small_ones_stay_inside(tmp_path: Path) -> None:
    odd = TABLE.reshape(-1)[: 17 * 1024 + 1].reshape(-1, 1)
    bundle = write(
        tmp_path / "b", Title("t"), {"qa": role("qa", TABLE[:4]), "qa2": role("qa2", np.tile(odd, 64), TABLE)}
    )
    for name, external in (("qa", 0), ("qa2", 2)):
        proto = onnx.load(bundle.directory / f"{name}.onnx", load_external_data=False)
        entries = [{e.key: e.value for e in t.external_data} for t in proto.graph.initializer if t.external_data]
        assert len(entries) == external
        assert all(int(entry["offset"]) % store.ALIGNMENT == 0 for entry in entries)
        assert all(entry["location"] == store.WEIGHTS for entry in entries)


def test_a_bundle_of_small_graphs_has_no_weights_file(tmp_path: Path) -> None:
    bundle = write(tmp_path / "b", Title("t"), {"qa": role("qa", TABLE[:4])})
    assert set(bundle.manifest.files) == {"qa.onnx", "qa.tokenizer.json"}


def test_equal_tokenizers_are_stored_once_and_outlive_the_role_they_are_named_after(tmp_path: Path) -> None:
    def read_tokenizers(bundle: Bundle) -> dict[str, str]:
        records = {
            name: record for name, record in bundle.manifest.roles.items() if isinstance(record, ExtractiveQARole)
        }
        return {name: bundle.file(record.tokenizer).read_text() for name, record in records.items()}

    out = tmp_path / "b"
    first = write(out, Title("t"), {"qa": role("qa"), "qa2": role("qa2"), "qa3": role("qa3", tokenizer="[]")})
    assert {name for name in first.manifest.files if "tokenizer" in name} == {"qa.tokenizer.json", "qa3.tokenizer.json"}
    assert read_tokenizers(first) == {"qa": "{}", "qa2": "{}", "qa3": "[]"}
    second = write(out, Title("t"), {"qa": role("qa", tokenizer="[1]")}, force=True)
    assert read_tokenizers(second) == {"qa": "[1]", "qa2": "{}", "qa3": "[]"}
    second.verify()


def test_adding_and_replacing_roles(tmp_path: Path) -> None:
    out = tmp_path / "b"
    write(out, Title("t", license="MIT"), {"qa": role("qa", TABLE)})
    (out / "README.md").write_text("mine")
    second = write(out, store.title_of(Bundle.open(out).manifest), {"qa2": role("qa2", TABLE, TABLE * 2)})
    assert set(second.manifest.roles) == {"qa", "qa2"}
    assert second.manifest.license == "MIT"
    assert "README.md" not in second.manifest.files
    assert (out / "README.md").read_text() == "mine"
    assert (out / store.WEIGHTS).stat().st_size == 2 * TABLE.nbytes
    np.testing.assert_array_equal(run(second, "qa"), TABLE[:3])
    np.testing.assert_array_equal(run(second, "qa2"), TABLE[:3] * 3)
    third = write(out, Title("t"), {"qa2": role("qa2", TABLE * 5)}, force=True)
    np.testing.assert_array_equal(run(third, "qa2"), TABLE[:3] * 5)
    assert (out / store.WEIGHTS).stat().st_size == 2 * TABLE.nbytes, "unused weights are dropped"
    third.verify()


def test_spans_are_copied_and_kept(tmp_path: Path) -> None:
    tree = tmp_path / "pipeline"
    (tree / "vocab").mkdir(parents=True)
    (tree / "config.cfg").write_text("[nlp]")
    (tree / "vocab" / "strings.json").write_text("[]")
    out = tmp_path / "b"
    write(out, Title("t"), {"spans": RoleFiles(SpansRole(source="s", path="spans"), tree=tree)})
    bundle = write(out, Title("t"), {"qa": role("qa", TABLE)})
    assert {"spans/config.cfg", "spans/vocab/strings.json"} < set(bundle.manifest.files)
    assert (bundle.file("spans") / "config.cfg").read_text() == "[nlp]"


@pytest.mark.parametrize("existing", [False, True])
def test_a_failure_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: bool) -> None:
    out = tmp_path / "b"
    if existing:
        write(out, Title("t"), {"qa": role("qa", TABLE)})
    before = state(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.ir, "save", full)
    with pytest.raises(OSError, match="No space left"):
        write(out, Title("t"), {"qa2": role("qa2", TABLE)})
    assert state(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == (["b"] if existing else [])


def test_a_failing_swap_puts_the_old_bundle_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "b"
    write(out, Title("t"), {"qa": role("qa", TABLE)})
    before = state(tmp_path)
    replace: Callable[[Path, Path], Path] = Path.replace

    def refuse(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(16, "Device or resource busy")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="busy"):
        write(out, Title("t"), {"qa2": role("qa2", TABLE)})
    assert state(tmp_path) == before


def test_roles_are_not_overwritten_without_force(tmp_path: Path) -> None:
    out = tmp_path / "b"
    write(out, Title("t"), {"qa": role("qa", TABLE)})
    before = state(out)
    with pytest.raises(ExportError, match=r"has the role qa already; pass --force"):
        write(out, Title("t"), {"qa": role("qa", TABLE * 2)})
    assert state(out) == before


def test_a_directory_that_is_no_bundle_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ExportError, match="exists and is not a bundle"):
        write(tmp_path, Title("t"), {"qa": role("qa", TABLE)}, force=True)
    file = tmp_path / "thesis.txt"
    with pytest.raises(ExportError, match="exists and is not a bundle"):
        write(file, Title("t"), {"qa": role("qa", TABLE)}, force=True)
    assert file.read_text() == "years of work"


def test_an_empty_directory_may_become_a_bundle(tmp_path: Path) -> None:
    assert set(write(tmp_path, Title("t"), {"qa": role("qa", TABLE)}).manifest.roles) == {"qa"}


def test_a_calibration_stays_until_a_model_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "b"
    first = write(out, Title("t"), {"qa": role("qa")})
    manifest = msgspec.structs.replace(first.manifest, calibration=CALIBRATION)
    (out / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    assert write(out, Title("t"), {"qa2": role("qa2")}).manifest.calibration == CALIBRATION
    assert write(out, Title("t"), {"qa": role("qa", TABLE)}, force=True).manifest.calibration is None

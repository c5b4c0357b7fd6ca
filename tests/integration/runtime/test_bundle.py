"""Damaged, foreign and hostile bundles, and missing devices: each is refused with an error that says why."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.engine import Options
from groundwire.engine.core.signature import signature
from groundwire.runtime.bundles.bundle import MANIFEST, MAX_MANIFEST_BYTES, Bundle, sha256
from groundwire.runtime.bundles.decode import SCHEMA
from groundwire.runtime.bundles.manifest import SpansRole
from groundwire.runtime.calls import Answer, Answered, Classify, role_of
from groundwire.runtime.errors import BundleError, DeviceError, EngineClosed, InvalidRequest, ModelError
from groundwire.runtime.local import LocalRuntime, identify
from groundwire.runtime.ort import device as device_module
from groundwire.runtime.ort.device import PROVIDERS, Device, DeviceKind, choose_device
from groundwire.runtime.ort.processor import int8_kernel
from groundwire.runtime.ort.session import SMALL_BUNDLE_BYTES, DeviceProfile, Session
from groundwire.runtime.resources import usable_cores

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def bundle(tiny_bundle: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return shutil.copytree(tiny_bundle, tmp_path / "bundle")


@pytest.fixture(scope="module")
def intact(tiny_bundle: Path) -> LocalRuntime:
    return load(tiny_bundle)


def edit(bundle: Path, change: Change) -> None:
    manifest = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    change(manifest)
    (bundle / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def load(bundle: str | Path, **settings: Any) -> LocalRuntime:
    return LocalRuntime.load(bundle, **{"device": "cpu", "threads": 1, **settings})


def garble(path: Path, *, at: int = 0, count: int | None = None) -> None:
    """Overwrite bytes and keep the size, as a failing disk does."""
    data = bytearray(path.read_bytes())
    end = len(data) if count is None else at + count
    data[at:end] = bytes(255 - byte for byte in data[at:end])
    path.write_bytes(data)


def test_an_intact_bundle_opens_verifies_and_runs(bundle: Path) -> None:
    opened = Bundle.open(bundle)
    opened.verify()
    assert set(opened.manifest.roles) == {"qg", "qa", "nli", "spans"}
    runtime = load(bundle)
    assert runtime.roles == {"qg", "qa", "nli", "spans"}
    (answer,) = runtime.run("qa", [Answer("who?", ("Bob Ross was a painter.",))], 8)
    assert isinstance(answer, Answered)
    assert (runtime.identity.bundle, runtime.identity.precision, runtime.identity.device) == ("tiny", "fp32", "cpu")
    assert runtime.identity.digest == opened.manifest.digest()


def test_the_digest_follows_files_and_roles_but_not_the_name(bundle: Path) -> None:
    digest = Bundle.open(bundle).manifest.digest()
    edit(bundle, lambda m: m.update(name="other", version="2"))
    assert Bundle.open(bundle).manifest.digest() == digest
    edit(bundle, lambda m: m["roles"]["qa"].update(stride=7))
    other = Bundle.open(bundle).manifest.digest()
    assert other != digest
    edit(bundle, lambda m: m["files"]["qa.onnx"].update(sha256="0" * 64))
    assert Bundle.open(bundle).manifest.digest() not in (digest, other)


# Not a bundle


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="No bundle 'nowhere': it is neither a directory nor an embedded bundle"):
        load("nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match="neither a directory"):
        load(tmp_path / "file")


def test_a_directory_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"is not a bundle: bundle.json cannot be read \(No such file"):
        load(tmp_path)


# Damaged manifests


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"schema": 3}',
        b'{"schema": "1"}',
        b"\xff\xfe{}",
        b'{"schema": 1, "name": "a"',
        b"{" * 99,
    ],
    ids=str,
)
def test_a_damaged_manifest_is_refused(bundle: Path, content: bytes) -> None:
    (bundle / MANIFEST).write_bytes(content)
    with pytest.raises(BundleError, match=r"bundle\.json is damaged: "):
        load(bundle)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda m: m.update(author="me"), "unknown field `author`"),
        (lambda m: m["roles"]["qa"].update(script="x.py"), r"unknown field `script` - at `\$.roles"),
        (lambda m: m["roles"]["qa"].update(kind="python"), "Invalid value 'python'"),
        (
            lambda m: m["roles"]["qa"].update(max_tokens="many"),
            r"Expected `int`, got `str` - at `\$.roles\[...\].max_tokens",
        ),
        (lambda m: m["roles"]["qa"].update(precision="int2"), "Invalid enum value 'int2'"),
        (lambda m: m["roles"]["nli"].pop("labels"), "missing required field `labels`"),
        (lambda m: m["files"]["qa.onnx"].pop("sha256"), "missing required field `sha256`"),
        (lambda m: m.pop("files"), "missing required field `files`"),
    ],
)
def test_a_field_that_does_not_fit_is_named(bundle: Path, change: Change, named: str) -> None:
    edit(bundle, change)
    with pytest.raises(BundleError, match=named):
        load(bundle)


@pytest.mark.parametrize("schema", [SCHEMA - 1, SCHEMA + 1])
def test_another_schema_is_refused_naming_both_versions(bundle: Path, schema: int) -> None:
    # Another schema may hold anything: the version is read before the rest is decoded.
    edit(bundle, lambda m: (m.update(schema=schema, roles=[], news=1), m.pop("files")))
    with pytest.raises(BundleError, match=f"has schema {schema}; this version of Groundwire reads {SCHEMA}"):
        load(bundle)


# Damaged files


@pytest.mark.parametrize("name", ["qa.onnx", "qg.decoder.onnx", "nli.tokenizer.json", "spans/config.cfg"])
def test_a_missing_file_is_named(bundle: Path, name: str) -> None:
    (bundle / name).unlink()
    with pytest.raises(BundleError, match=rf"{name} is missing, although the manifest lists it"):
        load(bundle)


@pytest.mark.parametrize("size", [0, 1000, None], ids=["empty", "truncated", "one byte too long"])
@pytest.mark.parametrize("name", ["qa.onnx", "qg.tokenizer.json"])
def test_a_file_of_another_size_is_named_with_both_sizes(bundle: Path, name: str, size: int | None) -> None:
    data = (bundle / name).read_bytes()
    changed = data + b"\n" if size is None else data[:size]
    (bundle / name).write_bytes(changed)
    with pytest.raises(BundleError, match=rf"{name} has {len(changed)} bytes; the manifest says {len(data)}"):
        load(bundle)


def test_every_listed_file_is_verified_by_its_digest(bundle: Path) -> None:
    for name, entry in Bundle.open(bundle).manifest.files.items():
        kept = (bundle / name).read_bytes()
        garble(bundle / name, at=len(kept) // 2, count=1)
        opened = Bundle.open(bundle)  # sizes alone say nothing
        with pytest.raises(BundleError) as caught:
            opened.verify()
        message = str(caught.value)
        assert str(bundle / name) in message
        assert entry.sha256[:16] in message
        assert sha256(bundle / name)[:16] in message
        (bundle / name).write_bytes(kept)
    Bundle.open(bundle).verify()


@pytest.mark.parametrize("name", ["weights.bin", "qa.onnx", "nli.tokenizer.json", "spans/ner/model"])
def test_loading_verifies_by_default(bundle: Path, name: str) -> None:
    """Zeroed weights give a perfect score: an interrupted copy leaves them, at the right size."""
    digest = load(bundle).identity.digest
    (bundle / name).write_bytes(bytes((bundle / name).stat().st_size))
    with pytest.raises(BundleError, match=f"{name} has SHA-256"):
        load(bundle)
    if name == "weights.bin":
        identity = load(bundle, verify=False).identity
        assert (identity.digest, identity.verified) == (digest, False)
        assert f"bundle:tiny@{digest}(unverified)|" in signature(identity, ("q2",), Options())


@pytest.mark.parametrize(
    ("precision", "device", "kernel"),
    [
        ("fp32", "cpu", ""),
        ("int8", "cpu", int8_kernel()),
        ("mixed", "cpu", int8_kernel()),
        ("fp16", "cuda", f"onnxruntime-{ort.__version__}"),
    ],
)
def test_the_signature_names_what_computes(bundle: Path, precision: str, device: DeviceKind, kernel: str) -> None:
    edit(bundle, lambda m: m["roles"]["qa"].update(precision=precision))
    identity = identify([Bundle.open(bundle)], Device(device))
    version, _, _ = identity.kernel.partition("/")[0].partition("+")  # the rest is the commit that it was built of
    assert version == kernel.partition("/")[0]
    kernel = identity.kernel  # a GPU adds its compute capability
    expected = f"|device:{device}/{kernel}|" if kernel else f"|device:{device}|"
    assert expected in signature(identity, ("q2",), Options())


@pytest.mark.parametrize("name", ["more.bin", "spans/ner/more", ".hidden", "spans/README.md", "pickle.pkl"])
def test_a_file_that_is_not_listed_is_refused(bundle: Path, name: str) -> None:
    (bundle / name).write_bytes(b"x")
    with pytest.raises(BundleError, match=f"{name} is there, but the manifest does not list it"):
        load(bundle)


@pytest.mark.parametrize("name", ["README.md", "LICENSE", "LICENSE.cc-by-sa-4.0", "NOTICE.txt", "report.json"])
def test_documents_need_no_entry(bundle: Path, name: str) -> None:
    (bundle / name).write_bytes(b"x")
    Bundle.open(bundle).verify()


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "other.bin", "./weights.bin"])
def test_weights_in_a_file_that_is_not_listed_are_refused(bundle: Path, location: str) -> None:
    model = onnx.load(bundle / "qa.onnx", load_external_data=False)
    tensor = next(tensor for tensor in model.graph.initializer if tensor.external_data)
    next(entry for entry in tensor.external_data if entry.key == "location").value = location
    onnx.save(model, bundle / "qa.onnx")
    entry = {"bytes": (bundle / "qa.onnx").stat().st_size, "sha256": sha256(bundle / "qa.onnx")}
    edit(bundle, lambda m: m["files"].update({"qa.onnx": entry}))
    with pytest.raises(BundleError, match=rf"keeps weights in '{re.escape(location)}', which the manifest does not"):
        load(bundle)


@pytest.mark.parametrize("target", ["outside", "missing", "loop", "inside"])
def test_a_link_does_not_leave_the_bundle(bundle: Path, target: str) -> None:
    path = bundle / "qa.onnx"
    moved = bundle.parent / "qa.onnx" if target == "outside" else bundle / "README.onnx"
    shutil.move(path, moved)
    path.symlink_to({"missing": bundle / "nothing", "loop": path}.get(target, moved))
    if target == "inside":
        load(bundle)
        return
    with pytest.raises(BundleError, match="leaves the bundle" if target == "outside" else "is missing"):
        load(bundle)


def test_a_manifest_that_is_too_large_or_no_file_is_not_read(bundle: Path) -> None:
    (bundle / MANIFEST).write_bytes(b" " * (MAX_MANIFEST_BYTES + 1))
    with pytest.raises(BundleError, match="so it is no manifest"):
        load(bundle)
    (bundle / MANIFEST).unlink()
    os.mkfifo(bundle / MANIFEST)
    with pytest.raises(BundleError, match="is damaged"):
        load(bundle)


@settings(max_examples=40)
@given(data=st.data())
def test_a_flipped_byte_of_the_manifest_is_an_error_or_another_digest(
    tiny_bundle: Path, intact: LocalRuntime, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Or it is in a text that decides nothing, such as the licence."""
    original = (tiny_bundle / MANIFEST).read_bytes()
    raw = bytearray(original)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    copy = link_copy(tiny_bundle, tmp_path_factory, bytes(raw))
    assert_same_or_typed_error(intact, copy)


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8), st.just([]), st.just({})
)


@settings(max_examples=30)
@given(data=st.data())
def test_a_field_of_the_manifest_with_any_value_is_an_error_or_another_digest(
    tiny_bundle: Path, intact: LocalRuntime, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    manifest = json.loads((tiny_bundle / MANIFEST).read_bytes())
    inner = manifest
    while True:
        key = data.draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        if not (isinstance(inner[key], dict | list) and inner[key]) or data.draw(st.integers(0, 4)) == 0:
            break
        inner = inner[key]
    inner[key] = data.draw(LEAVES)
    copy = link_copy(tiny_bundle, tmp_path_factory, json.dumps(manifest).encode())
    assert_same_or_typed_error(intact, copy)


def link_copy(bundle: Path, factory: pytest.TempPathFactory, manifest: bytes) -> Path:
    """The bundle's files, hard-linked, with another manifest."""
    copy = factory.mktemp("mutated") / "bundle"
    shutil.copytree(bundle, copy, copy_function=os.link)
    (copy / MANIFEST).unlink()
    (copy / MANIFEST).write_bytes(manifest)
    return copy


def assert_same_or_typed_error(expected: LocalRuntime, mutated: Path) -> None:
    """Load it and answer one call per role; only a bundle with another digest may answer otherwise."""
    try:
        actual = load(mutated)
    except (BundleError, DeviceError):
        return
    finally:
        shutil.rmtree(mutated)
    for call in expected.warm_calls():
        try:
            (outcome,) = actual.run(role_of(call), [call], 8)
        except ModelError:  # sizes that are not the graph's
            assert actual.identity.digest != expected.identity.digest
            continue
        if actual.identity.digest == expected.identity.digest:
            assert outcome == expected.run(role_of(call), [call], 8)[0]


@pytest.mark.parametrize("name", ["qa.onnx", "nli.onnx", "qg.encoder.onnx", "qg.decoder.onnx"])
def test_a_damaged_graph_is_refused(bundle: Path, name: str) -> None:
    garble(bundle / name)
    with pytest.raises(BundleError, match=rf"{name} cannot be loaded: (.|\n)*groundwire bundle verify"):
        load(bundle, verify=False)


@pytest.mark.parametrize("damage", [garble, lambda path: path.write_bytes(b"[]".ljust(path.stat().st_size))])
def test_a_damaged_tokenizer_is_refused(bundle: Path, damage: Callable[[Path], object]) -> None:
    damage(bundle / "nli.tokenizer.json")
    with pytest.raises(BundleError, match=r"nli\.tokenizer\.json is not a tokenizer file"):
        load(bundle, verify=False)


def test_a_damaged_pipeline_is_refused(bundle: Path) -> None:
    garble(bundle / "spans" / "config.cfg")
    with pytest.raises(BundleError, match=r"config\.cfg is not the configuration of a spaCy pipeline"):
        load(bundle, verify=False)


# Paths


@pytest.mark.parametrize(
    "name",
    ["../secret.onnx", "spans/../../secret.onnx", "..", "spans/..", "", ".", "/etc/passwd", "other.onnx", "span"],
)
def test_a_role_uses_no_file_that_is_not_listed(bundle: Path, name: str) -> None:
    shutil.copy(bundle / "qa.onnx", bundle.parent / "secret.onnx")
    shutil.copy(bundle / "qa.onnx", bundle / "other.onnx")
    edit(bundle, lambda m: m["roles"]["qa"].update(graph=name))
    with pytest.raises(BundleError, match=r"does not list the file .* that one of its roles uses"):
        load(bundle, verify=False)


@pytest.mark.parametrize("name", ["../secret.onnx", "spans/../../secret.onnx", "{absolute}"])
def test_listing_a_path_outside_does_not_open_it(bundle: Path, name: str) -> None:
    outside = bundle.parent / "secret.onnx"
    shutil.copy(bundle / "qa.onnx", outside)
    name = name.format(absolute=outside)
    entry = {"bytes": outside.stat().st_size, "sha256": sha256(outside)}
    edit(bundle, lambda m: (m["files"].update({name: entry}), m["roles"]["qa"].update(graph=name)))
    with pytest.raises(BundleError, match=r"secret\.onnx"):
        Bundle.open(bundle)


def test_a_listed_directory_is_no_file(bundle: Path) -> None:
    entry = {"bytes": (bundle / "spans").stat().st_size, "sha256": "0" * 64}
    edit(bundle, lambda m: m["files"].update(spans=entry))
    with pytest.raises(BundleError, match="spans is no file"):
        Bundle.open(bundle)


# Devices, precisions, threads


@pytest.mark.parametrize("device", ["cuda", "tensorrt"])
def test_a_device_that_is_not_there_is_refused(tiny_bundle: Path, device: str) -> None:
    provider = PROVIDERS[device]  # type: ignore[index]
    if provider in ort.get_available_providers():
        pytest.skip(f"ONNX Runtime offers {provider} here")
    with pytest.raises(
        DeviceError, match=rf"device='{device}' needs ONNX Runtime's {provider}, .*CPUExecutionProvider"
    ):
        load(tiny_bundle, device=device)


def test_an_unknown_device_is_refused_with_the_known_ones(tiny_bundle: Path) -> None:
    with pytest.raises(DeviceError, match="device='gpu' is unknown; use one of auto, cpu, cuda, tensorrt"):
        load(tiny_bundle, device="gpu")


def test_auto_is_the_cpu_without_a_gpu(tiny_bundle: Path) -> None:
    if PROVIDERS["cuda"] in ort.get_available_providers():
        pytest.skip("ONNX Runtime offers CUDA here")
    assert load(tiny_bundle, device="auto").identity.device == "cpu"


def test_int8_graphs_leave_the_cpu_only_when_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    # No provider starts: the choice is made from what the installation offers and the bundle needs.
    monkeypatch.setattr(ort, "get_available_providers", lambda: list(PROVIDERS.values()))
    monkeypatch.setattr(device_module, "start_device", lambda device: None)
    assert choose_device("auto", ["fp16", "fp16"]) == Device("cuda")
    assert choose_device("auto", ["fp16", "int8"]) == Device("cpu")
    assert choose_device("auto", ["mixed"]) == Device("cpu")
    assert choose_device("tensorrt", ["fp16"]) == Device("tensorrt")
    assert choose_device("cuda:1", ["fp16"]) == Device("cuda", 1)
    assert choose_device("cuda", ["fp16", "mixed"]) == Device("cuda")
    assert choose_device("tensorrt", ["fp16", "mixed"]) == Device("tensorrt")


@pytest.mark.parametrize("choice", ["cpu:1", "cuda:", "cuda:x", "cuda:-1", "auto:1", "gpu:0", ""])
def test_a_name_that_is_no_device_is_refused(choice: str) -> None:
    with pytest.raises(DeviceError, match=f"device='{choice}' is unknown; .* cuda:1 is the second GPU"):
        choose_device(choice, ["fp16"])


@pytest.mark.filterwarnings("ignore:Specified provider 'CUDAExecutionProvider' is not in available")
def test_auto_takes_the_cpu_with_a_warning_when_cuda_does_not_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What ONNX Runtime lists are the providers that it was built with, whatever libraries they miss."""
    if PROVIDERS["cuda"] in ort.get_available_providers():
        pytest.skip("ONNX Runtime offers CUDA here")
    monkeypatch.setattr(ort, "get_available_providers", lambda: list(PROVIDERS.values()))
    monkeypatch.setattr(ort, "preload_dlls", lambda: print("Failed to load libcudart.so.13"))
    with pytest.warns(RuntimeWarning, match="'auto' takes the CPU: .*did not start: .*libonnxruntime_providers_cuda"):
        assert choose_device("auto", ["fp16"]) == Device("cpu")
    assert capsys.readouterr().out == ""  # where the command line writes JSON


def test_a_provider_that_does_not_start_is_refused(tiny_bundle: Path) -> None:
    """Asked for a GPU it lacks, ONNX Runtime would fall back to the CPU with a warning."""
    if PROVIDERS["cuda"] in ort.get_available_providers():
        pytest.skip("ONNX Runtime offers CUDA here")
    with pytest.raises(DeviceError, match="device='cuda' needs ONNX Runtime's CUDAExecutionProvider"):
        Session.load(tiny_bundle / "qa.onnx", DeviceProfile.of("cuda", 1))


def test_another_precision_than_asked_for_is_refused(tiny_bundle: Path) -> None:
    with pytest.raises(BundleError, match=r"precision='int8' was asked for, .*'qa': 'fp32'.*--precision int8"):
        load(tiny_bundle, precision="int8")
    assert load(tiny_bundle, precision="fp32").identity.precision == "fp32"


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_below_one_are_refused(tiny_bundle: Path, threads: int) -> None:
    with pytest.raises(InvalidRequest, match=f"threads is {threads}; allowed are whole numbers from 1"):
        load(tiny_bundle, threads=threads)
    assert load(tiny_bundle, threads=None).profile.threads == usable_cores()


@pytest.mark.parametrize(
    ("threads", "size", "graph"),
    [
        (1, 10, 1),
        (2, 10, 1),
        (2, SMALL_BUNDLE_BYTES - 1, 1),
        (2, SMALL_BUNDLE_BYTES, 2),
        (8, 10, 2),
        (16, 10, 4),
        (16, SMALL_BUNDLE_BYTES, 16),
    ],
)
def test_small_graphs_run_on_their_pools_share_of_the_threads(threads: int, size: int, graph: int) -> None:
    profile = DeviceProfile.of("cpu", threads)
    assert profile.share_threads(size).threads == graph
    assert profile.share_threads(size).concurrent_batches == profile.concurrent_batches == min(threads, 4)


def test_graphs_on_a_gpu_have_one_thread_each() -> None:
    assert DeviceProfile.of("cuda", None).threads == 1
    assert DeviceProfile.of("cuda", 3).share_threads(10) == DeviceProfile.of("cuda", 3)


def test_the_size_of_a_bundle_is_that_of_its_files(tiny_bundle: Path) -> None:
    manifest = Bundle.open(tiny_bundle).manifest
    assert manifest.size == sum((tiny_bundle / name).stat().st_size for name in manifest.files)
    assert manifest.size < SMALL_BUNDLE_BYTES  # so its graphs have a share of the threads below
    assert load(tiny_bundle, threads=2).profile.threads == 2


# Errors of a loaded bundle


def test_a_role_the_bundle_lacks_fails_call_by_call(bundle: Path) -> None:
    edit(bundle, lambda m: m["roles"].pop("nli"))
    outcomes = load(bundle).run("nli", [Classify("nli", ("a",), "b")] * 2, 8)
    assert [type(outcome) for outcome in outcomes] == [ModelError] * 2
    assert "has no role 'nli'; it has qa, qg, spans" in str(outcomes[0])


def test_feeds_that_do_not_fit_the_graph_are_a_model_error(tiny_bundle: Path) -> None:
    session = Session.load(tiny_bundle / "qa.onnx", DeviceProfile.of("cpu", 1))
    with pytest.raises(ModelError, match=r"qa\.onnx failed on cpu: .*input_ids"):
        session.run({})


def test_a_closed_runtime_says_so_and_keeps_its_roles_names(tiny_bundle: Path) -> None:
    runtime = load(tiny_bundle)
    roles = runtime.roles
    runtime.close()
    assert runtime.roles == roles
    (outcome,) = runtime.run("qa", [Answer("who?", ("Bob",))], 8)
    assert isinstance(outcome, EngineClosed)
    assert "was closed" in str(outcome)


def test_the_spans_role_names_a_directory(tiny_bundle: Path) -> None:
    role = Bundle.open(tiny_bundle).manifest.roles["spans"]
    assert isinstance(role, SpansRole)
    assert Bundle.open(tiny_bundle).file(role.path).is_dir()

"""A runtime over bundles that are read on this machine; a model server may run their graphs."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from .arguments import check_integer, check_path, check_sequence
from .bundles.bundle import Bundle, open_bundles
from .bundles.calibration import Calibration, join_calibrations
from .bundles.manifest import Canary, Role, RoleInfo, TargetRole
from .calls import Call, Generate, SequencePart
from .errors import BundleError, EngineClosed, GroundwireError, InvalidRequest, ModelError, Unreadable
from .kserve.endpoint import Endpoint
from .kserve.server import Server
from .models.canary import check_canary, digest_call, make_canary
from .models.graphs import captures_graphs, place_role
from .models.kinds import Model, Prepared, kind_of
from .models.loading import group_roles, load_group
from .models.response_generator import ResponseGenerator
from .ort.device import Device, DeviceChoice, DeviceKind, name_kernels, parse_device
from .ort.processor import int8_kernel
from .ort.session import DeviceProfile
from .parity.certified import choose_certified
from .protocol import CaptureCounts, Identity, Outcome
from .resources import trim_memory, warn_of_limits
from .tensorrt.library import import_library

LOADERS = 2
"""Graphs that load at the same time."""
DEQUANTIZED = "-dequantized"
"""Added to the precision of int8 graphs whose weights a GPU has as float32."""
SPARE_REQUESTS = 8
"""Requests that leave a GPU idle most of the time."""
MAX_THREADS = 1_024
"""Threads of one graph run on the CPU; an operating system refuses many more, and ONNX Runtime blames the graph."""
WARM_WINDOWS = 512
"""Windows of a warm-up call, at most: as many as a request with default options may have."""
MISMATCHES = (LookupError, TypeError, ValueError)
"""What a model raises on a graph whose outputs have other names, types or shapes than its role reads. ``Session``
translates the errors of ONNX Runtime."""


class LocalRuntime:
    """The models of one bundle, or of several that share no role, which are read on this machine.

    Texts are tokenized, batched and read here. Graphs run here (``load``) or on a model server (``load_with_server``).
    """

    def __init__(
        self,
        bundle: Bundle,
        profile: DeviceProfile,
        models: Mapping[str, Model],
        extra: Sequence[Bundle] = (),
        *,
        verified: bool = True,
    ) -> None:
        self._models = dict(models)
        self._closed = False
        self._roles = merge_roles((bundle, *extra))
        self._infos = {role: record.info for role, (record, _) in self._roles.items()}
        self.bundle = bundle
        self.profile = profile
        self._calibration = join_calibrations([opened.manifest.calibration for opened in (bundle, *extra)])
        self._canaries = {
            role: {canary.input: canary for canary in canaries}
            for opened in (bundle, *extra)
            for role, canaries in (opened.manifest.canaries or {}).items()
        }
        self._warming: dict[Call, str] = {}
        if profile.server is None:
            self._identity = identify((bundle, *extra), profile.device, verified=verified, strict=profile.strict)
        else:
            self._identity = identify_remote((bundle, *extra), profile.server)

    @classmethod
    def load(
        cls,
        bundle: str | Path,
        device: DeviceChoice = "auto",
        precision: str | None = None,
        threads: int | None = None,
        extra: Sequence[str | Path] = (),
        *,
        verify: bool = True,
        device_memory_mb: int | None = None,
        strict: bool = False,
    ) -> LocalRuntime:
        """Open every role of a bundle, of the bundles in ``extra``, and of an installed companion (``open_bundles``).

        ``precision`` refuses a bundle whose graphs have another one; ``threads`` bounds the CPU threads of one graph
        run, and how many run at the same time (default: the processors this process may use). ``verify`` compares every
        file with its digest first, about a second per gigabyte; without it, the identity says ``unverified``.
        ``device_memory_mb`` bounds the memory of a GPU, in MiB, that the runtimes of this process take together.
        ``strict`` runs encoders and question generation at one shape each on CUDA, where kernels are chosen by shape,
        and language models at one for each length.
        Raises BundleError, also when two bundles have the same role, or DeviceError, also for ``strict`` on TensorRT or
        with ``device_memory_mb``.
        """
        if threads is not None:
            threads = check_integer("threads", threads, 1, MAX_THREADS)
        if device_memory_mb is not None:
            device_memory_mb = check_integer("device_memory_mb", device_memory_mb, 1)
        bundles = _open_bundles(bundle, extra, precision, verify=verify)
        roles = merge_roles(bundles)
        chosen = choose_certified(device, bundles)
        precisions = _list_precisions(bundles, chosen)
        _check_precision(bundles, precisions, precision)
        if quantized := sorted(name for name, value in precisions.items() if value.endswith(DEQUANTIZED)):
            warnings.warn(
                f"The int8 graphs of {', '.join(quantized)} run on {chosen} with float32 weights, and their results "
                "were compared with no checkpoint. Export the bundle with --precision fp16 for results that were.",
                RuntimeWarning,
                stacklevel=2,
            )
        warn_of_limits(sum(entry.bytes for opened in bundles for entry in opened.manifest.files.values()))
        profile, models = _load_models(roles, DeviceProfile.of(chosen, threads, device_memory_mb, strict=strict))
        return cls(bundles[0], profile, models, bundles[1:], verified=verify)

    @classmethod
    def load_with_server(
        cls,
        bundle: str | Path,
        endpoint: Endpoint,
        device: DeviceChoice = "auto",
        precision: str | None = None,
        extra: Sequence[str | Path] = (),
        *,
        verify: bool = True,
    ) -> LocalRuntime:
        """Open every role as ``load`` does, with its graphs on a model server; what is not a graph is read here.

        ``device`` is the kind whose graphs of the bundle the server has: ``auto`` is ``cpu``. With ``verify``, the
        files here are compared with their digests, and one small call of each role with the result that the bundle
        keeps; a server may change its models later, so the identity is ``unverified`` all the same. Raises as
        ``load``, and ServerUnavailable or ServerError.
        """
        bundles = _open_bundles(bundle, extra, precision, verify=verify)
        roles = merge_roles(bundles)
        chosen = parse_device(device) or Device("cpu")
        if chosen.index:
            raise InvalidRequest(f"device={device!r}: the model server chooses its GPU; pass {chosen.kind!r}.")
        if chosen.kind == "tensorrt-rtx":
            raise InvalidRequest(f"device={device!r}: no model server runs TensorRT-RTX; pass cpu, cuda or tensorrt.")
        _check_precision(bundles, _list_remote_precisions(bundles, chosen.kind), precision)
        server = Server.open(endpoint, chosen.kind)
        try:
            runtime = cls(bundles[0], *_load_models(roles, DeviceProfile.of_server(server)), bundles[1:])
            if verify:
                runtime.check_canaries()
        except BaseException:
            server.close()
            raise
        return runtime

    @property
    def roles(self) -> frozenset[str]:
        """The roles of the bundles, also after ``close``."""
        return frozenset(self._roles)

    @property
    def identity(self) -> Identity:
        """Bundle, digest, precision and device; names and digests of several bundles are joined by ``+``."""
        return self._identity

    @property
    def calibration(self) -> Calibration | None:
        """From the manifests; ``join_calibrations`` says which counts."""
        return self._calibration

    def role_info(self, role: str) -> RoleInfo:
        """From the manifest."""
        return self._infos.get(role, RoleInfo())

    @property
    def worker_pools(self) -> Mapping[str, int]:
        """The profile's for the device; spaCy holds the GIL, so one thread is all the host needs.

        Captured graphs belong to the thread that captured them and have a stream of their own, so there each graph has
        a thread.
        """
        if captures_graphs(self.profile):
            return dict.fromkeys((*map(self.worker_pool, self._roles), "host"), 1)
        return {"device": self.profile.concurrent_batches, "host": 1}

    @property
    def concurrent_requests(self) -> int:
        """One per batch that a CPU runs at the same time, and one whose Python may run meanwhile; many on a GPU, where
        a batch takes little longer with more in it, and on a server."""
        on_cpu = self.profile.device.kind == "cpu" and self.profile.server is None
        return self.profile.concurrent_batches + 1 if on_cpu else 64

    @property
    def spare_requests(self) -> int:
        """None on a CPU or a server; a few on a GPU, chosen and not measured."""
        return SPARE_REQUESTS if captures_graphs(self.profile) else 0

    @property
    def captures(self) -> CaptureCounts:
        """Counts of all graphs of this runtime, since loading; zeros where none is captured."""
        return sum((graph.counts for graph in list(self.profile.captured)), CaptureCounts())

    def worker_pool(self, role: str) -> str:
        """SpaCy runs on the host while the device runs graphs."""
        pool = kind_of(self._roles[role][0]).pool if role in self._roles else "device"
        if pool == "host" or not captures_graphs(self.profile):
            return pool
        return f"device:{self.batch_group(role)}"

    def batch_group(self, role: str) -> str:
        """The first of the roles that read one graph."""
        model = self._models.get(role)
        return role if model is None else min(name for name, other in self._models.items() if other is model)

    def batch(self, role: str) -> int:
        """Enough calls to fill a few batches; a new request waits at most this long for its turn."""
        if role not in self._roles:
            return self.profile.max_rows
        record = self._roles[role][0]
        return kind_of(record).batch(record, self.profile)

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """One result or error per call, in order, all of ``role`` or of others of its group."""
        model = self._models.get(role)
        if model is None:
            return [self._explain_missing(role)] * len(calls)
        try:
            if self._warming and isinstance(model, Prepared):
                model.prepare()  # on the thread that runs its batches
            outcomes = model.run(calls, max_windows)
        except GroundwireError:
            raise
        except MISMATCHES as error:
            raise ModelError(
                f"The role {role!r} failed: {type(error).__name__}: {error}. If the bundle fits its manifest "
                "(groundwire bundle verify), please report it."
            ) from error
        if self._warming:
            outcomes = [self._check(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)]
        return outcomes

    def stream(self, call: Generate) -> Iterator[SequencePart]:
        """As ``ResponseGenerator.stream``; ModelError without a generator, EngineClosed after ``close``."""
        model = self._models.get("generator")
        if not isinstance(model, ResponseGenerator):
            raise self._explain_missing("generator")
        return model.stream(call)

    def warm_calls(self, roles: Collection[str] | None = None) -> Sequence[Call]:
        """One small call for each of ``roles``. When they run next, their results are compared with the bundle's
        canaries."""
        chosen = [role for role in self._roles if roles is None or role in roles]
        self._warming = {call: role for role in chosen for call in self._warm_calls_of(role)}
        return list(self._warming)

    def check_canaries(self) -> None:
        """Run the warm-up calls now, and raise the ModelError of one whose result is not the bundle's own."""
        for role in sorted(self._models):
            calls = self._warm_calls_of(role)
            self._warming |= dict.fromkeys(calls, role)
            for outcome in self.run(role, calls, WARM_WINDOWS):
                if isinstance(outcome, GroundwireError) and not isinstance(outcome, Unreadable):
                    raise outcome

    def record_canaries(self) -> dict[str, tuple[Canary, ...]]:
        """The results of the warm-up calls on this machine, for ``Bundle.record``; ModelError when one fails.

        A call whose English text the model's tokenizer does not read has none.
        """
        canaries: dict[str, tuple[Canary, ...]] = {}
        for role in sorted(self._models):
            calls = self._warm_calls_of(role)
            outcomes = self.run(role, calls, WARM_WINDOWS)
            for outcome in outcomes:
                if isinstance(outcome, GroundwireError) and not isinstance(outcome, Unreadable):
                    raise ModelError(f"The warm-up call of the role {role!r} failed: {outcome}") from outcome
            read = [pair for pair in zip(calls, outcomes, strict=True) if not isinstance(pair[1], GroundwireError)]
            canaries[role] = tuple(make_canary(call, outcome) for call, outcome in read)
        return canaries

    def interrupt(self) -> None:
        """End the runs of graphs, as ``Interruptible.interrupt``."""
        self.profile.interrupt()

    def close(self) -> None:
        """Free the models and give their memory back, and close the connections to a server."""
        self._closed = True
        self._models.clear()
        if self.profile.server is not None:
            self.profile.server.close()
        trim_memory()

    def _warm_calls_of(self, role: str) -> Sequence[Call]:
        return kind_of(self._roles[role][0]).warm_calls(role)

    def _check(self, call: Call, outcome: Outcome) -> Outcome:
        role = self._warming.pop(call, None)
        canary = self._canaries.get(role, {}).get(digest_call(call)) if role else None
        if role is None or canary is None or isinstance(outcome, GroundwireError):
            return outcome
        return check_canary(role, canary, outcome) or outcome

    def _explain_missing(self, role: str) -> GroundwireError:
        if self._closed:
            return EngineClosed("The runtime was closed and its models freed; load the bundle again.")
        message = f"The bundle {self._identity.bundle!r} has no role {role!r}; it has {', '.join(sorted(self.roles))}."
        if role != "generator":
            return ModelError(message)
        return ModelError(
            f"{message} Export a model that writes responses: groundwire export generator --source ID_OR_DIR --out "
            "BUNDLE; `python -m groundwire.recipes generator` trains one."
        )


class Described(NamedTuple):
    """What a runtime would run."""

    roles: frozenset[str]
    identity: Identity
    calibration: Calibration | None


def describe(bundle: str | Path, device: DeviceChoice = "auto", extra: Sequence[str | Path] = ()) -> Described:
    """Describe what ``LocalRuntime.load`` would load, without loading a model: files are compared with their digests,
    and the device is started. Raises as ``load``."""
    bundles = _open_bundles(bundle, extra, None, verify=True)
    roles = merge_roles(bundles)
    calibration = join_calibrations([opened.manifest.calibration for opened in bundles])
    return Described(frozenset(roles), identify(bundles, choose_certified(device, bundles)), calibration)


def identify(bundles: Sequence[Bundle], device: Device, *, verified: bool = True, strict: bool = False) -> Identity:
    """What determines the results of these bundles on a device, without loading a model."""
    manifests = [bundle.manifest for bundle in bundles]
    precisions = set(_list_precisions(bundles, device).values())
    on_cpu = device.kind == "cpu"
    return Identity(
        "+".join(manifest.name for manifest in manifests),
        "+".join(manifest.digest() for manifest in manifests),
        "+".join(sorted(precisions)),
        device.kind,
        int8_kernel() if on_cpu and any(map(_sums_integers, precisions)) else _name_kernels(device, strict=strict),
        verified,
    )


def identify_remote(bundles: Sequence[Bundle], server: Server) -> Identity:
    """What determines the results of these bundles on a model server, as far as it says."""
    here = identify(bundles, Device("cpu"), verified=False)
    device = "kserve" if server.device == "cpu" else f"kserve-{server.device}"
    precisions = set(_list_remote_precisions(bundles, server.device).values())
    return msgspec.structs.replace(here, precision="+".join(sorted(precisions)), device=device, kernel=server.identity)


def _open_bundles(
    bundle: str | Path, extra: Sequence[str | Path], precision: str | None, *, verify: bool
) -> list[Bundle]:
    extra = check_sequence("extra", extra, "a list of bundles")
    for name, source in (("bundle", bundle), *((f"extra[{i}]", source) for i, source in enumerate(extra))):
        check_path(name, source)
    if not isinstance(precision, str | None):
        raise InvalidRequest(f"precision is {type(precision).__name__}; pass a name such as int8, or None.")
    bundles = open_bundles(bundle, extra)
    if verify:
        for opened in bundles:
            opened.verify()
    return bundles


def _load_models(
    roles: Mapping[str, tuple[Role, Bundle]], profile: DeviceProfile
) -> tuple[DeviceProfile, dict[str, Model]]:
    """The models of all roles by name, and the profile that they share."""
    placed = {name: (place_role(name, role, profile), opened) for name, (role, opened) in roles.items()}
    profiles = {name: of_role for name, ((_, of_role), _) in placed.items()}
    records = {name: (role, opened) for name, ((role, _), opened) in placed.items()}
    # spaCy takes longest and holds the GIL, which the building of a session does not.
    groups = sorted(group_roles(records), key=lambda names: kind_of(records[names[0]][0]).pool != "host")
    with ThreadPoolExecutor(LOADERS, thread_name_prefix="groundwire-load") as loaders:
        loaded = list(loaders.map(lambda names: load_group(names, records, profiles[names[0]]), groups))
    return profile, {name: model for names, model in zip(groups, loaded, strict=True) for name in names}


def _check_precision(bundles: Sequence[Bundle], precisions: Mapping[str, str], precision: str | None) -> None:
    if precision is not None and {value.removesuffix(DEQUANTIZED) for value in precisions.values()} - {precision}:
        directories = " and ".join(str(opened.directory) for opened in bundles)
        raise BundleError(
            f"precision={precision!r} was asked for, but {directories} has {precisions}. "
            f"Export it with --precision {precision}, or leave precision out."
        )


def _list_remote_precisions(bundles: Sequence[Bundle], device: DeviceKind) -> dict[str, str]:
    """By role, the precision of the graph that a server runs, as it is: nothing is dequantized there."""
    precisions: dict[str, str] = {}
    for opened in bundles:
        precisions |= opened.manifest.precisions_on(device, served=True)
    return precisions


def _list_precisions(bundles: Sequence[Bundle], device: Device) -> dict[str, str]:
    """By role, the precision that a device computes with; int8 graphs for the CPU are ``-dequantized`` elsewhere."""
    precisions: dict[str, str] = {}
    for opened in bundles:
        for name, precision in opened.manifest.precisions_on(device.kind).items():
            role = opened.manifest.roles[name]
            has_target = isinstance(role, TargetRole) and role.find_target(device.kind) is not None
            dequantized = not has_target and device.kind != "cpu" and _is_quantized(precision)
            precisions[name] = f"{precision}{DEQUANTIZED}" if dequantized else precision
    return precisions


def _name_kernels(device: Device, *, strict: bool) -> str:
    names = [
        name_kernels(device),
        *([f"{device.kind}-{import_library(device.kind).__version__}"] if device.runs_engines else []),
        *(["strict"] if strict else []),
    ]
    return "/".join(names)


def _is_quantized(precision: str) -> bool:
    return precision in ("int8", "mixed")


def _sums_integers(precision: str) -> bool:
    return precision == "int4" or _is_quantized(precision)


def merge_roles(bundles: Sequence[Bundle]) -> dict[str, tuple[Role, Bundle]]:
    """The roles of all bundles by name, each with its bundle; BundleError when two bundles have the same role."""
    roles: dict[str, tuple[Role, Bundle]] = {}
    for bundle in bundles:
        for name, role in bundle.manifest.roles.items():
            if name in roles:
                raise BundleError(
                    f"Both {roles[name][1].directory} and {bundle.directory} have the role {name!r}. "
                    f"Name the bundle that gives it, as in extra {name}={bundle.directory}, or load bundles that share "
                    "no role."
                )
            roles[name] = role, bundle
    return roles

"""``groundwire export``: checkpoints into a bundle. Cheap to import; the heavy libraries load when it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from groundwire.cli.groups import Setting, expand_groups
from groundwire.export import require
from groundwire.export.options import RoleOptions, check_precision, read_shortlist
from groundwire.export.presets import PRESETS, override, preset
from groundwire.export.roles.names import ROLES, SETTINGS_OF_KINDS, TARGET_KINDS, find_kind_name, list_precisions
from groundwire.export.sources import check_hub
from groundwire.runtime.bundles.bundle import MANIFEST, Bundle
from groundwire.runtime.bundles.manifest import Ranges, SpansRole, TargetName, TargetRole, Template
from groundwire.runtime.errors import ExportError

if TYPE_CHECKING:
    from groundwire.export.pipeline import Stage, Watcher

EXAMPLE = """
The checkpoints of the Q² paper, ready for a CPU:

    groundwire export paper-q2 --out paper-q2

One role of your own bundle, from a directory that `save_pretrained` wrote:

    groundwire export nli --source ./my-nli --labels contradiction,entailment,neutral --out my-bundle

The graphs of a bundle for a Triton Inference Server, which `LoadOptions(backend="kserve", url=…)` asks:

    groundwire export triton my-bundle --out model-repository
"""

app = typer.Typer(rich_markup_mode="markdown", subcommand_metavar="")


class PrecisionName(StrEnum):
    """The values of --precision."""

    FP32 = "fp32"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    INT4 = "int4"


class TargetChoice(StrEnum):
    """The values of --target."""

    CUDA = "cuda"
    TENSORRT = "tensorrt"
    TENSORRT_RTX = "tensorrt-rtx"


@dataclasses.dataclass(frozen=True)
class RoleGroup:
    """The checkpoint of one role, and how its model is used."""

    source: Annotated[
        str | None, typer.Option(help="Hub id or local directory of the checkpoint; required for a role.")
    ] = None
    revision: Annotated[str | None, Setting(help="Commit, tag or branch of a hub checkpoint.")] = None
    labels: Annotated[
        str | None,
        typer.Option(
            help="Labels of a classifier, comma-separated, in the order of its logits; of a judge the two answers."
        ),
    ] = None
    supported: Annotated[
        str | None, Setting(help="Labels of a detector or judge that mean consistent, comma-separated.")
    ] = None
    by_sentence: Annotated[
        bool, Setting(help="For a detector or judge: classify each sentence, not the whole response.")
    ] = False
    average: Annotated[
        bool, Setting(help="With by_sentence: the mean of the sentences counts, not the least supported one.")
    ] = False
    chat: Annotated[
        bool, Setting(help="For a judge: template is a user's message, which the checkpoint's chat template surrounds.")
    ] = False
    template: Annotated[str | None, Setting(help="Model input, such as 'answer: {answer}  context: {context}'.")] = None
    template_second: Annotated[str | None, Setting(help="Second text, for models that read pairs.")] = None
    prompt: Annotated[
        list[str] | None,
        Setting(
            help="A part of a response generator's prompt, such as 'Document: {knowledge}. '. Repeatable, in order; "
            "one part contains {knowledge} and another {history}.",
        ),
    ] = None
    strip_prefix: Annotated[str, Setting(help="Text to remove from the start of generated questions.")] = ""
    shortlist: Annotated[
        Path | None,
        Setting(
            help="File with a token on each line: the tokens that a question may contain besides the tokens of its "
            "source. Faster; needs int8.",
            is_file=True,
        ),
    ] = None
    max_tokens: Annotated[
        int | None,
        Setting(help="Window of the model in tokens, special tokens included; default: the checkpoint's.", min=8),
    ] = None
    layer: Annotated[
        int | None,
        Setting(help="How many layers of an embedder to keep; default: what bert-score recommends, else all.", min=1),
    ] = None

    def list_given(self) -> list[str]:
        """The options that were given and belong to one role."""
        values = {"source": self.source, "revision": self.revision, **self._settings}
        return [_write_option(name) for name, value in values.items() if value]

    def make_options(self, role: str, source: str) -> RoleOptions:
        """The record for the export of the role; ExportError for an option that its kind of model does not have."""
        settings, kind = {name: value for name, value in self._settings.items() if value}, find_kind_name(role)
        options = SETTINGS_OF_KINDS.get(kind)
        names = [] if options is None else [field.name for field in dataclasses.fields(options)]
        for name in settings.keys() - names:
            allowed = [_write_option(other) for other in names if other in self._settings]
            advice = f"its options are {', '.join(allowed)}" if allowed else "it has no options of its own"
            raise ExportError(f"{_write_option(name)} is no option of {role}, whose kind is {kind}; {advice}.")
        return RoleOptions(source, options(**settings) if options and settings else None, revision=self.revision)

    @property
    def _settings(self) -> dict[str, Any]:
        """The options of kinds of models, by the names of their fields; empty where one was not given."""
        return {
            "labels": _split_list(self.labels),
            "supported": _split_list(self.supported),
            "unit": "sentence" if self.by_sentence else None,
            "aggregation": "mean" if self.average else None,
            "template": None if self.chat else _read_template(self.template, self.template_second),
            "messages": (("user", self.template or ""),) if self.chat else None,
            "prompt": tuple(self.prompt or ()),
            "strip_prefix": self.strip_prefix,
            "shortlist": () if self.shortlist is None else read_shortlist(self.shortlist),
            "layer": self.layer,
        }


def _write_option(name: str) -> str:
    """The option of the command line that sets a field of a role's options."""
    name = {"unit": "by_sentence", "aggregation": "average", "messages": "chat"}.get(name, name)
    return f"--{name}" if name in ("source", "labels") else f"--set {name}"


@dataclasses.dataclass(frozen=True)
class StoreGroup:
    """The bundle or the model repository that is written."""

    replace: Annotated[
        list[str] | None,
        typer.Option(help="Use another checkpoint for a role of a preset: ROLE=ID_OR_DIR. Repeatable."),
    ] = None
    name: Annotated[str | None, Setting(help="Name of a new bundle; default: the name of its directory.")] = None
    instances: Annotated[
        int, Setting(help="With triton: instances of each graph, on the CPU or on each GPU.", min=1)
    ] = 1
    allow_unverified: Annotated[
        bool,
        Setting(help="Save even if the graphs differ too much (for random weights in benchmarks)."),
    ] = False


@app.callback(
    invoke_without_command=True,
    no_args_is_help=True,
    context_settings={"allow_interspersed_args": True},
    help="Convert Hugging Face checkpoints to a bundle. Each graph is compared with PyTorch before it is saved.\n\n"
    + EXAMPLE,
)
@expand_groups
def export(
    what: Annotated[
        str,
        typer.Argument(
            metavar="PRESET|ROLE|triton",
            help=f"A preset: {', '.join(PRESETS)}. Or a role: "
            f"{', '.join(role for roles in ROLES.values() for role in roles)}. Or triton: a model repository.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Bundle directory; it is created, or gains the roles.", file_okay=False)],
    bundle: Annotated[
        str | None, typer.Argument(metavar="[BUNDLE]", help="With triton: the bundle, a name or a directory.")
    ] = None,
    precision: Annotated[
        PrecisionName | None,
        typer.Option(
            help="int8 for CPUs, fp16 for GPUs, int4 for the weights of large judges; a higher one is used where the "
            "graphs would differ too much. Default: int8, or fp16 where the target has no int8."
        ),
    ] = None,
    target: Annotated[
        TargetChoice | None,
        typer.Option(
            help="Add a graph of this precision for one device: cuda (fp16, fp32), tensorrt or tensorrt-rtx (fp16, "
            "fp8, int8, fp32). "
            "A role that the bundle has keeps its own graph; a new role gets it in fp16. With triton: run these graphs."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace roles that the bundle already has.")] = False,
    *,
    role: RoleGroup,
    store: StoreGroup,
) -> None:
    """Export one role, or all roles of a preset; the user reads ``help`` above."""
    if what == "triton":
        _export_repository(bundle, out, target, store.instances, force=force)
        return
    if bundle is not None:
        raise typer.BadParameter(f"{bundle} is one argument too many; only triton takes a bundle.")
    try:
        roles = _read_roles(
            what, None if precision is None else precision.value, None if target is None else target.value, role, store
        )
    except ExportError as error:
        raise typer.BadParameter(str(error)) from error
    try:
        require()
    except ImportError as error:
        raise ExportError(str(error)) from error
    check_hub([options for role, options in roles.items() if find_kind_name(role) != "spans"])
    from groundwire.export.pipeline import export_bundle
    from groundwire.export.store import Title

    if target is not None and (out / MANIFEST).is_file():
        present = Bundle.open(out).manifest.roles
        roles = {role: options for role, options in roles.items() if options.target or role not in present}
    with _show_progress() as watch:
        exported = export_bundle(roles, out, title=Title(store.name) if store.name else None, force=force, watch=watch)
    _print_report(exported, roles)


def _export_repository(
    bundle: str | None, out: Path, target: TargetChoice | None, instances: int, *, force: bool
) -> None:
    """Write a model repository and print its models."""
    if bundle is None:
        raise typer.BadParameter("triton needs a bundle: groundwire export triton BUNDLE --out REPO")
    from groundwire.export.triton import write_repository

    opened = Bundle.open(bundle)
    if target is TargetChoice.TENSORRT_RTX:
        raise typer.BadParameter("Triton runs no engines of TensorRT-RTX; choose --target cuda or tensorrt.")
    device: Literal["cpu", "cuda", "tensorrt"] = "cpu"
    if target is not None:
        device = "cuda" if target is TargetChoice.CUDA else "tensorrt"
    models = write_repository(opened, out, device, instances=instances, force=force)
    console = Console(soft_wrap=True, highlight=False)
    for model in models:
        joined = f"batches of up to {model.max_batch_size}" if model.max_batch_size else "no joined batches"
        console.print(f"[bold]{escape(model.name)}[/] {model.device}, {joined}")
    console.print(f"Serve it: tritonserver --model-repository {escape(str(out.resolve()))}")


def _read_roles(
    what: str,
    precision: str | None,
    target: TargetName | None,
    role: RoleGroup,
    store: StoreGroup,
) -> dict[str, RoleOptions]:
    if what in PRESETS:
        if single := role.list_given():
            raise ExportError(f"{', '.join(single)} belong to one role; {what} is a preset. Use --replace ROLE=SOURCE.")
        roles = preset(what)
        for text in store.replace or ():
            name, equals, other = text.partition("=")
            if not (name and equals and other):
                raise ExportError(f"--replace {text!r} is not ROLE=ID_OR_DIR, for example --replace qa=./my-qa.")
            roles = override(roles, name, source=other)
    else:
        find_kind_name(what, presets=PRESETS)
        if role.source is None or store.replace:
            raise ExportError(
                f"{what} is a role: give its checkpoint with --source ID_OR_DIR; --replace is for presets only."
            )
        roles = {what: role.make_options(what, role.source)}
    return {
        name: dataclasses.replace(
            options,
            **_choose_target(name, precision, target),
            max_tokens=role.max_tokens or options.max_tokens,
            allow_unverified=store.allow_unverified,
        )
        for name, options in roles.items()
    }


def _choose_target(role: str, precision: str | None, target: TargetName | None) -> dict[str, Any]:
    """The precision of a role and its target; roles of other kinds in a preset get fp16 graphs instead."""
    if target is not None and find_kind_name(role) not in TARGET_KINDS[target]:
        return {"precision": "fp16"}
    if precision is None:
        precision = "int8" if target is None or "int8" in list_precisions(role, target) else "fp16"
    return {"precision": check_precision(precision), "target": target}


def _split_list(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(","))


def _read_template(first: str | None, second: str | None) -> Template | None:
    if first is None:
        if second is not None:
            raise ExportError("--set template_second needs template, the first text.")
        return None
    return Template(first, second)


@contextmanager
def _show_progress() -> Iterator[Watcher]:
    """Show the current role and stage on a terminal while the export runs; elsewhere show nothing."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def watch(role: str, stage: Stage) -> None:
            progress.update(task, description=f"[bold]{escape(role)}[/] {stage}")

        yield watch


def _print_report(bundle: Bundle, roles: dict[str, RoleOptions]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for role, options in roles.items():
        record = bundle.manifest.roles[role]
        if isinstance(record, SpansRole) or record.parity is None:
            console.print(f"[bold]{escape(role)}[/] {escape(record.source)}")
            continue
        targets = (record.targets or {}).items() if isinstance(record, TargetRole) else ()
        of_target = next((target for device, target in targets if device == options.target), None)
        parity = record.parity if of_target is None or of_target.parity is None else of_target.parity
        precision = record.precision if of_target is None else f"{of_target.precision} for {options.target}"
        spans = "" if parity.span_agreement is None else f", {parity.span_agreement:.1%} of spans equal"
        exceptions = f", {len(parity.kept_float)} weights kept in float" if parity.kept_float else ""
        if isinstance(parity.ranges, Ranges):
            exceptions += (
                f", {len(parity.ranges.kept_float)} values kept in float, the largest other {parity.ranges.largest:.4g}"
            )
        console.print(
            f"[bold]{escape(role)}[/] {escape(record.source)} {precision} ({parity.gate}: "
            f"{parity.decision_agreement:.1%} of decisions equal{spans}, largest logit error "
            f"{parity.max_logit_error:.3f} at a standard deviation of {parity.logit_std:.2f}{exceptions})"
        )
        if parity.explanation:
            console.print(f"[yellow]warning[/]: {escape(role)} {parity.gate} with {parity.explanation}.")
    size = bundle.manifest.size / 1e6
    console.print(f"{escape(str(bundle.directory))} {size:.1f} MB digest {bundle.manifest.digest()}")

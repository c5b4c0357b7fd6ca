"""Export: load, convert, optimize, quantize, verify, save."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import onnx_ir as ir
from tokenizers import Tokenizer

from groundwire.runtime.bundle import (
    Bundle,
    ClassifierRole,
    EmbedderRole,
    ExtractiveQARole,
    LanguageModelRole,
    QuestionGeneratorRole,
    ResponseGeneratorRole,
    Template,
    TokenClassifierRole,
)
from groundwire.runtime.errors import ExportError, InvalidRequest
from groundwire.runtime.models.prompt import KNOWLEDGE, check_prompt

from . import checkpoint, labels, store
from .checkpoint import Checkpoint
from .options import PROMPT, QUESTION_TEMPLATE, Kind, RoleOptions, kind_of
from .passes import fold_transposes
from .passes.chunked_head import split
from .passes.shortlist import shorten
from .precision import Lowered, lower
from .roles import embedder, encoder, generation, language_model, retriever, spans
from .store import RoleFiles, Title
from .verify import reference
from .verify.generation import eos_ids, start_id

Stage: TypeAlias = Literal["load", "convert", "optimize", "quantize", "verify", "save"]
CONTEXT = 64
"""Tokens that neighbouring windows of an embedder share, so that no token stands at an edge without its neighbours."""
Watcher: TypeAlias = Callable[[str, Stage], None]
"""Called with the role and the stage that begins."""


def export_role(
    role: str,
    options: RoleOptions,
    out: str | Path,
    *,
    title: Title | None = None,
    force: bool = False,
    watch: Watcher = lambda role, stage: None,
) -> Bundle:
    """Export one checkpoint as ``role`` of the bundle ``out``, which is made or gains the role.

    Raises ExportError when the checkpoint does not fit, the target would be overwritten without ``force``, or the
    labels are unknown; ParityError when no precision passes the gate. ``out`` is left as it was then.
    """
    return export_bundle({role: options}, out, title=title, force=force, watch=watch)


def export_bundle(
    roles: Mapping[str, RoleOptions],
    out: str | Path,
    *,
    title: Title | None = None,
    force: bool = False,
    watch: Watcher = lambda role, stage: None,
) -> Bundle:
    """Export several roles into the bundle ``out`` at once; raises as ``export_role`` does.

    >>> export_bundle(preset("paper-q2"), "bundles/q2", title=Title("paper-q2"))  # doctest: +SKIP
    """
    target = Path(out)
    old = store.check_target(target, roles, force=force)
    if title is None:
        title = store.title_of(old.manifest) if old else Title(target.resolve().name)
    made = {role: _make(role, options, partial(watch, role)) for role, options in roles.items()}
    for role in roles:
        watch(role, "save")
    return store.write(target, title, made, force=force)


def _make(role: str, options: RoleOptions, watch: Callable[[Stage], None]) -> RoleFiles:
    kind = kind_of(role)
    if kind == "spans":
        watch("load")
        return spans.files(role, options)
    watch("load")
    loaded = checkpoint.load(kind, options)
    match kind:
        case "extractive_qa":
            return _reader(role, loaded, options, watch)
        case "classifier":
            return _classifier(role, loaded, options, watch)
        case "token_classifier":
            return _tagger(role, loaded, options, watch)
        case "question_generator":
            return _generator(role, loaded, options, watch)
        case "response_generator":
            return _writer(role, loaded, options, watch)
        case "embedder":
            return _embedder(role, loaded, options, watch)
        case "language_model":
            return _language_model(role, loaded, options, watch)
        case "retriever":
            return _retriever(role, loaded, options, watch)


def _reader(role: str, loaded: Checkpoint, options: RoleOptions, watch: Callable[[Stage], None]) -> RoleFiles:
    watch("convert")
    graph = encoder.graph(loaded.model, "question-answering")
    lowered = _lowered("extractive_qa", loaded, (graph,), Template("{question}", "{passage}"), options, watch)
    record = ExtractiveQARole(
        **_common(role, loaded, lowered),
        graph=f"{role}.onnx",
    )
    return RoleFiles(record, {record.graph: lowered.graphs[0]}, loaded.tokenizer)


def _classifier(role: str, loaded: Checkpoint, options: RoleOptions, watch: Callable[[Stage], None]) -> RoleFiles:
    names = labels.read(role, loaded.model.config.id2label, options.labels)
    supported = () if role == "nli" else labels.supported(role, names, options.supported)
    watch("convert")
    graph = encoder.graph(loaded.model, "text-classification")
    template = options.template or Template("{premise}", "{hypothesis}")
    lowered = _lowered("classifier", loaded, (graph,), template, options, watch)
    record = ClassifierRole(
        **_common(role, loaded, lowered),
        graph=f"{role}.onnx",
        labels=names,
        template=template,
        supported=supported,
        unit=options.unit,
    )
    return RoleFiles(record, {record.graph: lowered.graphs[0]}, loaded.tokenizer)


def _tagger(role: str, loaded: Checkpoint, options: RoleOptions, watch: Callable[[Stage], None]) -> RoleFiles:
    names = labels.read(role, loaded.model.config.id2label, options.labels)
    (supported,) = labels.supported(role, names, options.supported)
    watch("convert")
    graph = encoder.graph(loaded.model, "token-classification")
    template = options.template or Template("{premise}", "{hypothesis}")
    lowered = _lowered("token_classifier", loaded, (graph,), template, options, watch)
    record = TokenClassifierRole(
        **_common(role, loaded, lowered),
        graph=f"{role}.onnx",
        labels=names,
        template=template,
        supported=supported,
    )
    return RoleFiles(record, {record.graph: lowered.graphs[0]}, loaded.tokenizer)


def _generator(role: str, loaded: Checkpoint, options: RoleOptions, watch: Callable[[Stage], None]) -> RoleFiles:
    watch("convert")
    halves = generation.split(loaded.model)
    template = options.template or QUESTION_TEMPLATE
    lowered = _lowered("question_generator", loaded, generation.graphs(halves), template, options, watch)
    record = QuestionGeneratorRole(
        **_common(role, loaded, lowered),
        encoder=f"{role}.encoder.onnx",
        decoder=f"{role}.decoder.onnx",
        template=template,
        eos_ids=eos_ids(loaded.model),
        start_id=start_id(loaded.model),
        vocabulary=halves.step.vocabulary,
        layers=len(halves.step.layers),
        heads=halves.step.heads,
        head_dim=halves.step.head_dim,
        strip_prefix=options.strip_prefix,
    )
    graphs = dict(zip((record.encoder, record.decoder), lowered.graphs, strict=True))
    made = RoleFiles(record, graphs, loaded.tokenizer)
    return shortened(made, options.shortlist) if options.shortlist else made


def shortened(role: RoleFiles, tokens: Sequence[str]) -> RoleFiles:
    """A question generator that writes with ``tokens``, those of its source, and those that end a question.

    ExportError for a token that its tokenizer does not have, and for a head that is not int8 (``passes/shortlist.py``).
    """
    assert isinstance(role.record, QuestionGeneratorRole)
    assert role.tokenizer is not None
    tokenizer = Tokenizer.from_str(role.tokenizer)
    known = {token: tokenizer.token_to_id(token) for token in tokens}
    strange = [token for token, found in known.items() if found is None]
    if strange:
        raise ExportError(f"The tokenizer of {role.record.source!r} has no {strange[0]!r}; a shortlist names tokens.")
    special = [found for found, token in tokenizer.get_added_tokens_decoder().items() if token.special]
    usual = {*known.values(), *role.record.eos_ids}
    encoder, decoder = (role.graphs[name].clone() for name in (role.record.encoder, role.record.decoder))
    shorten(encoder, decoder, sorted(usual), special)
    return RoleFiles(
        msgspec.structs.replace(role.record, shortlist=len(usual)),
        {role.record.encoder: encoder, role.record.decoder: decoder},
        role.tokenizer,
    )


def shorten_role(bundle: str | Path, role: str, tokens: Sequence[str]) -> Bundle:
    """Let the question generator ``role`` of a bundle choose among ``tokens`` and those of its source.

    The bundle loses its calibration, which was fitted on other questions. Raises ExportError as ``shortened`` does, for
    a role that is no question generator, and for one that chooses among few already; the bundle is left as it was then.
    """
    opened = Bundle.open(bundle)
    record = opened.manifest.roles.get(role)
    if not isinstance(record, QuestionGeneratorRole):
        raise ExportError(f"{bundle} has no question generator {role!r}.")
    if record.shortlist is not None:
        raise ExportError(f"{role!r} of {bundle} chooses among {record.shortlist} tokens already; export it anew.")
    graphs = {name: ir.load(opened.file(name)) for name in store.graph_files(record)}
    text = opened.file(record.tokenizer).read_text(encoding="utf-8")
    made = shortened(RoleFiles(record, graphs, text), tokens)
    return store.write(opened.directory, store.title_of(opened.manifest), {role: made}, force=True)


def _writer(role: str, loaded: Checkpoint, options: RoleOptions, watch: Callable[[Stage], None]) -> RoleFiles:
    if options.template is not None:
        raise ExportError("A generator reads its prompt in pieces, not a template; give --prompt PIECE (prompt=(…)).")
    prompt = options.prompt or PROMPT
    try:
        check_prompt(prompt)
    except InvalidRequest as error:
        raise ExportError(str(error)) from error
    watch("convert")
    halves = generation.split(loaded.model)
    causal = halves.step.behind_source
    graphs = generation.graphs(halves, contrast=True)
    # Not a pair: both contexts, each a source of its own.
    read = Template("".join(prompt), "".join(piece for piece in prompt if KNOWLEDGE not in piece))
    lowered = _lowered("response_generator", loaded, graphs, read, options, watch)
    record = ResponseGeneratorRole(
        **_common(role, loaded, lowered),
        encoder=f"{role}.encoder.onnx",
        decoder=f"{role}.decoder.onnx",
        prompt=prompt,
        causal=causal,
        eos_ids=eos_ids(loaded.model),
        start_id=None if causal else start_id(loaded.model),
        vocabulary=halves.step.vocabulary,
        layers=len(halves.step.layers),
        heads=halves.step.heads,
        head_dim=halves.step.head_dim,
        positions=checkpoint.decoder_positions(loaded.model.config),
    )
    return RoleFiles(record, dict(zip((record.encoder, record.decoder), lowered.graphs, strict=True)), loaded.tokenizer)


def _embedder(role: str, loaded: Checkpoint, options: RoleOptions, watch: Callable[[Stage], None]) -> RoleFiles:
    found = embedder.known(options.source)
    layer = options.layer
    if layer is None:
        layer = found.layer if found else loaded.model.config.num_hidden_layers
    baseline = options.baseline or (found.baseline if found and found.layer == layer else None)
    watch("convert")
    embedder.cut(loaded.model, layer)
    graph = embedder.graph(loaded.model)
    lowered = _lowered("embedder", loaded, (graph,), Template("{text}"), options, watch)
    record = EmbedderRole(
        **_common(role, loaded, lowered),
        graph=f"{role}.onnx",
        layer=layer,
        baseline=baseline,
        stride=CONTEXT,
    )
    return RoleFiles(record, {record.graph: lowered.graphs[0]}, loaded.tokenizer)


def _language_model(role: str, loaded: Checkpoint, options: RoleOptions, watch: Callable[[Stage], None]) -> RoleFiles:
    watch("convert")
    made = language_model.scoring(loaded.model, streamed=options.precision != "fp16")
    lowered = _lowered("language_model", loaded, (made.graph,), Template("{text}"), options, watch)
    record = LanguageModelRole(
        **_common(role, loaded, lowered),
        graph=f"{role}.onnx",
        layers=made.layers,
        heads=made.heads,
        head_dim=made.head_dim,
    )
    graphs = {record.graph: lowered.graphs[0]}
    head = split(graphs[record.graph])
    if head is not None:
        record = msgspec.structs.replace(record, head=store.head(f"{role}.head.onnx", head))
        graphs[f"{role}.head.onnx"] = head
    return RoleFiles(record, graphs, loaded.tokenizer)


def _retriever(role: str, loaded: Checkpoint, options: RoleOptions, watch: Callable[[Stage], None]) -> RoleFiles:
    watch("convert")
    lowered = _lowered("retriever", loaded, retriever.graphs(loaded.model), Template("{text}"), options, watch)
    record = msgspec.structs.replace(
        retriever.record(loaded.model, loaded.tokenizer),
        **_common(role, loaded, lowered),
        encoder=f"{role}.encoder.onnx",
        query=f"{role}.query.onnx",
        memory=f"{role}.memory.onnx",
    )
    graphs = dict(zip((record.encoder, record.query, record.memory), lowered.graphs, strict=True))
    return RoleFiles(record, graphs, loaded.tokenizer)


def _common(role: str, loaded: Checkpoint, lowered: Lowered) -> dict[str, Any]:
    """What every model's record says."""
    return {
        "source": loaded.name,
        "revision": loaded.revision,
        "architecture": loaded.architecture,
        "precision": lowered.precision,
        "tokenizer": f"{role}.tokenizer.json",
        "max_tokens": loaded.max_tokens,
        "pad_id": loaded.pad_id,
        "parity": lowered.parity,
    }


def _lowered(
    kind: Kind,
    loaded: Checkpoint,
    graphs: tuple[ir.Model, ...],
    template: Template,
    options: RoleOptions,
    watch: Callable[[Stage], None],
) -> Lowered:
    watch("optimize")
    for graph in graphs:
        fold_transposes(graph)
    watch("quantize")
    return lower(
        graphs,
        reference(kind, loaded, template),
        options,
        keep_in_half=loaded.float_modules,
        begins=lambda: watch("verify"),
    )

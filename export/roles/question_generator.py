"""Question generators: encoder-decoders as two graphs, perhaps with a shortlist of the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec
import onnx_ir as ir
from tokenizers import Tokenizer
from transformers import AutoModelForSeq2SeqLM

from groundwire.runtime.bundles.manifest import QuestionGeneratorRole, Template
from groundwire.runtime.errors import ExportError

from ..checkpoint import Checkpoint, load_pretrained
from ..options import QuestionGeneratorSettings, RoleOptions
from ..passes import fold_transposes
from ..passes.shortlist import shorten_head
from ..store import RoleFiles
from ..verify.examples import fill_batches
from ..verify.generation import GenerationReference, eos_ids, start_id
from .generation import FUSED_HEAD_DIMS, Halves, build_fused_step, build_generation_graphs, split_model
from .kind import CommonFields, Conversion, ExportKind

NAME = "question_generator"


def apply_shortlist(files: RoleFiles, tokens: Sequence[str]) -> RoleFiles:
    """Return the files of a question generator that chooses among ``tokens``, its source's tokens and its end tokens.

    ExportError for a token that its tokenizer does not have, and for a head that is not int8 (``passes/shortlist.py``).
    """
    record = files.record
    assert isinstance(record, QuestionGeneratorRole)
    assert files.tokenizer is not None
    tokenizer = Tokenizer.from_str(files.tokenizer)
    ids = {token: tokenizer.token_to_id(token) for token in tokens}
    unknown = [token for token, token_id in ids.items() if token_id is None]
    if unknown:
        raise ExportError(
            f"The tokenizer of {record.source!r} has no token {unknown[0]!r}; list tokens of its vocabulary only."
        )
    special = [token_id for token_id, token in tokenizer.get_added_tokens_decoder().items() if token.special]
    shortlist = {*ids.values(), *record.eos_ids}
    encoder, decoder = (files.graphs[name].clone() for name in (record.encoder, record.decoder))
    shorten_head(encoder, decoder, sorted(shortlist), special)
    return RoleFiles(
        msgspec.structs.replace(record, shortlist=len(shortlist)),
        {record.encoder: encoder, record.decoder: decoder},
        files.tokenizer,
    )


def _load(options: RoleOptions) -> Checkpoint:
    return load_pretrained(NAME, options, AutoModelForSeq2SeqLM, reads_pooler=False)


def _convert(role: str, checkpoint: Checkpoint, options: RoleOptions) -> Conversion:
    model, step_file, encoder_file = checkpoint.model, f"{role}.decoder.onnx", f"{role}.encoder.onnx"
    halves = split_model(model)
    settings = options.read(QuestionGeneratorSettings)

    def record(common: CommonFields) -> QuestionGeneratorRole:
        return QuestionGeneratorRole(
            **common,
            encoder=encoder_file,
            decoder=step_file,
            template=settings.template,
            eos_ids=eos_ids(model),
            start_id=start_id(model),
            vocabulary=halves.step.vocabulary,
            layers=len(halves.step.layers),
            heads=halves.step.heads,
            head_dim=halves.step.head_dim,
            strip_prefix=settings.strip_prefix,
        )

    encoder, step = build_generation_graphs(halves)
    graphs = {encoder_file: encoder, step_file: step}
    if settings.shortlist:
        return Conversion(graphs, settings.template, record, partial(apply_shortlist, tokens=settings.shortlist))
    return Conversion(graphs, settings.template, record, build_fused_step=lambda: _fuse_step(role, halves))


def _fuse_step(role: str, halves: Halves) -> ir.Model:
    if halves.step.head_dim not in FUSED_HEAD_DIMS:
        raise ExportError(
            f"The heads of {role!r} have {halves.step.head_dim} numbers; CUDA's operator takes "
            f"{', '.join(map(str, FUSED_HEAD_DIMS))}. Export the role without --target."
        )
    step = build_fused_step(halves.step)
    fold_transposes(step)
    return step


def _build_reference(checkpoint: Checkpoint, template: Template) -> GenerationReference:
    return GenerationReference(checkpoint, fill_batches(checkpoint, template))


KIND = ExportKind(NAME, _load, _convert, _build_reference)

"""Response generators: encoder-decoders or causal language models as two graphs, with PMI-Decode's rule in the step."""

from __future__ import annotations

from groundwire.runtime.bundles.manifest import ResponseGeneratorRole, Template
from groundwire.runtime.errors import ExportError, InvalidRequest
from groundwire.runtime.models.prompt import KNOWLEDGE, check_prompt

from ..checkpoint import AutoGenerativeModel, Checkpoint, count_decoder_positions, load_pretrained
from ..options import ResponseGeneratorSettings, RoleOptions
from ..texts import EXAMPLES
from ..verify.examples import batch_texts, fill_template
from ..verify.generation import STEPS, GenerationReference, eos_ids, start_id
from .generation import build_generation_graphs, split_model
from .kind import CommonFields, Conversion, ExportKind

NAME = "response_generator"


def _load(options: RoleOptions) -> Checkpoint:
    return load_pretrained(NAME, options, AutoGenerativeModel, reads_pooler=False)


def _convert(role: str, checkpoint: Checkpoint, options: RoleOptions) -> Conversion:
    prompt = options.read(ResponseGeneratorSettings).prompt
    try:
        check_prompt(prompt)
    except InvalidRequest as error:
        raise ExportError(str(error)) from error
    model, step_file, encoder_file = checkpoint.model, f"{role}.decoder.onnx", f"{role}.encoder.onnx"
    halves = split_model(model)
    causal = halves.step.continues_source

    def record(common: CommonFields) -> ResponseGeneratorRole:
        return ResponseGeneratorRole(
            **common,
            encoder=encoder_file,
            decoder=step_file,
            prompt=prompt,
            causal=causal,
            eos_ids=eos_ids(model),
            start_id=None if causal else start_id(model),
            vocabulary=halves.step.vocabulary,
            layers=len(halves.step.layers),
            heads=halves.step.heads,
            head_dim=halves.step.head_dim,
            positions=count_decoder_positions(model.config),
        )

    encoder, step = build_generation_graphs(halves, contrast=True)
    # The two parts of this template are not a pair: they are the contexts with and without the knowledge.
    contexts = Template("".join(prompt), "".join(piece for piece in prompt if KNOWLEDGE not in piece))
    return Conversion({encoder_file: encoder, step_file: step}, contexts, record)


def _build_reference(checkpoint: Checkpoint, template: Template) -> GenerationReference:
    """Every other text is read without the knowledge: ``template`` has the two contexts in place of a pair."""
    contexts = [Template(text) for text in (template.first, template.second) if text is not None]
    texts = (fill_template(contexts[number % 2], example) for number, example in enumerate(EXAMPLES))
    # A causal model's sources share its positions with what is written after them.
    return GenerationReference(checkpoint, batch_texts(checkpoint, texts, checkpoint.max_tokens - STEPS))


KIND = ExportKind(NAME, _load, _convert, _build_reference)

"""Tiny checkpoints with random weights and real tokenizers, written to disk as a hub download would be.

Every builder is seeded: the vocabularies are counted from a text below, the weights drawn from a fixed seed. Biases and
norms are random too, so that a graph that drops one is wrong, and the weights are large enough for decisions to follow
the input and for ties not to occur.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AlbertConfig,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertModel,
    AlbertTokenizerFast,
    BartConfig,
    BartForConditionalGeneration,
    BartTokenizerFast,
    BertConfig,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertLMHeadModel,
    BertModel,
    BertTokenizerFast,
    BloomConfig,
    BloomForCausalLM,
    BloomTokenizerFast,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    EncoderDecoderModel,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2TokenizerFast,
    LlamaConfig,
    LlamaForCausalLM,
    MPNetConfig,
    MPNetModel,
    MPNetTokenizerFast,
    OPTConfig,
    OPTForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaModel,
    RobertaTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
    T5TokenizerFast,
)

from tests.support.texts import TEXT, sentences

torch.set_num_threads(1)  # models this small lose time to a pool

LABELS = ("entailment", "neutral", "contradiction")
FLAGS = ("supported", "hallucinated")
MAX_TOKENS = 96
"""The window of every tiny model, special tokens included."""
HIDDEN, LAYERS, HEADS = 32, 2, 4
SIZES: dict[str, Any] = {
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 64,
}
"""What most configurations have in common."""


def t5_for_cuda(folder: Path, layers: int = LAYERS) -> Path:
    """Write a narrow T5 with so many decoder layers, whose heads have a size that CUDA's operators take."""
    return _save(folder, 0, lambda: _t5(gated=False, layers=layers, heads=2, head_dim=32))


def deep_encoder(folder: Path, family: str, layers: int) -> Path:
    """Write a narrow encoder of one of ``ENCODERS`` with so many layers: a classifier for RoBERTa, else for QA."""

    def build() -> Checkpoint:
        settings, reader, classifier = ENCODERS[family]
        config, tokenizer = settings()
        config.update({"num_hidden_layers": layers, "num_attention_heads": 2, "initializer_range": 0.02})
        if family != "roberta":
            return reader(config), tokenizer
        config.update(_named(LABELS))
        return classifier(config), tokenizer

    return _save(folder, 0, build)


def classifier(folder: Path, family: str, seed: int = 0, labels: tuple[str, ...] = LABELS) -> Path:
    """Write a tiny pair classifier of one of ``CLASSIFIERS``; return ``folder``."""
    return _save(folder, seed, lambda: CLASSIFIERS[family](labels))


Checkpoint = tuple[PreTrainedModel, PreTrainedTokenizerFast]


def _save(folder: Path, seed: int, build: Callable[[], Checkpoint]) -> Path:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model, tokenizer = build()
        _roughen(model.eval())
        _balance(model, tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@torch.no_grad()
def _roughen(model: PreTrainedModel) -> None:
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter += torch.randn_like(parameter) * 0.2


@torch.no_grad()
def _balance(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    """Let every decision occur: each label of a classifier, and "no answer" (position 0) of an extractive QA model."""
    lines = list(sentences())
    pairs = [tokenizer(*pair, return_tensors="pt") for pair in itertools.pairwise(lines)]
    if hasattr(model, "qa_outputs"):
        states = [model.base_model(**pair).last_hidden_state[0] for pair in pairs]
        inside = [state[pair.sequence_ids().index(1) : -1] for state, pair in zip(states, pairs, strict=True)]
        _raise(model.qa_outputs, torch.cat(inside).mean(0) - torch.cat(states).mean(0), 2.0)
        _raise(model.qa_outputs, torch.stack([state[0] for state in states]).mean(0) - torch.cat(inside).mean(0), 3.0)
    elif hasattr(model, "classifier"):
        logits = torch.cat([model(**pair).logits.flatten(0, -2) for pair in pairs])
        getattr(model.classifier, "out_proj", model.classifier).bias -= logits.mean(0)


def _raise(head: torch.nn.Linear, towards: torch.Tensor, by: float) -> None:
    """Add ``by`` to the logits of states that are shifted by ``towards``."""
    head.weight += by * towards / towards.square().sum()


def _scale(factor: float, layer: Any) -> None:
    """Scale a random layer: unscaled, cross-attention decides most tokens and a model repeats itself."""
    layer.weight.data *= factor


def word_pieces() -> BertTokenizerFast:
    """BERT's uncased tokenizer."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [*special, *(piece for piece, _ in _pieces(TEXT.lower(), "", "##"))]
    tokenizer = Tokenizer(models.WordPiece({piece: index for index, piece in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return BertTokenizerFast(tokenizer_object=tokenizer, model_max_length=MAX_TOKENS)


def word_pieces_mpnet() -> MPNetTokenizerFast:
    """MPNet's tokenizer: BERT's word pieces between RoBERTa's special tokens."""
    tokenizer = word_pieces().backend_tokenizer
    special = {"[PAD]": "<pad>", "[CLS]": "<s>", "[SEP]": "</s>", "[MASK]": "<mask>"}
    vocabulary = {special.get(piece, piece): index for piece, index in tokenizer.get_vocab(False).items()}
    # Positions start after the padding id, which is 1 in published checkpoints.
    vocabulary["<pad>"], vocabulary["[UNK]"] = 1, 0
    other = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    other.normalizer, other.pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    other.decoder = tokenizer.decoder
    other.post_processor = processors.RobertaProcessing(
        ("</s>", vocabulary["</s>"]), ("<s>", vocabulary["<s>"]), trim_offsets=False, add_prefix_space=False
    )
    return MPNetTokenizerFast(tokenizer_object=other, model_max_length=MAX_TOKENS)


def unigrams_t5() -> T5TokenizerFast:
    """T5's tokenizer: the special tokens are pieces of the vocabulary like any other, as sentencepiece writes them."""
    tokenizer = _unigrams(["<pad>", "</s>", "<unk>"], "<unk>", TEXT)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return T5TokenizerFast(tokenizer_object=tokenizer, extra_ids=4, model_max_length=MAX_TOKENS)


def unigrams_albert() -> AlbertTokenizerFast:
    """ALBERT's tokenizer: lower-cased, no accents; the special tokens are pieces here too."""
    tokenizer = _unigrams(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "</s>"], "<unk>", TEXT.lower())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace("``", '"'),
            normalizers.Replace("''", '"'),
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            tokenizer.normalizer,
        ]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return AlbertTokenizerFast(tokenizer_object=tokenizer, model_max_length=MAX_TOKENS)


def byte_pairs_roberta() -> RobertaTokenizerFast:
    """RoBERTa's byte-level BPE."""
    return RobertaTokenizerFast(tokenizer_object=_byte_pairs(), model_max_length=MAX_TOKENS)


def byte_pairs_bart() -> BartTokenizerFast:
    """BART's byte-level BPE, which is RoBERTa's."""
    return BartTokenizerFast(tokenizer_object=_byte_pairs(), model_max_length=MAX_TOKENS)


def byte_pairs_gpt2() -> GPT2TokenizerFast:
    """GPT-2's byte-level BPE: nothing is added to a text."""
    return GPT2TokenizerFast(tokenizer_object=_trained_pairs(["<|endoftext|>"]), model_max_length=MAX_TOKENS)


def byte_pairs_bloom() -> BloomTokenizerFast:
    """BLOOM's byte-level BPE: nothing is added to a text."""
    return BloomTokenizerFast(tokenizer_object=_trained_pairs(["<unk>", "<s>", "</s>", "<pad>"]))


def byte_pairs_opt() -> GPT2TokenizerFast:
    """OPT's byte-level BPE: texts begin with ``</s>``."""
    tokenizer = _trained_pairs(["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="</s> $A", pair="</s> $A </s> $B", special_tokens=[("</s>", 2)]
    )
    return GPT2TokenizerFast(
        tokenizer_object=tokenizer, bos_token="</s>", eos_token="</s>", pad_token="<pad>", model_max_length=MAX_TOKENS
    )


def _byte_pairs() -> Tokenizer:
    tokenizer = _trained_pairs(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


def _trained_pairs(special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        TEXT.splitlines(),
        trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return tokenizer


def _unigrams(special: list[str], unknown: str, text: str) -> Tokenizer:
    pieces = _pieces(text, "▁", "")
    total = sum(count for _, count in pieces)
    vocabulary = [(piece, 0.0) for piece in special]
    vocabulary += [("▁", -9.0), *((piece, math.log(count / total)) for piece, count in pieces)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=special.index(unknown)))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(left=False, right=True)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def _pieces(text: str, first: str, rest: str) -> list[tuple[str, int]]:
    """Words, fragments of words and single characters of ``text`` with their counts.

    Counted rather than trained: the library's unigram and word-piece trainers give another vocabulary at each run.
    """
    words = Counter(re.findall(r"\w+|[^\w\s]", text))
    counts: Counter[str] = Counter()
    for word, times in words.items():
        counts[first + word] += 4 * times
        for start in range(len(word)):
            for end in range(start + 1, min(len(word), start + 3) + 1):
                counts[(rest if start else first) + word[start:end]] += times
    single = {mark + character for character in "".join(words) for mark in (first, rest)}
    common = {piece for piece, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:500]}
    return [(piece, max(1, counts[piece])) for piece in sorted(single | common)]


def _t5(*, gated: bool, layers: int = LAYERS, heads: int = HEADS, head_dim: int = 8) -> Checkpoint:
    tokenizer = unigrams_t5()
    config = T5Config(
        vocab_size=len(tokenizer) + 3,  # published T5 checkpoints have more rows than their tokenizer has pieces
        d_model=HIDDEN,
        d_kv=head_dim,
        d_ff=64,
        num_layers=LAYERS,
        num_decoder_layers=layers,
        num_heads=heads,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=16,
        feed_forward_proj="gated-gelu" if gated else "relu",
        tie_word_embeddings=not gated,
        decoder_start_token_id=0,
    )
    model = T5ForConditionalGeneration(config)
    head = model.lm_head.weight.data
    if gated:
        head *= 2.0
        head[config.eos_token_id] *= 3.0
    else:
        head[config.eos_token_id] *= 2.0
        for block in model.decoder.block:
            self_attention, cross_attention, feed_forward = (layer for layer in block.layer)
            _scale(3.0, self_attention.SelfAttention.o)
            _scale(2.0, cross_attention.EncDecAttention.o)
            _scale(10.0, feed_forward.DenseReluDense.wo)
    return model, tokenizer


def _bart() -> Checkpoint:
    tokenizer = byte_pairs_bart()
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=HIDDEN,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=MAX_TOKENS,
        init_std=0.4,
        scale_embedding=True,
        forced_eos_token_id=None,
    )
    model = BartForConditionalGeneration(config)
    model.final_logits_bias.normal_()
    model.final_logits_bias[:, config.eos_token_id] += 4.0
    for layer in model.model.decoder.layers:
        _scale(0.4, layer.self_attn.out_proj)
        _scale(0.3, layer.encoder_attn.out_proj)
        _scale(2.0, layer.fc2)
    _scale(2.0, model.model.decoder.embed_positions)
    return model, tokenizer


def _encoder_decoder(*, bridge: bool) -> Checkpoint:
    tokenizer = word_pieces()
    encoder = BertModel(_bert_config(tokenizer), add_pooling_layer=False)
    wide = {"hidden_size": 48, "num_hidden_layers": 1} if bridge else {}
    config = _bert_config(tokenizer, is_decoder=True, add_cross_attention=True, **wide)
    model = EncoderDecoderModel(encoder=encoder, decoder=BertLMHeadModel(config))
    start, end, pad = tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id
    for settings in (model.config, model.generation_config):
        settings.decoder_start_token_id = settings.bos_token_id = start
        settings.eos_token_id, settings.pad_token_id = end, pad
    model.decoder.cls.predictions.bias.data[end] += 4.0 if bridge else 6.0
    for layer in model.decoder.bert.encoder.layer:
        _scale(0.4, layer.attention.output.dense)
        _scale(0.2, layer.crossattention.output.dense)
    _scale(3.0, model.decoder.bert.embeddings.position_embeddings)
    return model, tokenizer


def _bert_config(tokenizer: PreTrainedTokenizerFast, **other: Any) -> BertConfig:
    return BertConfig(
        **{
            "vocab_size": len(tokenizer),
            **SIZES,
            "max_position_embeddings": MAX_TOKENS,
            "initializer_range": 0.4,
            **other,
        }
    )


def _roberta() -> tuple[RobertaConfig, PreTrainedTokenizerFast]:
    tokenizer = byte_pairs_roberta()
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        **SIZES,
        max_position_embeddings=MAX_TOKENS + 2,  # its positions start after the padding index
        type_vocab_size=1,
        initializer_range=0.4,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    return config, tokenizer


def _albert() -> tuple[AlbertConfig, PreTrainedTokenizerFast]:
    tokenizer = unigrams_albert()
    config = AlbertConfig(
        vocab_size=len(tokenizer),
        embedding_size=16,
        **SIZES,
        max_position_embeddings=MAX_TOKENS,
        initializer_range=0.4,
    )
    return config, tokenizer


def _bert() -> tuple[BertConfig, PreTrainedTokenizerFast]:
    tokenizer = word_pieces()
    return _bert_config(tokenizer), tokenizer


def _gpt2() -> Checkpoint:
    tokenizer = byte_pairs_gpt2()
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=MAX_TOKENS,
        n_embd=HIDDEN,
        n_layer=LAYERS,
        n_head=HEADS,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config), tokenizer


def _bloom() -> Checkpoint:
    tokenizer = byte_pairs_bloom()
    config = BloomConfig(
        vocab_size=3 * 2048,  # published ones have more rows than pieces too, and here the head has several blocks
        hidden_size=48,
        n_layer=LAYERS,
        n_head=6,  # ALiBi computes the slopes by a second rule where the number of heads is no power of two
        initializer_range=0.3,
        seq_length=MAX_TOKENS,
        pad_token_id=3,
    )
    return BloomForCausalLM(config), tokenizer


def _opt() -> Checkpoint:
    tokenizer = byte_pairs_opt()
    config = OPTConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        word_embed_proj_dim=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        ffn_dim=64,
        max_position_embeddings=MAX_TOKENS,
        init_std=0.3,
    )
    return OPTForCausalLM(config), tokenizer


def _llama() -> Checkpoint:
    tokenizer = byte_pairs_opt()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=MAX_TOKENS,
        initializer_range=0.3,
    )
    return LlamaForCausalLM(config), tokenizer


def _qwen3() -> Checkpoint:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = byte_pairs_opt()
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        **SIZES,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=MAX_TOKENS,
        initializer_range=0.3,
        bos_token_id=2,
        eos_token_id=2,
        pad_token_id=1,
    )
    return Qwen3ForCausalLM(config), tokenizer


ENCODERS: dict[str, tuple[Callable[[], tuple[Any, PreTrainedTokenizerFast]], Any, Any]] = {
    "albert": (_albert, AlbertForQuestionAnswering, AlbertForSequenceClassification),
    "bert": (_bert, BertForQuestionAnswering, BertForSequenceClassification),
    "roberta": (_roberta, RobertaForQuestionAnswering, RobertaForSequenceClassification),
}


def _extractive_qa(family: str) -> Checkpoint:
    settings, architecture, _ = ENCODERS[family]
    config, tokenizer = settings()
    model = architecture(config)
    # Start and end nearly agree, so that answers are short and equal a span now and then, like those of trained models.
    with torch.no_grad():
        head = model.qa_outputs.weight
        head[1] = head[0] + 0.35 * head[1]
    return model, tokenizer


def _classifier(family: str, labels: tuple[str, ...]) -> Checkpoint:
    settings, _, architecture = ENCODERS[family]
    config, tokenizer = settings()
    config.num_labels = len(labels)
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}
    return architecture(config), tokenizer


def _deberta(labels: tuple[str, ...]) -> Checkpoint:
    tokenizer = word_pieces()
    config = DebertaV2Config(
        **_named(labels),
        vocab_size=len(tokenizer),
        pooler_hidden_size=HIDDEN,
        **SIZES,
        max_position_embeddings=MAX_TOKENS,
        initializer_range=0.3,
        relative_attention=True,
        position_buckets=8,
        pos_att_type=["p2c", "c2p"],
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        position_biased_input=False,
        type_vocab_size=0,
    )
    return DebertaV2ForSequenceClassification(config), tokenizer


def _modernbert_classifier(labels: tuple[str, ...]) -> Checkpoint:
    from transformers import ModernBertForSequenceClassification

    config, tokenizer = _modernbert_settings(labels)
    return ModernBertForSequenceClassification(config), tokenizer


def _qwen3_classifier(labels: tuple[str, ...]) -> Checkpoint:
    from transformers import Qwen3Config, Qwen3ForSequenceClassification

    tokenizer = byte_pairs_gpt2()
    tokenizer.pad_token = tokenizer.eos_token
    config = Qwen3Config(
        **_named(labels),
        **SIZES,
        vocab_size=len(tokenizer),
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=MAX_TOKENS,
        initializer_range=0.3,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen3ForSequenceClassification(config), tokenizer


def _encoder_decoder_classifier(family: str, labels: tuple[str, ...]) -> Checkpoint:
    from transformers import BartForSequenceClassification, T5ForSequenceClassification

    model, tokenizer = ENCODER_DECODERS[family]()
    model.config.update(_named(labels))
    architecture = T5ForSequenceClassification if family == "t5" else BartForSequenceClassification
    return architecture(model.config), tokenizer


def _bert_token_classifier() -> Checkpoint:
    config, tokenizer = _bert()
    config.update(_named(FLAGS))
    return BertForTokenClassification(config), tokenizer


def _modernbert() -> Checkpoint:
    from transformers import ModernBertForTokenClassification

    config, tokenizer = _modernbert_settings(FLAGS)
    return ModernBertForTokenClassification(config), tokenizer


def _modernbert_settings(labels: tuple[str, ...]) -> tuple[Any, PreTrainedTokenizerFast]:
    # Importing it takes seconds, because it compiles.
    from transformers import ModernBertConfig

    tokenizer = word_pieces()
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    config = ModernBertConfig(
        **_named(labels),
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        hidden_size=HIDDEN,
        num_hidden_layers=3,
        num_attention_heads=HEADS,
        intermediate_size=64,
        max_position_embeddings=MAX_TOKENS,
        initializer_range=0.3,
        local_attention=16,  # shorter than the texts, so that its window matters
        global_attn_every_n_layers=2,
        reference_compile=False,
    )
    return config, tokenizer


def _named(labels: tuple[str, ...]) -> dict[str, Any]:
    return {
        "num_labels": len(labels),
        "id2label": dict(enumerate(labels)),
        "label2id": {label: index for index, label in enumerate(labels)},
    }


def _headless(family: str) -> Checkpoint:
    settings, architecture = HEADLESS[family]
    config, tokenizer = settings()
    config.num_hidden_layers = LAYERS + 1  # so that cutting one off leaves several
    return architecture(config), tokenizer


def _mpnet() -> tuple[MPNetConfig, PreTrainedTokenizerFast]:
    tokenizer = word_pieces_mpnet()
    config = MPNetConfig(
        vocab_size=len(tokenizer),
        **SIZES,
        max_position_embeddings=MAX_TOKENS + 2,
        initializer_range=0.4,
        pad_token_id=1,
    )
    return config, tokenizer


HEADLESS: dict[str, tuple[Callable[[], tuple[Any, PreTrainedTokenizerFast]], Any]] = {
    "albert": (_albert, AlbertModel),
    "bert": (_bert, BertModel),
    "mpnet": (_mpnet, MPNetModel),
    "roberta": (_roberta, RobertaModel),
}
EMBEDDERS: dict[str, Callable[[], Checkpoint]] = {name: (lambda name=name: _headless(name)) for name in HEADLESS}
ENCODER_DECODERS: dict[str, Callable[[], Checkpoint]] = {
    "t5": lambda: _t5(gated=False),
    "t5-gated": lambda: _t5(gated=True),
    "bart": _bart,
    "bert": lambda: _encoder_decoder(bridge=False),
    "bert-bridged": lambda: _encoder_decoder(bridge=True),
}
EXTRACTIVE_QA: dict[str, Callable[[], Checkpoint]] = {
    name: (lambda name=name: _extractive_qa(name)) for name in ENCODERS
}
LANGUAGE_MODELS: dict[str, Callable[[], Checkpoint]] = {
    "gpt2": _gpt2,
    "bloom": _bloom,
    "opt": _opt,
    "llama": _llama,
    "qwen3": _qwen3,
}
CLASSIFIERS: dict[str, Callable[[tuple[str, ...]], Checkpoint]] = {
    name: (lambda labels, name=name: _classifier(name, labels)) for name in ENCODERS
} | {
    "deberta": lambda labels: _deberta(labels),
    "modernbert": lambda labels: _modernbert_classifier(labels),
    "qwen3": lambda labels: _qwen3_classifier(labels),
    "t5": lambda labels: _encoder_decoder_classifier("t5", labels),
    "bart": lambda labels: _encoder_decoder_classifier("bart", labels),
}
TOKEN_CLASSIFIERS: dict[str, Callable[[], Checkpoint]] = {
    "bert": lambda: _bert_token_classifier(),
    "modernbert": lambda: _modernbert(),
}


def _make_writer(families: Mapping[str, Callable[[], Checkpoint]]) -> Callable[..., Path]:
    def write(folder: Path, family: str, seed: int = 0) -> Path:
        """Write a tiny model of one of the families; return ``folder``."""
        return _save(folder, seed, families[family])

    return write


encoder_decoder = _make_writer(ENCODER_DECODERS)
extractive_qa = _make_writer(EXTRACTIVE_QA)
token_classifier = _make_writer(TOKEN_CLASSIFIERS)
language_model = _make_writer(LANGUAGE_MODELS)
embedder = _make_writer(EMBEDDERS)

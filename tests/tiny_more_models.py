"""A LLaVA-1.5, a SmolVLM and an InstructBLIP with a T5, small enough to build in a test: random
weights, their libraries' own tokenizers.

As in `tiny_model.py` the images move the output. As a script:
``python tests/tiny_more_models.py llava|smolvlm|instructblip FOLDER [SEED]``.
"""

import sys
from pathlib import Path

import yaml

WORDS = [
    "Yes",
    "No",
    "yes",
    "no",
    "maybe",
    "figure",
    "show",
    "image",
    "answer",
    "Does",
    "this",
    "the",
    "USER",
    "ASSISTANT",
]
SPREAD = 0.15  # as initialiser; with the usual 0.02 the image hardly moves the output

# The wording of the template that LLaVA-1.5 was trained with, without its system line: a space ends
# an answer, no token.
VICUNA = """\
{%- for message in messages -%}
{{- message['role'].upper() + ': ' -}}
{%- for part in message['content'] if part['type'] == 'image' -%}{{- '<image>\\n' -}}{%- endfor -%}
{%- for part in message['content'] if part['type'] == 'text' -%}{{- part['text'] + ' ' -}}{%- endfor -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}
"""


# The wording of SmolVLM's template, and the tokens that its processor puts around an image and its
# tiles.
SMOLVLM = """\
{{- '<|im_start|>' -}}
{%- for message in messages -%}
{{- message['role'] | capitalize + ':' -}}
{%- for part in message['content'] -%}
{{- '<image>' if part['type'] == 'image' else ' ' + part['text'] -}}
{%- endfor -%}
{{- '<end_of_utterance>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}
"""
AROUND_IMAGES = (
    *("<image>", "<fake_token_around_image>", "<global-img>", "<|im_start|>"),
    "<end_of_utterance>",
)


def build_llava(folder: Path, seed: int = 0) -> Path:
    """CLIP and a Llama of two layers each, with Llama 2's tokenizer and Vicuna's template."""
    from transformers import CLIPImageProcessor, LlavaProcessor

    tokenizer = llama_tokenizer()
    crop = {"height": 28, "width": 28}
    images = CLIPImageProcessor(size={"shortest_edge": 28}, crop_size=crop)
    about = {"patch_size": 14, "vision_feature_select_strategy": "default"}
    about |= {"num_additional_image_tokens": 1, "chat_template": VICUNA}
    processor = LlavaProcessor(images, tokenizer, **about)
    processor.save_pretrained(folder)
    _seeded(_llava, tokenizer, seed).save_pretrained(folder)
    return Path(folder)


def build_smolvlm(folder: Path, seed: int = 0) -> Path:
    """A SigLIP and a Llama of two layers each, of SmolVLM's class (Idefics3)."""
    from transformers import Idefics3ImageProcessor, Idefics3Processor

    tokenizer = llama_tokenizer(*AROUND_IMAGES)
    most = {"max_image_size": {"longest_edge": 28}}
    images = Idefics3ImageProcessor(size={"longest_edge": 56}, **most)
    about = {"image_seq_len": 1, "chat_template": SMOLVLM}
    Idefics3Processor(images, tokenizer, **about).save_pretrained(folder)
    _seeded(_smolvlm, tokenizer, seed).save_pretrained(folder)
    return Path(folder)


def build_instructblip(folder: Path, seed: int = 0) -> Path:
    """A vision encoder, a query transformer and a T5 of two layers each, with T5's tokenizer."""
    from transformers import BlipImageProcessor, InstructBlipProcessor

    images = BlipImageProcessor(size={"height": 28, "width": 28})
    tokenizers = (t5_tokenizer(), bert_tokenizer())
    processor = InstructBlipProcessor(images, *tokenizers, num_query_tokens=4)
    processor.save_pretrained(folder)
    _seeded(_instructblip, processor, seed).save_pretrained(folder)
    return Path(folder)


def llama_tokenizer(*special):
    """Llama's tokenizer with special tokens of a model, by themselves `<image>`."""
    from transformers import LlamaTokenizer

    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{n:02X}>" for n in range(256))]
    pieces += ["▁", *map(chr, range(33, 127))]
    merges = []
    for word in WORDS:
        made = "▁"
        for letter in word:
            merges.append((made, letter))
            made += letter
            pieces.append(made)
    vocabulary = {piece: n for n, piece in enumerate(dict.fromkeys(pieces))}
    about = {"add_bos_token": True, "pad_token": "<pad>", "model_max_length": 2048}
    about["extra_special_tokens"] = list(special or ("<image>",))
    merges = list(dict.fromkeys(merges))
    return LlamaTokenizer(vocab=vocabulary, merges=merges, **about)


def t5_tokenizer():
    from transformers import T5Tokenizer

    words = [(f"▁{word}", -3.0) for word in WORDS]
    letters = [(chr(n), -8.0) for n in range(33, 127)]
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [*words, *letters]
    return T5Tokenizer(vocab=pieces, extra_ids=0)


def bert_tokenizer():
    from transformers import BertTokenizer

    letters = [chr(number) for number in range(33, 127)]
    words = [word.lower() for word in WORDS]
    words += [sign for letter in letters for sign in (letter, f"##{letter}")]
    pieces = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    return BertTokenizer(vocab=vocabulary, padding_side="right")


SIZES = yaml.safe_load("""
most: &most {hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, num_attention_heads: 2}
small: &small {hidden_size: 32, intermediate_size: 64, num_hidden_layers: 2, num_attention_heads: 2,
               initializer_range: 0.15}
seen: &seen {image_size: 28, patch_size: 14}
llama: {<<: *most, model_type: llama, num_key_value_heads: 2, initializer_range: 0.15}
clip: {<<: [*most, *seen], model_type: clip_vision_model}
siglip: {<<: [*most, *seen], initializer_range: 0.15}
blip: {<<: [*small, *seen]}
queries: {<<: *small, max_position_embeddings: 512}
t5: {model_type: t5, d_model: 32, d_kv: 16, d_ff: 64, num_layers: 2, num_heads: 2,
     feed_forward_proj: gated-gelu, decoder_start_token_id: 0}
""")
WHOLE = {"initializer_range": SPREAD, "dtype": "float32"}


def _llama(tokenizer, end):
    own = {"vocab_size": len(tokenizer), "bos_token_id": tokenizer.bos_token_id}
    own |= {"eos_token_id": end, "pad_token_id": tokenizer.pad_token_id}
    return {**SIZES["llama"], **own}


def _llava(tokenizer):
    from transformers import LlavaConfig, LlavaForConditionalGeneration

    text = _llama(tokenizer, tokenizer.eos_token_id)
    parts = {"vision_config": SIZES["clip"], "text_config": text}
    parts["image_token_index"] = tokenizer.convert_tokens_to_ids("<image>")
    config = LlavaConfig(**parts, image_seq_length=4, **WHOLE)
    return LlavaForConditionalGeneration(config)


def _smolvlm(tokenizer):
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration

    end = tokenizer.convert_tokens_to_ids("<end_of_utterance>")
    parts = {"vision_config": SIZES["siglip"], "text_config": _llama(tokenizer, end)}
    parts["image_token_id"] = tokenizer.convert_tokens_to_ids("<image>")
    config = Idefics3Config(**parts, pad_token_id=tokenizer.pad_token_id, **WHOLE)
    return Idefics3ForConditionalGeneration(config)


def _instructblip(processor):
    import torch
    from transformers import InstructBlipConfig, InstructBlipForConditionalGeneration

    sizes = lambda name, tokens: {**SIZES[name], "vocab_size": len(tokens)}
    parts = {"vision_config": SIZES["blip"], "num_query_tokens": 4}
    parts["qformer_config"] = sizes("queries", processor.qformer_tokenizer)
    parts["text_config"] = sizes("t5", processor.tokenizer)
    image = processor.tokenizer.convert_tokens_to_ids("<image>")
    config = InstructBlipConfig(**parts, image_token_index=image, **WHOLE)
    model = InstructBlipForConditionalGeneration(config)
    # as made they are zero, and then no query asks for anything of its own
    with torch.no_grad():
        model.query_tokens.normal_()
    return model


def _seeded(make, argument, seed):
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(argument)


if __name__ == "__main__":
    named = zip(
        ("llava", "smolvlm", "instructblip"),
        (build_llava, build_smolvlm, build_instructblip),
        strict=True,
    )
    builders = dict(named)
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in builders:
        names = "|".join(builders)
        sys.exit(f"usage: python tests/tiny_more_models.py {names} FOLDER [SEED]")
    print(builders[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:])))

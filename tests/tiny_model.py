"""A Qwen2.5-VL small enough to build in a test: random weights, two layers, 3 MB.

It says nothing sensible, but everything around it is real: image processor, chat template,
tokenizer, likelihoods. Both transformers and vLLM load it without a network. Its answers depend on
the image.

As a script: ``python tests/tiny_model.py FOLDER [SEED]``.
"""

import sys
from pathlib import Path

import yaml

SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"),
)

# Each of these is one token, also after a space.
WORDS = ("Yes", "No", "yes", "no")

SENTENCES = """\
You are a professional digital artist who evaluates the effectiveness of an image by the rules below.
Does the image show what the text says? Please answer Yes or No.
From scale 0 to 10, rate how well the edited image follows the editing instruction and how natural it looks.
The first image is the source and the second image is the result; there are no artifacts, the shadows are right.
Put the score in a list: {"score": [8, 9], "reasoning": "The dog is there, and the background is not changed."}
system user assistant question answer caption object attribute explanation rating semantic consistency quality
""".splitlines()

SIZES = yaml.safe_load("""
text: {hidden_size: 128, intermediate_size: 256, num_hidden_layers: 2, num_attention_heads: 4,
       num_key_value_heads: 4, max_position_embeddings: 32768, initializer_range: 0.15,
       rope_parameters: {rope_type: default, rope_theta: 1000000.0, mrope_section: [4, 6, 6]}}
vision: {depth: 2, hidden_size: 64, intermediate_size: 128, num_heads: 2, out_hidden_size: 128,
         fullatt_block_indexes: [1], initializer_range: 0.15}
# with the usual 0.02 the image hardly moves the output
whole: {tie_word_embeddings: false, initializer_range: 0.15, dtype: float32}
""")

# How Qwen splits text before merging: words with the space before them, digits one by one.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| "
    r"?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\\n' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'text' -%}
{{- part['text'] -}}
{%- elif part['type'] in ('image', 'image_url') -%}
{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
{%- else -%}
{{- raise_exception('a part is text or an image') -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""


def build(folder, seed=0, texts=(), tokens=500, side=224):
    """Writes the model with its processor to a folder, the same for the same arguments, and returns
    the folder.

    Its tokens, at most so many, are learnt from sentences of ours and from `texts`; images are made
    smaller than `side` pixels square.
    """
    folder = Path(folder)
    tokenizer = _tokenizer(texts, tokens)
    _processor(tokenizer, side).save_pretrained(folder)
    _model(tokenizer, seed).save_pretrained(folder)
    return folder


def _tokenizer(texts, tokens):
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    splitting = pre_tokenizers.Split(Regex(SPLIT), behavior="isolated")
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([splitting, bytewise])
    bpe.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    learnt = {"vocab_size": tokens, "initial_alphabet": alphabet}
    learnt |= {"special_tokens": list(SPECIAL), "show_progress": False}
    trainer = trainers.BpeTrainer(**learnt)
    often = [text for word in WORDS for text in (word, f" {word}")] * 100
    bpe.train_from_iterator([*SENTENCES, *often, *texts], trainer)
    missing = [text for text in often[:8] if len(bpe.encode(text).ids) != 1]
    assert not missing, f"not single tokens: {missing}"
    ends = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    others = [token for token in SPECIAL if token not in ends.values()]
    about = {"chat_template": CHAT_TEMPLATE, "model_max_length": 32768}
    about["additional_special_tokens"] = others
    return PreTrainedTokenizerFast(tokenizer_object=bpe, **ends, **about)


def _processor(tokenizer, side):
    from transformers import (
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    # 4 to 64 tokens an image of at most 224 pixels square
    pixels = {"shortest_edge": 56 * 56, "longest_edge": side * side}
    images = Qwen2VLImageProcessor(size=pixels)
    videos = Qwen2VLVideoProcessor(size=pixels)
    parts = {"image_processor": images, "video_processor": videos}
    return Qwen2_5_VLProcessor(
        tokenizer=tokenizer, chat_template=CHAT_TEMPLATE, **parts
    )


def _model(tokenizer, seed):
    import torch
    from transformers import (
        GenerationConfig,
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
    )

    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    number = lambda name: tokenizer.convert_tokens_to_ids(f"<|{name}|>")
    text = {**SIZES["text"], "vocab_size": len(tokenizer), "bos_token_id": None}
    text |= {"eos_token_id": end, "pad_token_id": pad}
    names = {"image": "image_pad", "video": "video_pad"}
    names |= {name: name for name in ("vision_start", "vision_end")}
    tokens = {f"{kind}_token_id": number(name) for kind, name in names.items()}
    parts = {"text_config": text, "vision_config": SIZES["vision"]}
    config = Qwen2_5_VLConfig(**parts, **tokens, **SIZES["whole"])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2_5_VLForConditionalGeneration(config)
    ends = {"eos_token_id": [end, pad], "pad_token_id": pad}
    model.generation_config = GenerationConfig(do_sample=False, **ends)
    return model


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python tests/tiny_model.py FOLDER [SEED]")
    print(build(Path(sys.argv[1]), *map(int, sys.argv[2:])))

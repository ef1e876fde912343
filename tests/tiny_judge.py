"""A LLaVA small enough to learn to judge drawn edits from nothing: random weights, words as tokens, images of 48 pixels.

A patch is a ninth of a drawn scene, so that what an edit changes is one token. As a script:
``python tests/tiny_judge.py FOLDER [SEED]``.
"""

import sys
from pathlib import Path

WIDTH, PIXELS, PATCH = 128, 48, 16
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{- message['role'] + ': ' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{{- '<image>' if part['type'] in ('image', 'image_url') else part['text'] -}}
{%- endfor -%}
{%- endif -%}
{{- '<end>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- 'assistant: ' -}}
{%- endif -%}
"""
SPECIAL = ("<pad>", "<end>", "<image>", "<unknown>")


def build(folder: Path, texts, seed: int = 0) -> Path:
    """Writes the model with its processor to a folder; its tokens are the words, digits and signs of `texts`."""
    folder = Path(folder)
    tokenizer = _tokenizer(texts)
    _processor(tokenizer).save_pretrained(folder)
    _model(tokenizer, seed).save_pretrained(folder)
    return folder


def _tokenizer(texts):
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    # a space goes with the word behind it, so that what is decoded is what was encoded
    splitting = pre_tokenizers.Split(Regex(r" ?[A-Za-z]+|\d|\s|[^\sA-Za-z\d]"), behavior="isolated")
    words = {piece for text in [*texts, "user: ", "assistant: "] for piece, _ in splitting.pre_tokenize_str(text)}
    words |= {f"{space}{word.strip()}" for word in words for space in ("", " ") if word.strip().isalpha()}
    known = [*SPECIAL, *sorted(words | set("0123456789. \n"))]
    whole = Tokenizer(models.WordLevel({word: n for n, word in enumerate(known)}, unk_token="<unknown>"))
    whole.pre_tokenizer = splitting
    whole.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=whole,
        eos_token="<end>",
        pad_token="<pad>",
        unk_token="<unknown>",
        additional_special_tokens=["<image>"],
        chat_template=CHAT_TEMPLATE,
        model_max_length=2048,
    )


def _processor(tokenizer):
    from transformers import CLIPImageProcessor, LlavaProcessor

    sizes = {"size": {"shortest_edge": PIXELS}, "crop_size": {"height": PIXELS, "width": PIXELS}}
    return LlavaProcessor(
        CLIPImageProcessor(**sizes),
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token="<image>",
        chat_template=CHAT_TEMPLATE,
    )


def _model(tokenizer, seed):
    import torch
    from transformers import GenerationConfig, LlavaConfig, LlavaForConditionalGeneration

    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    size = {"hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "num_attention_heads": 4}
    config = LlavaConfig(
        text_config={
            **size,
            "model_type": "llama",
            "vocab_size": len(tokenizer),
            "num_hidden_layers": 3,
            "max_position_embeddings": 2048,
            "bos_token_id": None,
            "eos_token_id": end,
            "pad_token_id": pad,
        },
        vision_config={
            **size,
            "model_type": "clip_vision_model",
            "num_hidden_layers": 1,
            "image_size": PIXELS,
            "patch_size": PATCH,
        },
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=(PIXELS // PATCH) ** 2,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        tie_word_embeddings=False,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlavaForConditionalGeneration(config)
    model.generation_config = GenerationConfig(do_sample=False, eos_token_id=[end, pad], pad_token_id=pad)
    return model

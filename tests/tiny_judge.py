"""A LLaVA small enough to learn to judge drawn edits from nothing: random weights, words as tokens,
images side by side.

A patch is a strip across both images, and the first layer begins by comparing the two halves of it.
Without that, learning to compare takes longer than a test may.
"""

import re
from itertools import product, starmap
from pathlib import Path

WIDTH, DEPTH, HEIGHT, STRIPS = 96, 2, 48, 3
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{- message['role'] + ':\n' -}}
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
{{- 'assistant:\n' -}}
{%- endif -%}
"""
SPREAD = 0.1  # with the usual 0.02 the images hardly move the output, and learning does not begin
# a strip has thousands of pixels: with small ones a step of the optimiser changes what is seen of
# them a little only
DIM, COMPARING, LOOKING = 4.0, 2.0, 0.25
SPECIAL = ("<pad>", "<end>", "<image>", "<unknown>")


def build(folder: Path, texts, wording, seed: int = 0) -> Path:
    """Writes the model with its processor to a folder; the same for the same arguments.

    Its tokens are the words, digits and signs of `texts`, and each line of a prompt pack's
    questions as a whole: what all questions have in common costs a few tokens that way, and a step
    a third of the time.
    """
    folder = Path(folder)
    tokenizer = _tokenizer(texts, _phrases(wording))
    _processor(tokenizer).save_pretrained(folder)
    _model(tokenizer, seed).save_pretrained(folder)
    return folder


def _phrases(wording):
    from vieval_plugin.judges.adiee.question import (
        ANSWERS,
        QUESTIONS,
        Form,
        answer_text,
        question_text,
    )

    keys = lambda kind: [key for key in wording.questions if key.startswith(kind)]
    said = [answer_text(answer, "@", wording) for answer in keys(ANSWERS)]
    forms = list(starmap(Form, product(keys(QUESTIONS), keys(ANSWERS))))
    ways = product(("two", "joined"), ("token", "sentence", "number"))
    for way, form in product(ways, forms):
        said.append(question_text("@", form, wording, *way))
    lines = [line for text in said for line in text.split("\n")]
    parts = {part.strip() for line in lines for part in line.split("@")}
    return sorted(part for part in parts if len(part) > 1)


def _tokenizer(texts, phrases):
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    # a space goes with the word behind it, so that what is decoded is what was encoded
    wholes = [re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True)]
    pattern = "|".join([*wholes, r" ?[A-Za-z]+", r"\d", r"\s", r"[^\sA-Za-z\d]"])
    splitting = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    spoken = [*texts, "user:", "assistant:"]
    words = {it for text in spoken for it, _ in splitting.pre_tokenize_str(text)}
    letters = [word.strip() for word in words if word.strip().isalpha()]
    words |= {f"{space}{word}" for word in letters for space in ("", " ")}
    known = [*SPECIAL, *sorted(words | {*phrases, *"0123456789. \n"})]
    numbered = {word: number for number, word in enumerate(known)}
    whole = Tokenizer(models.WordLevel(numbered, unk_token="<unknown>"))
    whole.pre_tokenizer = splitting
    whole.decoder = decoders.Fuse()
    marks = {"eos_token": "<end>", "pad_token": "<pad>", "unk_token": "<unknown>"}
    marks["additional_special_tokens"] = ["<image>"]
    about = {"chat_template": CHAT_TEMPLATE, "model_max_length": 2048}
    return PreTrainedTokenizerFast(tokenizer_object=whole, **marks, **about)


def _processor(tokenizer):
    from transformers import LlavaProcessor, ViTImageProcessor

    size = {"height": HEIGHT, "width": 2 * HEIGHT}
    range_ = {"image_mean": [0.5] * 3, "image_std": [DIM] * 3}
    # the processor knows square patches only; of these there are as many as of the strips
    about = {"patch_size": 2 * HEIGHT // STRIPS, "num_additional_image_tokens": 1}
    about |= {"image_token": "<image>", "chat_template": CHAT_TEMPLATE}
    about["vision_feature_select_strategy"] = "default"
    return LlavaProcessor(ViTImageProcessor(size=size, **range_), tokenizer, **about)


def _model(tokenizer, seed):
    import torch
    from transformers import (
        GenerationConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
    )

    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    size = {"hidden_size": WIDTH, "intermediate_size": 2 * WIDTH}
    size |= {"num_attention_heads": 4, "initializer_range": SPREAD}
    text = {**size, "model_type": "llama", "num_hidden_layers": DEPTH}
    text |= {"vocab_size": len(tokenizer), "max_position_embeddings": 2048}
    text |= {"bos_token_id": None, "eos_token_id": end, "pad_token_id": pad}
    vision = {**size, "model_type": "vit", "num_hidden_layers": 1}
    vision |= {"image_size": (HEIGHT, 2 * HEIGHT)}
    vision |= {"patch_size": (HEIGHT // STRIPS, 2 * HEIGHT)}
    vision |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    about = {"image_token_index": tokenizer.convert_tokens_to_ids("<image>")}
    about |= {"image_seq_length": STRIPS, "vision_feature_layer": -1}
    about |= {"vision_feature_select_strategy": "default", "dtype": "float32"}
    about |= {"initializer_range": SPREAD, "tie_word_embeddings": False}
    config = LlavaConfig(text_config=text, vision_config=vision, **about)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlavaForConditionalGeneration(config)
        patches = model.model.vision_tower.embeddings.patch_embeddings
        _begin_with_differences(patches.projection.weight)
    ends = {"eos_token_id": [end, pad], "pad_token_id": pad}
    model.generation_config = GenerationConfig(do_sample=False, **ends)
    return model


def _begin_with_differences(weight):
    """Half of a cell's features see the left image less the right one, the others the right one."""
    import torch

    features, cell = len(weight) // STRIPS, HEIGHT // STRIPS
    drawn = torch.empty_like(weight).normal_()
    with torch.no_grad():
        weight.zero_()
        for column in range(STRIPS):
            middle, end = column * features + features // 2, (column + 1) * features
            cells = lambda half, n=column: slice(half + n * cell, half + (n + 1) * cell)
            left, right = cells(0), cells(HEIGHT)
            comparing, looking = slice(column * features, middle), slice(middle, end)
            weight[comparing, :, :, right] = COMPARING * drawn[comparing, :, :, right]
            weight[comparing, :, :, left] = -COMPARING * drawn[comparing, :, :, right]
            weight[looking, :, :, right] = LOOKING * drawn[looking, :, :, right]

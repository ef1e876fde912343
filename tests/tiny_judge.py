"""A LLaVA small enough to learn to judge drawn edits from nothing: random weights, words as tokens,
images side by side.

A patch is a strip across both images, and the first layer begins by comparing the two halves of it.
Without that, learning to compare takes longer than a test may.
"""

import itertools
import re
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

    questions, answers = (
        [key for key in wording.questions if key.startswith(kind)]
        for kind in (QUESTIONS, ANSWERS)
    )
    said = [answer_text(answer, "@", wording) for answer in answers]
    for images, reading in itertools.product(
        ("two", "joined"), ("token", "sentence", "number")
    ):
        forms = [Form(question, answer) for question in questions for answer in answers]
        said += [question_text("@", form, wording, images, reading) for form in forms]
    parts = {
        part.strip()
        for text in said
        for line in text.split("\n")
        for part in line.split("@")
    }
    return sorted(part for part in parts if len(part) > 1)


def _tokenizer(texts, phrases):
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    # a space goes with the word behind it, so that what is decoded is what was encoded
    wholes = [re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True)]
    pattern = "|".join([*wholes, r" ?[A-Za-z]+", r"\d", r"\s", r"[^\sA-Za-z\d]"])
    splitting = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    words = {
        piece
        for text in [*texts, "user:", "assistant:"]
        for piece, _ in splitting.pre_tokenize_str(text)
    }
    words |= {
        f"{space}{word.strip()}"
        for word in words
        for space in ("", " ")
        if word.strip().isalpha()
    }
    known = [*SPECIAL, *sorted(words | {*phrases, *"0123456789. \n"})]
    whole = Tokenizer(
        models.WordLevel(
            {word: n for n, word in enumerate(known)}, unk_token="<unknown>"
        )
    )
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
    from transformers import LlavaProcessor, ViTImageProcessor

    return LlavaProcessor(
        ViTImageProcessor(
            size={"height": HEIGHT, "width": 2 * HEIGHT},
            image_mean=[0.5] * 3,
            image_std=[DIM] * 3,
        ),
        tokenizer,
        # the processor knows square patches only; of these there are as many as of the strips
        patch_size=2 * HEIGHT // STRIPS,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token="<image>",
        chat_template=CHAT_TEMPLATE,
    )


def _model(tokenizer, seed):
    import torch
    from transformers import (
        GenerationConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
    )

    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    size = {
        "hidden_size": WIDTH,
        "intermediate_size": 2 * WIDTH,
        "num_attention_heads": 4,
        "initializer_range": SPREAD,
    }
    config = LlavaConfig(
        text_config={
            **size,
            "model_type": "llama",
            "vocab_size": len(tokenizer),
            "num_hidden_layers": DEPTH,
            "max_position_embeddings": 2048,
            "bos_token_id": None,
            "eos_token_id": end,
            "pad_token_id": pad,
        },
        vision_config={
            **size,
            "model_type": "vit",
            "num_hidden_layers": 1,
            "image_size": (HEIGHT, 2 * HEIGHT),
            "patch_size": (HEIGHT // STRIPS, 2 * HEIGHT),
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        },
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=STRIPS,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        initializer_range=SPREAD,
        tie_word_embeddings=False,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlavaForConditionalGeneration(config)
        _begin_with_differences(
            model.model.vision_tower.embeddings.patch_embeddings.projection.weight
        )
    model.generation_config = GenerationConfig(
        do_sample=False, eos_token_id=[end, pad], pad_token_id=pad
    )
    return model


def _begin_with_differences(weight):
    """Of each cell in a strip, half of its features see the left image less the right one, the
    others the right one.
    """
    import torch

    features, cell = len(weight) // STRIPS, HEIGHT // STRIPS
    drawn = torch.empty_like(weight).normal_()
    with torch.no_grad():
        weight.zero_()
        for column in range(STRIPS):
            middle, end = column * features + features // 2, (column + 1) * features
            left, right = (
                slice(half + column * cell, half + (column + 1) * cell)
                for half in (0, HEIGHT)
            )
            comparing, looking = slice(column * features, middle), slice(middle, end)
            weight[comparing, :, :, right] = COMPARING * drawn[comparing, :, :, right]
            weight[comparing, :, :, left] = -COMPARING * drawn[comparing, :, :, right]
            weight[looking, :, :, right] = LOOKING * drawn[looking, :, :, right]

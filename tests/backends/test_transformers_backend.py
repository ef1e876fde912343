"""Likelihoods through transformers, against computations written here anew: one question at a time,
without padding.

The models are tiny, with random weights, made by the tests.
"""

import io
import math
import sys
from pathlib import Path

import PIL.Image
import pytest

from tests import tiny_model, tiny_more_models
from tests.picture_questions import PICTURES, QUESTION, ask, drawn, likelihood
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Image,
    Likelihood,
    Message,
    Probabilities,
    Status,
)
from vieval_plugin.text.errors import VievalError

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from vieval_plugin.backends.local.huggingface import TransformersBackend, _Row  # noqa: E402

BUILDERS = {
    "qwen": tiny_model.build,
    "llava": tiny_more_models.build_llava,
    "smolvlm": tiny_more_models.build_smolvlm,
    "instructblip": tiny_more_models.build_instructblip,
}
ENDS = {
    "qwen": "<|im_end|>",
    "llava": "</s>",
    "smolvlm": "<end_of_utterance>",
    "instructblip": "</s>",
}
DECODERS = ("qwen", "llava", "smolvlm")


def close(value):
    return pytest.approx(value, abs=1e-5, rel=1e-4)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders of the tiny models, by name."""
    return {
        name: build(tmp_path_factory.mktemp(name)) for name, build in BUILDERS.items()
    }


@pytest.fixture(scope="module")
def backends(folders):
    return {
        name: TransformersBackend(str(folder), usage=Usage(), batch_size=4)
        for name, folder in folders.items()
    }


@pytest.fixture(params=list(BUILDERS))
def name(request):
    return request.param


@pytest.fixture
def backend(backends, name):
    return backends[name]


@pytest.fixture(scope="module")
def direct(folders):
    """Log-probabilities of an answer's tokens and of the end after them, of one question, from a
    model of its own.
    """
    from transformers import AutoModelForImageTextToText, AutoProcessor

    loaded = {
        name: (
            AutoProcessor.from_pretrained(folder),
            AutoModelForImageTextToText.from_pretrained(folder),
        )
        for name, folder in folders.items()
    }

    def compute(name, image, question, answer):
        processor, model = loaded[name]
        picture = PIL.Image.open(io.BytesIO(image.source)).convert("RGB")
        target = processor.tokenizer(answer, add_special_tokens=False).input_ids
        target.append(processor.tokenizer.convert_tokens_to_ids(ENDS[name]))
        if name == "instructblip":
            inputs = processor(images=picture, text=question, return_tensors="pt")
            with torch.no_grad():
                logits = model(**inputs, labels=torch.tensor([target])).logits[0]
        else:
            before = {
                "qwen": "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>{}<|im_end|>\n<|im_start|>assistant\n",
                "llava": "USER: <image>\n{} ASSISTANT:",
                "smolvlm": "<|im_start|>User:<image> {}<end_of_utterance>\nAssistant:",
            }[name].format(question)
            joined = (
                before
                + (" " if name in ("llava", "smolvlm") else "")
                + answer
                + ENDS[name]
            )
            inputs = processor(images=picture, text=joined, return_tensors="pt")
            assert inputs.input_ids[0, -len(target) :].tolist() == target
            with torch.no_grad():
                logits = model(**inputs).logits[0, -len(target) - 1 : -1]
        return torch.log_softmax(logits, -1)[range(len(target)), target].tolist()

    return compute


@pytest.mark.parametrize("image", PICTURES)
def test_first_token_is_the_softmax_after_the_prompt(backend, direct, name, image):
    [reply] = ask(backend, likelihood(image))
    expected = [
        math.exp(direct(name, image, QUESTION.format("figure"), answer)[0])
        for answer in ("Yes", "No")
    ]
    assert reply.low == reply.high == close(tuple(expected))


@pytest.mark.parametrize("answer", ["Yes", "Yes this", "maybe no figure"])
def test_sequence_mean_takes_in_the_end_of_the_turn(backend, direct, name, answer):
    [reply] = ask(
        backend,
        likelihood(PICTURES[1], continuations=(answer,), definition="sequence_mean"),
    )
    values = direct(name, PICTURES[1], QUESTION.format("figure"), answer)
    assert reply.low == reply.high == close((math.exp(sum(values) / len(values)),))


@pytest.mark.parametrize("image", PICTURES[:2])
def test_a_beginning_is_all_its_tokens_and_none_of_a_longer_one_asked_for(
    backend, direct, name, image
):
    """A ten is two tokens, after a third one for the space in Llama's; "Yes this" goes on where
    "Yes" ends.
    """
    texts = ("1", "10", "7", "Yes", "Yes this")
    [reply] = ask(
        backend, likelihood(image, continuations=texts, definition="beginning")
    )
    whole = {
        text: math.exp(sum(direct(name, image, QUESTION.format("figure"), text)[:-1]))
        for text in texts
    }
    assert len(direct(name, image, QUESTION.format("figure"), "10")) > 2
    expected = [
        whole["1"] - whole["10"],
        whole["10"],
        whole["7"],
        whole["Yes"] - whole["Yes this"],
        whole["Yes this"],
    ]
    assert reply.low == reply.high == pytest.approx(tuple(expected), abs=0, rel=1e-4)
    [again] = ask(
        backend, likelihood(image, continuations=texts[:1], definition="beginning")
    )
    assert again.low == pytest.approx((whole["1"],), abs=0, rel=1e-4)


def test_the_probabilities_of_the_whole_vocabulary_sum_to_one(backend):
    size = len(backend._tokenizer)
    [[first]] = backend._log_probabilities(
        [_Row(likelihood(PICTURES[2]).messages, (), (tuple(range(size)),))]
    )
    assert sum(map(math.exp, first.values())) == pytest.approx(1, abs=1e-5)


def test_answers_do_not_depend_on_the_batch(folders, name):
    """Prompts of several lengths, images of several sizes, answers of several lengths."""
    asks = [
        likelihood(
            image,
            "figure " * length,
            ("Yes", "maybe no", "no Yes this image"),
            definition,
        )
        for length, image in enumerate(PICTURES * 2)
        for definition in ("first_token", "sequence_mean")
    ]
    alone, some, reverse = (
        TransformersBackend(str(folders[name]), usage=Usage(), batch_size=n)
        for n in (1, 5, 64)
    )
    expected = ask(alone, *asks)
    assert len({reply.low for reply in expected}) == len(asks)
    for replies in (ask(some, *asks), ask(reverse, *asks[::-1])[::-1]):
        for reply, other in zip(replies, expected, strict=True):
            assert reply.low == close(other.low)


def test_a_continuation_of_several_tokens_is_no_first_token(backend):
    [reply] = ask(
        backend, likelihood(PICTURES[0], continuations=("Yes", "Yes this", ""))
    )
    assert reply.low[0] > 0
    assert reply.low[1:] == (0.0, 0.0)


def test_two_ways_of_writing_one_token_are_counted_once(backend, name):
    definitions = ("first_token", "sequence_mean")
    for reply in ask(
        backend,
        *(
            likelihood(PICTURES[0], continuations=("Yes", " Yes"), definition=d)
            for d in definitions
        ),
    ):
        assert reply.low[0] > 0
        assert (reply.low[1] > 0) == (name == "qwen")


def test_the_turn_ends_with_the_templates_token(folders, backends, tmp_path):
    assert {
        name: b._tokenizer.convert_ids_to_tokens(b._end) for name, b in backends.items()
    } == ENDS
    moved = Path(folders["qwen"])
    for file in moved.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    template = (
        (tmp_path / "chat_template.jinja")
        .read_text()
        .replace("'<|im_end|>\\n'", "'<|endoftext|>\\n'")
    )
    (tmp_path / "chat_template.jinja").write_text(template)
    other = TransformersBackend(str(tmp_path), usage=Usage())
    assert other._tokenizer.convert_ids_to_tokens(other._end) == "<|endoftext|>"


def test_a_prompt_begins_once(folders, backends, tmp_path):
    """Templates differ in whether they write the token that sequences begin with, or leave it to
    the tokenizer.
    """
    for file in Path(folders["llava"]).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    template = tmp_path / "chat_template.jinja"
    template.write_text("{{- bos_token -}}" + template.read_text())
    for backend in (
        backends["llava"],
        TransformersBackend(str(tmp_path), usage=Usage()),
    ):
        tokens = backend._inputs(
            [likelihood(image).messages for image in PICTURES[:2]]
        )["input_ids"]
        assert (tokens == backend._tokenizer.bos_token_id).sum(1).tolist() == [1, 1]


@pytest.mark.parametrize("definition", ["first_token", "sequence_mean"])
def test_a_bad_image_fails_by_itself(backend, definition, tmp_path):
    bad = Image(b"no image"), Image(tmp_path / "missing.png")
    images = (PICTURES[0], bad[0], PICTURES[1], PICTURES[2], bad[1])
    replies = ask(
        backend, *(likelihood(image, definition=definition) for image in images)
    )
    good = ask(
        backend, *(likelihood(image, definition=definition) for image in PICTURES)
    )
    assert [replies[n].low for n in (0, 2, 3)] == [close(reply.low) for reply in good]
    assert [replies[n].status for n in (1, 4)] == [Status.TOOL_ERROR] * 2
    assert "missing.png does not exist" in replies[4].reason


def test_an_image_the_processor_refuses_fails_by_itself(backends):
    thin, fine = ask(
        backends["qwen"], likelihood(drawn(1, 600, 2)), likelihood(PICTURES[0])
    )
    assert thin.status is Status.API_ERROR
    assert "aspect ratio" in thin.reason
    assert isinstance(fine, Probabilities)


@pytest.mark.parametrize("images", [(), PICTURES[:2]])
def test_an_encoder_decoder_takes_one_image(backends, images):
    other, fine = ask(
        backends["instructblip"],
        Likelihood(
            (Message("user", (*images, "Does this show the figure?")),),
            ("Yes",),
            ("q",),
        ),
        likelihood(PICTURES[0]),
    )
    assert isinstance(other, Failure)
    assert "exactly one image" in other.reason
    assert isinstance(fine, Probabilities)


@pytest.mark.parametrize("name", DECODERS)
def test_conversations_with_several_images_and_with_none(backends, name):
    several = Message("user", (PICTURES[0], "this", PICTURES[1], "the image"))
    turns = (
        Message("user", ("Does this show?",)),
        Message("assistant", ("maybe",)),
        several,
    )
    text = Message("user", ("Yes or No?",))
    asks = [
        Likelihood(messages, ("Yes",), ("q",))
        for messages in (turns, (text,), (several,))
    ]
    together = ask(backends[name], *asks)
    assert [reply.low for reply in together] == [
        close(ask(backends[name], one)[0].low) for one in asks
    ]


def test_chats_are_answered_greedily_up_to_their_limits(backend):
    messages, limits = likelihood(PICTURES[0]).messages, (1, 3, 6)
    texts = ask(
        backend, *(Chat(messages, ("q",), max_tokens=limit) for limit in limits)
    )
    [[first]] = backend._log_probabilities(
        [_Row(messages, (), (tuple(range(len(backend._tokenizer))),))]
    )
    assert texts[0].text == backend._tokenizer.decode(
        [max(first, key=first.get)], skip_special_tokens=True
    )
    assert all(
        text.output_tokens <= limit for text, limit in zip(texts, limits, strict=True)
    )
    assert texts[0].cut
    assert not any(
        text.cut and text.output_tokens < limit
        for text, limit in zip(texts, limits, strict=True)
    )
    assert texts[2].text.startswith(texts[1].text)
    assert {text.input_tokens for text in texts} == {
        int(backend._inputs([messages])["attention_mask"].sum())
    }


def test_a_temperature_is_refused(folders):
    warm = TransformersBackend(
        str(folders["qwen"]), usage=Usage(), sampling=Sampling(temperature=0.7)
    )
    with pytest.raises(VievalError, match="set temperature to 0"):
        ask(warm, Chat((Message("user", ("hello",)),), ("q",)))
    assert isinstance(ask(warm, likelihood(PICTURES[0]))[0], Probabilities)


def test_replies_are_stored_under_all_they_depend_on(folders, tmp_path):
    def made(**options):
        return TransformersBackend(
            str(folders["llava"]),
            usage=Usage(),
            store=Store(tmp_path / "store"),
            **options,
        )

    asks = [
        likelihood(PICTURES[0], definition=d) for d in ("first_token", "sequence_mean")
    ] + [likelihood(PICTURES[1])]
    first, again, coarse = made(), made(), made(dtype="bfloat16")
    replies = ask(first, *asks)
    assert ask(again, *asks) == replies
    assert (first.usage.calls, again.usage.calls, again.usage.cached) == (3, 0, 3)
    assert ask(coarse, *asks) != replies
    assert coarse.usage.calls == 3


def test_what_is_missing_is_said(monkeypatch, folders, tmp_path):
    with pytest.raises(VievalError, match="as a transformers image-text model"):
        TransformersBackend(str(tmp_path), usage=Usage())
    with pytest.raises(
        VievalError,
        match="cannot load .* unexpected keyword argument 'max_tokens'",
    ):
        TransformersBackend(str(folders["qwen"]), usage=Usage(), max_tokens=9)
    for library in ("torch", "transformers"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, library, None)
            with pytest.raises(
                VievalError, match=f"cannot import {library} .*pip install"
            ):
                TransformersBackend(str(folders["qwen"]), usage=Usage())


def test_a_decoder_without_a_chat_template_is_refused(folders, tmp_path):
    for file in Path(folders["llava"]).iterdir():
        if file.name != "chat_template.jinja":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(VievalError, match="has no chat template"):
        TransformersBackend(str(tmp_path), usage=Usage())

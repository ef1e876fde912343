"""Likelihoods through transformers, against computations written here anew: one question at a time,
without padding.

The models are tiny, with random weights, made by the tests.
"""

import io
import math
import shutil
import sys
from functools import partial

import PIL.Image
import pytest

from tests import tiny_model, tiny_more_models
from tests.picture_questions import PICTURES, QUESTION, ask, drawn, likelihood
from tests.refusals import refuses
from vieval_plugin import Status
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.judges.protocol import Chat, Likelihood, Message, Probabilities

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from vieval_plugin.backends.local.huggingface import TransformersBackend, _Row  # noqa: E402

BUILDERS = {
    "qwen": tiny_model.build,
    "llava": tiny_more_models.build_llava,
    "smolvlm": tiny_more_models.build_smolvlm,
    "instructblip": tiny_more_models.build_instructblip,
}
ENDS = {"qwen": "<|im_end|>", "smolvlm": "<end_of_utterance>"}
ENDS |= dict.fromkeys(("llava", "instructblip"), "</s>")
DECODERS = ("qwen", "llava", "smolvlm")
IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
PROMPTS = {
    "qwen": f"<|im_start|>user\n{IMAGE}{{}}<|im_end|>\n<|im_start|>assistant\n",
    "llava": "USER: <image>\n{} ASSISTANT: ",
    "smolvlm": "<|im_start|>User:<image> {}<end_of_utterance>\nAssistant: ",
}


def close(value):
    return pytest.approx(value, abs=1e-5, rel=1e-4)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders of the tiny models, by name."""
    builders = BUILDERS.items()
    return {name: build(tmp_path_factory.mktemp(name)) for name, build in builders}


@pytest.fixture(scope="module")
def backends(folders):
    return {name: opened(folder, batch_size=4) for name, folder in folders.items()}


def opened(folder, **options):
    return TransformersBackend(str(folder), usage=Usage(), **options)


@pytest.fixture(params=list(BUILDERS))
def name(request):
    return request.param


@pytest.fixture
def backend(backends, name):
    return backends[name]


@pytest.fixture(scope="module")
def direct(folders):
    """Log-probabilities of an answer's tokens and the end after them, by another model."""
    from transformers import AutoModelForImageTextToText, AutoProcessor

    kinds = (AutoProcessor, AutoModelForImageTextToText)
    loaded = {n: [k.from_pretrained(f) for k in kinds] for n, f in folders.items()}

    def compute(name, image, question, answer):
        processor, model = loaded[name]
        tokenizer = processor.tokenizer
        picture = PIL.Image.open(io.BytesIO(image.source)).convert("RGB")
        target = tokenizer(answer, add_special_tokens=False).input_ids
        target.append(tokenizer.convert_tokens_to_ids(ENDS[name]))
        with torch.no_grad():
            if name == "instructblip":
                inputs = processor(images=picture, text=question, return_tensors="pt")
                logits = model(**inputs, labels=torch.tensor([target])).logits[0]
            else:
                joined = PROMPTS[name].format(question) + answer + ENDS[name]
                inputs = processor(images=picture, text=joined, return_tensors="pt")
                assert inputs.input_ids[0, -len(target) :].tolist() == target
                logits = model(**inputs).logits[0, -len(target) - 1 : -1]
        return torch.log_softmax(logits, -1)[range(len(target)), target].tolist()

    return compute


@pytest.mark.parametrize("image", PICTURES)
def test_first_token_is_the_softmax_after_the_prompt(backend, direct, name, image):
    [reply] = ask(backend, likelihood(image))
    logs = [direct(name, image, FIGURE, answer)[0] for answer in ("Yes", "No")]
    assert reply.low == reply.high == close(tuple(map(math.exp, logs)))


FIGURE = QUESTION.format("figure")


@pytest.mark.parametrize("answer", ["Yes", "Yes this", "maybe no figure"])
def test_sequence_mean_takes_in_the_end_of_the_turn(backend, direct, name, answer):
    about = {"continuations": (answer,), "definition": "sequence_mean"}
    [reply] = ask(backend, likelihood(PICTURES[1], **about))
    values = direct(name, PICTURES[1], FIGURE, answer)
    assert reply.low == reply.high == close((math.exp(sum(values) / len(values)),))


@pytest.mark.parametrize("image", PICTURES[:2])
def test_a_beginning_excludes_longer_ones_asked_for(backend, direct, name, image):
    """A ten is two tokens, and "Yes this" goes on where "Yes" ends."""
    texts = ("1", "10", "7", "Yes", "Yes this")
    begun = lambda texts: likelihood(image, continuations=texts, definition="beginning")
    [reply] = ask(backend, begun(texts))
    logs = {text: direct(name, image, FIGURE, text)[:-1] for text in texts}
    one, ten, seven, yes, this = (math.exp(sum(logs[text])) for text in texts)
    assert len(logs["10"]) > 1
    expected = (one - ten, ten, seven, yes - this, this)
    assert reply.low == reply.high == pytest.approx(expected, abs=0, rel=1e-4)
    [again] = ask(backend, begun(texts[:1]))
    assert again.low == pytest.approx((one,), abs=0, rel=1e-4)


def next_tokens(backend, messages):
    """The log-probability of each token of the vocabulary after a prompt."""
    every = tuple(range(len(backend._tokenizer)))
    [[first]] = backend._log_probabilities([_Row(messages, (), (every,))])
    return first


def test_answers_do_not_depend_on_the_batch(folders, name):
    """Prompts of several lengths, images of several sizes, answers of several lengths."""
    words, asks = ("Yes", "maybe no", "no Yes this image"), []
    for length, image in enumerate(PICTURES * 2):
        for definition in ("first_token", "sequence_mean"):
            asks.append(likelihood(image, "figure " * length, words, definition))
    alone, some, reverse = (opened(folders[name], batch_size=n) for n in (1, 5, 64))
    expected = ask(alone, *asks)
    assert len({reply.low for reply in expected}) == len(asks)
    for replies in (ask(some, *asks), ask(reverse, *asks[::-1])[::-1]):
        for reply, other in zip(replies, expected, strict=True):
            assert reply.low == close(other.low)


@pytest.mark.parametrize("definition", ["first_token", "sequence_mean"])
def test_a_token_is_counted_once_and_several_are_no_first_token(
    backend, name, definition
):
    words = ("Yes", " Yes", "Yes this", "")
    [reply] = ask(backend, likelihood(PICTURES[0], "figure", words, definition))
    assert reply.low[0] > 0
    # to some tokenizers "Yes" and " Yes" are one token
    assert (reply.low[1] > 0) == (name == "qwen")
    if definition == "first_token":
        assert reply.low[2:] == (0.0, 0.0)


def copied(folder, to):
    """A backend of the files of a folder, and the template that it is about to read."""
    shutil.copytree(folder, to, dirs_exist_ok=True)
    return to / "chat_template.jinja"


def test_the_turn_ends_with_the_templates_token(folders, backends, tmp_path):
    end_of = lambda backend: backend._tokenizer.convert_ids_to_tokens(backend._end)
    assert {name: end_of(backend) for name, backend in backends.items()} == ENDS
    template = copied(folders["qwen"], tmp_path)
    other = template.read_text().replace("'<|im_end|>\\n'", "'<|endoftext|>\\n'")
    template.write_text(other)
    assert end_of(opened(tmp_path)) == "<|endoftext|>"


def test_a_prompt_begins_once(folders, backends, tmp_path):
    """Templates write the first token of a sequence, or leave it to the tokenizer."""
    template = copied(folders["llava"], tmp_path)
    template.write_text("{{- bos_token -}}" + template.read_text())
    messages = [likelihood(image).messages for image in PICTURES[:2]]
    for backend in (backends["llava"], opened(tmp_path)):
        read = backend._inputs(messages)["input_ids"]
        begun = read == backend._tokenizer.bos_token_id
        assert begun.sum(1).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "images", "reason"),
    [
        ("qwen", (drawn(1, 600, 2),), "aspect ratio"),
        ("instructblip", (), "exactly one image"),
        ("instructblip", PICTURES[:2], "exactly one image"),
    ],
)
def test_images_that_the_processor_refuses_fail_by_themselves(
    backends, name, images, reason
):
    message = Message("user", (*images, "Does this show the figure?"))
    asks = Likelihood((message,), ("Yes",), ("q",)), likelihood(PICTURES[0])
    refused, fine = ask(backends[name], *asks)
    assert refused.status in (Status.API_ERROR, Status.TOOL_ERROR)
    assert reason in refused.reason
    assert isinstance(fine, Probabilities)


@pytest.mark.parametrize("name", DECODERS)
def test_conversations_with_several_images_and_with_none(backends, name):
    several = Message("user", (PICTURES[0], "this", PICTURES[1], "the image"))
    asked = Message("user", ("Does this show?",))
    turns = (asked, Message("assistant", ("maybe",)), several), (asked,), (several,)
    asks = [Likelihood(messages, ("Yes",), ("q",)) for messages in turns]
    together = ask(backends[name], *asks)
    alone = [ask(backends[name], one)[0] for one in asks]
    for reply, other in zip(together, alone, strict=True):
        assert reply.low == close(other.low)


def test_chats_are_answered_greedily_up_to_their_limits(backend):
    messages, limits = likelihood(PICTURES[0]).messages, (1, 3, 6)
    asks = [Chat(messages, ("q",), max_tokens=limit) for limit in limits]
    texts = ask(backend, *asks)
    first = next_tokens(backend, messages)
    likeliest = [max(first, key=first.get)]
    decoded = backend._tokenizer.decode(likeliest, skip_special_tokens=True)
    assert texts[0].text == decoded
    assert texts[0].cut
    asked = int(backend._inputs([messages])["attention_mask"].sum())
    for text, limit in zip(texts, limits, strict=True):
        assert text.output_tokens <= limit
        assert not (text.cut and text.output_tokens < limit)
        assert text.input_tokens == asked
    assert texts[2].text.startswith(texts[1].text)


def test_likelihoods_are_stored_under_all_they_depend_on(folders, tmp_path):
    made = partial(opened, folders["llava"], store=Store(tmp_path / "store"))
    mean = likelihood(PICTURES[0], definition="sequence_mean")
    asks = [likelihood(PICTURES[0]), mean, likelihood(PICTURES[1])]
    coarse = made(dtype="bfloat16")
    replies = ask(made(), *asks)
    assert ask(made(), *asks) == replies
    assert ask(coarse, *asks) != replies
    assert coarse.usage.calls == 3


def test_what_is_missing_is_said(monkeypatch, folders, tmp_path):
    qwen = folders["qwen"]
    refuses("as a transformers image-text model", opened, tmp_path)
    unexpected = "cannot load .* unexpected keyword argument 'max_tokens'"
    refuses(unexpected, opened, qwen, max_tokens=9)
    copied(folders["llava"], tmp_path).unlink()
    refuses("has no chat template", opened, tmp_path)
    for library in ("torch", "transformers"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, library, None)
            refuses(f"cannot import {library} .*pip install", opened, qwen)
    warm = opened(qwen, sampling=Sampling(temperature=0.7))
    hello = Chat((Message("user", ("hello",)),), ("q",))
    refuses("set temperature to 0", ask, warm, hello)
    assert isinstance(ask(warm, likelihood(PICTURES[0]))[0], Probabilities)

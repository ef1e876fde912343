"""Test value heads beside direct computations with transformers and torch."""

import re
import shutil
from dataclasses import replace

import PIL.Image
import pytest

from tests import tiny_heads, tiny_model, tiny_more_models
from tests.backends.value_heads import asks, describe, measure, near, size_of, values
from tests.extras import needs
from tests.refusals import refusal
from tests.tables import table
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Failure, Measurement

pytestmark = [
    needs("torch", "transformers", "torchvision", "peft"),
    pytest.mark.usefixtures("no_downloads"),
]

SCORE = "[SCORE]"


@pytest.fixture(scope="session")
def bases(tmp_path_factory):
    """Tiny models with an adapter that brings a token of its own."""
    folder = tmp_path_factory.mktemp("bases")
    qwen = tiny_model.build(folder / "qwen")
    tiny_more_models.build_llava(folder / "llava")
    tiny_heads.build_adapter(folder / "lora", qwen)
    tiny_heads.build_adapter(folder / "with token", qwen, added=[SCORE])
    return {name: folder / name for name in ("qwen", "llava", "lora", "with token")}


@pytest.fixture
def head(tmp_path):
    """A linear head for the tiny Qwen."""
    return tiny_heads.build_head(tmp_path / "head.safetensors", (128, 1))


def directly(base, head_file, one, place, adapter=None, added=(), shown=None, **spoken):
    """The number by the steps of the libraries' documentation; `place` finds the token."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(base)
    network = AutoModelForImageTextToText.from_pretrained(base, dtype="float32")
    if adapter:
        from peft import PeftModel

        if added:
            processor.tokenizer.add_tokens(list(added), special_tokens=True)
            network.resize_token_embeddings(len(processor.tokenizer))
        network = PeftModel.from_pretrained(network, adapter)
    inputs = inputs_of(processor, one, shown, **spoken)
    with torch.inference_mode():
        outputs = network.eval()(**inputs, output_hidden_states=True)
        ids = inputs["input_ids"][0].tolist()
        state = outputs.hidden_states[-1][0][place(ids, processor.tokenizer)]
        value = through(head_file, state, spoken.get("prefix", ""))
    return float(value[spoken.get("output", 0)])


def inputs_of(processor, one, shown=None, system="", answer="", **_):
    """What a processor makes of an ask in its chat template."""
    images = shown or [decode(image) for image in one.images.values()]
    words = [{"type": "text", "text": one.texts["text"]}]
    turns = [{"role": "user", "content": [{"type": "image"} for _ in images] + words}]
    if system:
        said = [{"type": "text", "text": system}]
        turns.insert(0, {"role": "system", "content": said})
    template = {"add_generation_prompt": True, "tokenize": False}
    text = processor.apply_chat_template(turns, **template) + answer
    return processor(text=[text], images=[images], return_tensors="pt")


def through(head_file, value, prefix=""):
    """A vector through the layers of a file, with a bend between them."""
    import torch
    from safetensors.torch import load_file

    dot = f"{prefix}." if prefix else ""
    files = load_file(head_file).items()
    held = {name.removeprefix(dot): one for name, one in files if name.startswith(dot)}
    numbers = sorted({int(name.split(".")[0]) for name in held})
    for n in numbers:
        value = value @ held[f"{n}.weight"].T + held.get(f"{n}.bias", torch.zeros(()))
        value = value.relu() if n != numbers[-1] else value
    return value


def last(ids, tokenizer):
    return len(ids) - 1


def at(token, shift=0):
    return lambda ids, words: ids.index(words.convert_tokens_to_ids(token)) + shift


@pytest.mark.parametrize("base", ["qwen", "llava"])
def test_a_head_at_the_last_token_is_what_the_libraries_compute(bases, base, tmp_path):
    sizes = (size_of(bases[base]), 48, 1)
    head = tiny_heads.build_head(tmp_path / "head.safetensors", sizes)
    folder = describe(tmp_path, {"base": bases[base], "head": "head.safetensors"})
    found = measure(folder, asks())
    wanted = [directly(bases[base], head, one, last) for one in asks()]
    assert values(found) == near(wanted)
    assert len({round(value, 3) for value in wanted}) == 6  # images and texts do matter
    assert all(reply.by.startswith("head@sha256:") for reply in found)


@pytest.mark.parametrize(("position", "shift"), [("at", 0), ("before", -1)])
def test_the_head_reads_at_an_adapters_token(bases, position, shift, tmp_path):
    head = tiny_heads.build_head(tmp_path / "head.safetensors", (128, 128, 1))
    qwen, adapter = bases["qwen"], bases["with token"]
    network = {"base": qwen, "adapter": adapter, "added_tokens": [SCORE], "head": head}
    spoken = {"answer": f"It is {SCORE}", "system": "You are a critic."}
    network |= {**spoken, "position": {position: SCORE}}
    given = (at(SCORE, shift), adapter, [SCORE])
    wanted = [directly(qwen, head, one, *given, **spoken) for one in asks()]
    found = measure(describe(tmp_path / "described", network), asks())
    assert values(found) == near(wanted)


def test_a_head_of_several_outputs_within_other_weights(bases, tmp_path):
    """As reward models keep theirs: named, with dropout between layers, and two outputs."""
    file, sizes = tmp_path / "all.safetensors", (128, 64, 16, 2)
    head = tiny_heads.build_head(file, sizes, prefix="rm_head", step=3)
    network = {"base": bases["qwen"], "adapter": bases["lora"], "head": head}
    found = []
    for output in (0, 1):
        about = {"prefix": "rm_head", "output": output}
        folder = describe(tmp_path / str(output), {**network, **about})
        found.append(values(measure(folder, asks(2))))
        given = {"adapter": bases["lora"], **about}
        wanted = [directly(bases["qwen"], head, one, last, **given) for one in asks(2)]
        assert found[output] == near(wanted)
    assert found[0] != found[1]


def test_a_linear_head_without_bias_from_a_plain_state_dict(bases, tmp_path):
    import torch
    from safetensors.torch import save_file

    weight = torch.randn(1, 128, generator=torch.Generator().manual_seed(3))
    torch.save({"v_head.weight": weight}, tmp_path / "head.bin")
    save_file({"0.weight": weight}, tmp_path / "same.safetensors")
    network = {"base": bases["qwen"], "head": "head.bin", "prefix": "v_head"}
    [one] = asks(1)
    [found] = measure(describe(tmp_path, network), [one])
    wanted = directly(bases["qwen"], tmp_path / "same.safetensors", one, last)
    assert found.value == near(wanted, 1e-4)


def test_images_side_by_side_are_one_image(bases, head, tmp_path):
    network = {"base": bases["qwen"], "head": head, "side_by_side": True}
    [one] = asks(1)
    left, right = (decode(image) for image in one.images.values())
    whole = PIL.Image.new("RGB", (left.width + right.width, left.height))
    whole.paste(left, (0, 0))
    whole.paste(right, (left.width, 0))
    [found] = measure(describe(tmp_path, network), [one])
    assert found.value == near(directly(bases["qwen"], head, one, last, shown=[whole]))


def test_tokens_of_images_may_count_like_those_of_words(bases, head, tmp_path):
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    qwen = bases["qwen"]
    network = {"base": qwen, "head": head, "positions": "sequential"}
    [one] = asks(1)
    inputs = inputs_of(AutoProcessor.from_pretrained(qwen), one)
    model = AutoModelForImageTextToText.from_pretrained(qwen, dtype="float32").eval()
    with torch.inference_mode():
        # what the language model does of itself when it is given vectors and no positions
        inner = model.model
        vectors = inner.get_input_embeddings()(inputs["input_ids"])
        pixels = inputs["pixel_values"], inputs["image_grid_thw"]
        shown = torch.cat(list(inner.get_image_features(*pixels).pooler_output))
        vectors[inputs["input_ids"] == model.config.image_token_id] = shown
        state = inner.language_model(inputs_embeds=vectors).last_hidden_state[0, -1]
    [found] = measure(describe(tmp_path, network), [one])
    assert found.value == near(float(through(head, state)[0]))
    assert found.value != near(directly(qwen, head, one, last), 1e-2)


def test_another_head_precision_or_size_of_images_is_another_question(bases, tmp_path):
    store, found, usage = Store(tmp_path / "s"), [], Usage()
    heads = []
    for seed in (0, 1):
        file = tmp_path / f"{seed}.safetensors"
        heads.append(tiny_heads.build_head(file, (128, 1), seed=seed))
    known = {"base": bases["qwen"], "head": heads[0]}
    others = {"head": heads[1]}, {"max_pixels": 56 * 56}, {"dtype": "bfloat16"}
    for number, more in enumerate(({}, *others)):
        folder = describe(tmp_path / str(number), {**known, **more})
        asked = asks(1, sizes=((224, 224),))
        found += values(measure(folder, asked, store, usage))
    assert (len(set(found)), usage.cached) == (4, 0)


@pytest.mark.parametrize(
    "text", [f"I am {SCORE}", "<|vision_start|><|image_pad|><|vision_end|>"]
)
def test_a_text_with_tokens_of_the_template_has_no_number(bases, head, tmp_path, text):
    """A text with the token that the head reads at would choose what is read."""
    network = {"base": bases["qwen"], "adapter": bases["with token"], "head": head}
    network |= {"added_tokens": [SCORE], "answer": SCORE, "position": {"at": SCORE}}
    [one] = asks(1)
    asked = replace(one, texts={"text": text})
    [found] = measure(describe(tmp_path / "described", network), [asked])
    assert isinstance(found, Failure)
    assert "\n" not in found.reason


# What cannot be: one line each, before anything is measured.


def refused(folder, images=2, **options):
    return refusal(measure, folder, asks(1, images), **options)


@pytest.mark.parametrize(*table("wrong_value_heads.jsonl"))
def test_what_a_description_cannot_say(bases, tmp_path, network, further, line):
    whole = {"base": bases["qwen"], "head": "head.safetensors", **network}
    known = {key: value for key, value in whole.items() if value is not None}
    assert line in refused(describe(tmp_path, known, **further))


NO_MANIFESTS = {"[1, 2]": "a manifest must be a mapping", "a: [": "not a manifest"}


def test_what_is_no_description(tmp_path):
    for text, line in NO_MANIFESTS.items():
        (tmp_path / "manifest.yaml").write_text(text)
        assert line in refused(tmp_path)
    assert "not a prompt pack" in refused(tmp_path / "nothing")
    assert "no such file" in refused(tmp_path / "nothing.yaml")


@pytest.mark.parametrize(*table("misfit_value_heads.jsonl"))
def test_weights_that_are_not_there_or_do_not_fit(bases, tmp_path, network, line):
    import torch

    tiny_heads.build_head(tmp_path / "good.safetensors", (128, 1), prefix="rm_head")
    tiny_heads.build_head(tmp_path / "wide.safetensors", (64, 1), prefix="rm_head")
    torch.save({"rm_head.0.weight": print}, tmp_path / "hostile.bin")
    (tmp_path / "words.bin").write_text("root:x:0:0\n")
    for name in ("qwen", "lora"):
        (tmp_path / name).symlink_to(bases[name])
    known = {"base": "qwen", "head": "good.safetensors", "prefix": "rm_head", **network}
    for key in ("base", "adapter", "head"):
        if key in known and known[key] != "someone/nothing":
            known[key] = tmp_path / known[key]
    said = refused(describe(tmp_path / "described", known))
    assert line in said
    assert "wide.safetensors" not in said or "rm_head" not in said


def test_a_base_of_another_architecture(bases, head, scorer_weights, tmp_path):
    other = {"base": scorer_weights["dino"], "head": head}
    wrong = "of another architecture|no processor that handles both images and text"
    assert re.search(wrong, refused(describe(tmp_path / "a", other)))
    adapted = {"base": bases["llava"], "head": head, "adapter": bases["with token"]}
    assert "does not match its base model" in refused(describe(tmp_path / "b", adapted))


ONE_IMAGE = """\
{%- for message in messages -%}<|vision_start|><|image_pad|><|vision_end|>
{%- for part in message['content'] if part['type'] == 'text' -%}{{ part['text'] }}{%- endfor -%}
{%- endfor -%}"""


def test_a_processor_that_takes_one_image_where_two_are_asked(bases, head, tmp_path):
    base = shutil.copytree(bases["qwen"], tmp_path / "one")
    (base / "chat_template.jinja").write_text(ONE_IMAGE)
    network, folder = {"base": base, "head": head}, tmp_path / "described"
    line = refused(describe(folder, network))
    assert "does not support 2 images at once" in line
    assert "side_by_side: true" in line
    joined = describe(folder, {**network, "side_by_side": True})
    [found] = measure(joined, asks(1))
    assert isinstance(found, Measurement)

"""Value heads on image-text models, beside direct computations with transformers and torch on
the same weights.
"""

import json
import random
import textwrap

import PIL.Image
import pytest

from tests import tiny_heads, tiny_model, tiny_more_models
from tests.backends.value_heads import asks, describe, measure
from tests.extras import needs
from tests.refusals import refusal
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Failure, Measure, Measurement

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
    llava = tiny_more_models.build_llava(folder / "llava")
    tiny_heads.build_adapter(folder / "lora", qwen)
    tiny_heads.build_adapter(folder / "with token", qwen, added=[SCORE])
    return {
        "qwen": qwen,
        "llava": llava,
        "lora": folder / "lora",
        "with token": folder / "with token",
    }


def size_of(base):
    config = json.loads((base / "config.json").read_text())
    return config["text_config"]["hidden_size"]


def directly(
    base,
    head_file,
    one,
    place,
    adapter=None,
    added=(),
    answer="",
    system="",
    prefix="",
    output=0,
    shown=None,
):
    """The number by the steps of the libraries' own documentation, one ask at a time; `place`
    finds the token.
    """
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(base)
    network = AutoModelForImageTextToText.from_pretrained(base, dtype="float32")
    if adapter:
        from peft import PeftModel

        if added:
            processor.tokenizer.add_tokens(list(added), special_tokens=True)
            network.resize_token_embeddings(len(processor.tokenizer))
        network = PeftModel.from_pretrained(network, adapter)
    images = shown or [decode(image) for image in one.images.values()]
    content = [
        *({"type": "image"} for _ in images),
        {"type": "text", "text": one.texts["text"]},
    ]
    turns = [{"role": "user", "content": content}]
    if system:
        turns.insert(
            0, {"role": "system", "content": [{"type": "text", "text": system}]}
        )
    text = (
        processor.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        + answer
    )
    inputs = processor(text=[text], images=[images], return_tensors="pt")
    with torch.inference_mode():
        states = network.eval()(**inputs, output_hidden_states=True).hidden_states[-1][
            0
        ]
        ids = inputs["input_ids"][0].tolist()
        value = states[place(ids, processor.tokenizer)]
        held = load_file(head_file)
        dot = f"{prefix}." if prefix else ""
        numbers = sorted(
            {
                int(name.removeprefix(dot).split(".")[0])
                for name in held
                if name.startswith(dot)
            }
        )
        for n in numbers:
            value = value @ held[f"{dot}{n}.weight"].T + held.get(
                f"{dot}{n}.bias", torch.zeros(())
            )
            value = value.relu() if n != numbers[-1] else value
        return float(value[output])


def last(ids, tokenizer):
    return len(ids) - 1


def at(token):
    return lambda ids, tokenizer: ids.index(tokenizer.convert_tokens_to_ids(token))


def before(token):
    return lambda ids, tokenizer: ids.index(tokenizer.convert_tokens_to_ids(token)) - 1


@pytest.mark.parametrize("base", ["qwen", "llava"])
def test_a_head_at_the_last_token_is_what_the_libraries_compute(bases, base, tmp_path):
    head = tiny_heads.build_head(
        tmp_path / "head.safetensors", (size_of(bases[base]), 48, 1)
    )
    folder = describe(tmp_path, {"base": bases[base], "head": "head.safetensors"})
    found = measure(folder, asks())
    wanted = [directly(bases[base], head, one, last) for one in asks()]
    assert [reply.value for reply in found] == pytest.approx(wanted, abs=1e-5)
    assert len({round(value, 3) for value in wanted}) == 6  # images and texts do matter
    assert all(reply.by.startswith("head@sha256:") for reply in found)


@pytest.mark.parametrize(
    ("position", "place"),
    [({"at": SCORE}, at(SCORE)), ({"before": SCORE}, before(SCORE))],
)
def test_an_adapter_brings_a_token_and_the_head_reads_at_it_or_where_it_is_predicted(
    bases, position, place, tmp_path
):
    head = tiny_heads.build_head(tmp_path / "head.safetensors", (128, 128, 1))
    network = {
        "base": bases["qwen"],
        "adapter": bases["with token"],
        "added_tokens": [SCORE],
        "head": head,
    }
    spoken = {"answer": f"It is {SCORE}", "system": "You are a critic."}
    folder = describe(
        tmp_path / "described", {**network, **spoken, "position": position}
    )
    given = {"adapter": bases["with token"], "added": [SCORE], **spoken}
    wanted = [directly(bases["qwen"], head, one, place, **given) for one in asks()]
    assert [reply.value for reply in measure(folder, asks())] == pytest.approx(
        wanted, abs=1e-5
    )


def test_a_head_of_several_outputs_within_other_weights(bases, tmp_path):
    """As reward models keep theirs: under a name, with dropout between the layers, mean and
    spread as two outputs.
    """
    head = tiny_heads.build_head(
        tmp_path / "all.safetensors", (128, 64, 16, 2), prefix="rm_head", step=3
    )
    values = {}
    for output in (0, 1):
        network = {
            "base": bases["qwen"],
            "adapter": bases["lora"],
            "head": head,
            "prefix": "rm_head",
        }
        folder = describe(tmp_path / str(output), {**network, "output": output})
        values[output] = [reply.value for reply in measure(folder, asks(2))]
        given = {"adapter": bases["lora"], "prefix": "rm_head", "output": output}
        wanted = [directly(bases["qwen"], head, one, last, **given) for one in asks(2)]
        assert values[output] == pytest.approx(wanted, abs=1e-5)
    assert values[0] != values[1]


def test_a_linear_head_without_bias_from_a_plain_state_dict(bases, tmp_path):
    import torch

    weight = torch.randn(1, 128, generator=torch.Generator().manual_seed(3))
    torch.save({"v_head.weight": weight}, tmp_path / "head.bin")
    torch.save({"0.weight": weight}, tmp_path / "0.bin")
    from safetensors.torch import save_file

    save_file({"0.weight": weight}, tmp_path / "same.safetensors")
    folder = describe(
        tmp_path, {"base": bases["qwen"], "head": "head.bin", "prefix": "v_head"}
    )
    [one] = asks(1)
    [found] = measure(folder, [one])
    assert found.value == pytest.approx(
        directly(bases["qwen"], tmp_path / "same.safetensors", one, last), abs=1e-4
    )


def test_images_side_by_side_are_one_image(bases, tmp_path):
    head = tiny_heads.build_head(tmp_path / "head.safetensors", (128, 1))
    folder = describe(
        tmp_path,
        {"base": bases["qwen"], "head": "head.safetensors", "side_by_side": True},
    )
    [one] = asks(1)
    left, right = (decode(image) for image in one.images.values())
    whole = PIL.Image.new("RGB", (left.width + right.width, left.height))
    whole.paste(left, (0, 0))
    whole.paste(right, (left.width, 0))
    [found] = measure(folder, [one])
    assert found.value == pytest.approx(
        directly(bases["qwen"], head, one, last, shown=[whole]), abs=1e-5
    )


def test_positions_may_count_tokens_of_images_like_those_of_words(bases, tmp_path):
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForImageTextToText, AutoProcessor

    head = tiny_heads.build_head(tmp_path / "head.safetensors", (128, 1))
    folder = describe(
        tmp_path,
        {"base": bases["qwen"], "head": "head.safetensors", "positions": "sequential"},
    )
    [one] = asks(1)
    processor = AutoProcessor.from_pretrained(bases["qwen"])
    content = [
        {"type": "image"},
        {"type": "image"},
        {"type": "text", "text": one.texts["text"]},
    ]
    text = processor.apply_chat_template(
        [{"role": "user", "content": content}],
        add_generation_prompt=True,
        tokenize=False,
    )
    inputs = processor(
        text=[text],
        images=[[decode(i) for i in one.images.values()]],
        return_tensors="pt",
    )
    network = AutoModelForImageTextToText.from_pretrained(
        bases["qwen"], dtype="float32"
    ).eval()
    with torch.inference_mode():
        # what the language model does of itself when it is given vectors and no positions
        inner = network.model
        vectors = inner.get_input_embeddings()(inputs["input_ids"])
        shown = torch.cat(
            list(
                inner.get_image_features(
                    inputs["pixel_values"], inputs["image_grid_thw"]
                ).pooler_output
            )
        )
        vectors[inputs["input_ids"] == network.config.image_token_id] = shown
        state = inner.language_model(inputs_embeds=vectors).last_hidden_state[0, -1]
    held = load_file(head)
    wanted = float(state @ held["0.weight"][0] + held["0.bias"])
    [found] = measure(folder, [one])
    assert found.value == pytest.approx(wanted, abs=1e-5)
    assert found.value != pytest.approx(
        directly(bases["qwen"], head, one, last), abs=1e-2
    )


@pytest.mark.parametrize("base", ["qwen", "llava"])
def test_neither_the_batch_nor_its_order_matters(bases, base, tmp_path):
    tiny_heads.build_head(tmp_path / "head.safetensors", (size_of(bases[base]), 1))
    folder, asked = (
        describe(tmp_path, {"base": bases[base], "head": "head.safetensors"}),
        asks(20),
    )
    together = [reply.value for reply in measure(folder, asked, batch_size=16)]
    order = random.Random(0).sample(range(20), 20)
    shuffled = measure(folder, [asked[n] for n in order], batch_size=16)
    assert [reply.value for reply in shuffled] == pytest.approx(
        [together[n] for n in order], abs=1e-5
    )
    alone = measure(folder, asked, batch_size=1)
    assert [reply.value for reply in alone] == pytest.approx(together, abs=1e-5)


def test_fewer_pixels_and_single_precision_are_of_the_description(bases, tmp_path):
    values = set()
    for number, network in enumerate(
        [{}, {"max_pixels": 56 * 56}, {"dtype": "bfloat16"}]
    ):
        tiny_heads.build_head(tmp_path / str(number) / "head.safetensors", (128, 1))
        folder = describe(
            tmp_path / str(number),
            {"base": bases["qwen"], "head": "head.safetensors", **network},
        )
        [found] = measure(folder, asks(1, sizes=((224, 224),)))
        values.add(found.value)
    assert len(values) == 3


def test_a_second_run_comes_from_the_store_and_another_head_does_not(bases, tmp_path):
    store, usage = Store(tmp_path / "s"), Usage()
    for seed in (0, 1):
        tiny_heads.build_head(
            tmp_path / str(seed) / "head.safetensors", (128, 1), seed=seed
        )
        describe(
            tmp_path / str(seed), {"base": bases["qwen"], "head": "head.safetensors"}
        )
    first = measure(tmp_path / "0", asks(), store)
    assert measure(tmp_path / "0", asks(), store, usage) == first
    assert usage.cached == 6
    other = measure(tmp_path / "1", asks(), store, usage)
    assert usage.cached == 6
    assert [reply.value for reply in other] != [reply.value for reply in first]


def test_a_text_with_tokens_of_the_template_has_no_number(bases, tmp_path):
    """A sample that brings the token which the head reads at, or an image of its own, would
    choose what is read.
    """
    tiny_heads.build_head(tmp_path / "head.safetensors", (128, 1))
    network = {
        "base": bases["qwen"],
        "adapter": bases["with token"],
        "added_tokens": [SCORE],
    }
    network |= {"head": "head.safetensors", "answer": SCORE, "position": {"at": SCORE}}
    folder, [one] = describe(tmp_path, network), asks(1)
    for text in (f"I am {SCORE}", "<|vision_start|><|image_pad|><|vision_end|>"):
        [found] = measure(
            folder,
            [Measure(one.metric, one.images, one.path, {"text": text}, "scorer")],
        )
        assert isinstance(found, Failure)
        assert "\n" not in found.reason


# What cannot be: one line each, before anything is measured.


def refused(folder, images=2, **options):
    return refusal(measure, folder, asks(1, images), **options)


def test_a_description_with_an_unknown_key(bases, tmp_path):
    known = {"base": bases["qwen"], "head": "head.safetensors"}
    assert "unknown key network.hed; did you mean head?" in refused(
        describe(tmp_path / "a", {**known, "hed": "x"})
    )
    assert "unknown key questions.SC.imags; did you mean images?" in refused(
        describe(tmp_path / "b", known, imags=["a"])
    )
    assert "unknown key network.position" in refused(
        describe(tmp_path / "d", {**known, "position": {"after": "x"}})
    )


def test_what_a_description_cannot_say(bases, tmp_path):
    known = {"base": bases["qwen"], "head": "head.safetensors"}

    def said(name, network=None, **further):
        return refused(
            describe(tmp_path / name, {**known, **(network or {})}, **further)
        )

    assert "network: set exactly one of `head` and `weights`" in refused(
        describe(tmp_path / "no head", {"base": bases["qwen"]})
    )
    assert "one of text and template" in said("words", template="x.jinja")
    assert "is not in the folder" in said("outside", template="../x.jinja", text="")
    assert "is not in the folder" in said("absent", template="x.jinja", text="")
    assert "line 1" in said("jinja", text="{% for %}")
    assert "network.position" in said("both", {"position": {"at": "a", "before": "b"}})
    (tmp_path / "manifest.yaml").write_text("[1, 2]")
    assert "a manifest must be a mapping" in refused(tmp_path)
    (tmp_path / "manifest.yaml").write_text("a: [")
    assert "not a manifest" in refused(tmp_path)
    assert "not a prompt pack" in refused(tmp_path / "nothing")
    assert "no such file" in refused(tmp_path / "nothing.yaml")


def test_weights_that_are_not_there_or_do_not_fit(bases, tmp_path):
    import torch

    good = tiny_heads.build_head(
        tmp_path / "good.safetensors", (128, 1), prefix="rm_head"
    )
    known = {"base": bases["qwen"], "head": good, "prefix": "rm_head"}

    def said(name, **network):
        return refused(describe(tmp_path / name, {**known, **network}))

    assert "weights file not found" in said("a", head="/nowhere/head.safetensors")
    assert "has no weights under 'value'; correct network.prefix" in said(
        "b", prefix="value"
    )
    wide = tiny_heads.build_head(
        tmp_path / "wide.safetensors", (64, 1), prefix="rm_head"
    )
    assert "rm_head" not in (line := said("c", head=wide))
    assert "0.weight must accept vectors of length 128, got shape (1, 64)" in line
    torch.save({"rm_head.0.weight": print}, tmp_path / "hostile.bin")
    assert "contains more than tensors" in said("d", head=tmp_path / "hostile.bin")
    (tmp_path / "words.bin").write_text("root:x:0:0\n")
    assert "is not a weights file" in said("i", head=tmp_path / "words.bin")
    assert (
        "network.output must be less than 1, the number of outputs of the head, got 3"
        in said("e", output=3)
    )
    assert "weights folder not found" in said("f", base="/nowhere")
    assert (
        "not on this machine and cannot be downloaded from the Hugging Face Hub"
        in said("g", base="someone/nothing")
    )
    assert "has no adapter_config.json" in said("h", adapter=tmp_path)
    assert "weights folder not found" in said("i", adapter="/nowhere")
    assert f"'{SCORE}' must be a single token" in said("j", position={"at": SCORE})
    assert "embeddings for [SCORE]" in said(
        "k", position={"at": SCORE}, added_tokens=[SCORE]
    )
    assert "embeddings for [SCORE]" in said(
        "l", added_tokens=[SCORE], adapter=bases["lora"]
    )
    assert "must accept vectors" in said(
        "m", head=bases["qwen"] / "model.safetensors", prefix="model"
    )


def test_a_base_of_another_architecture(bases, scorer_weights, tmp_path):
    head = tiny_heads.build_head(tmp_path / "head.safetensors", (128, 1))
    line = refused(
        describe(tmp_path / "a", {"base": scorer_weights["dino"], "head": head})
    )
    assert (
        "of another architecture" in line
        or "no processor that handles both images and text" in line
    )
    assert "does not match its base model" in refused(
        describe(
            tmp_path / "b",
            {"base": bases["llava"], "head": head, "adapter": bases["with token"]},
        )
    )


def test_a_processor_that_takes_one_image_where_two_are_asked(bases, tmp_path):
    import shutil

    one = shutil.copytree(bases["qwen"], tmp_path / "one")
    template = textwrap.dedent(
        """\
        {%- for message in messages -%}<|vision_start|><|image_pad|><|vision_end|>
        {%- for part in message['content'] if part['type'] == 'text' -%}{{ part['text'] }}{%- endfor -%}
        {%- endfor -%}"""
    )
    (one / "chat_template.jinja").write_text(template)
    tiny_heads.build_head(tmp_path / "described" / "head.safetensors", (128, 1))
    network = {"base": one, "head": "head.safetensors"}
    line = refused(describe(tmp_path / "described", network))
    assert "does not support 2 images at once" in line
    assert "side_by_side: true" in line
    [found] = measure(
        describe(tmp_path / "described", {**network, "side_by_side": True}), asks(1)
    )
    assert isinstance(found, Measurement)

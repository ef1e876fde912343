"""Test shipped scorers and dual encoders beside plain torch, on tiny random weights."""

import hashlib
import json
import math
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from tests import shipped_scorers as tiny
from tests import tiny_scorers
from tests.backends.value_heads import TEXTS, measure, near, picture, values
from tests.extras import needs
from tests.refusals import refusal
from tests.tables import table
from vieval_plugin.backends.metrics.encoders import TRUNCATED
from vieval_plugin.images import decode
from vieval_plugin.judges import registry
from vieval_plugin.judges.protocol import Measure

pytestmark = needs("torch", "transformers", "torchvision")

MEAN = np.array([0.48145466, 0.4578275, 0.40821073])
DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711])


def asks(form):
    sizes, asked = ((96, 80), (40, 70)), []
    for n, text in enumerate(TEXTS):
        shown = {"image_0": picture(n, sizes[n % 2])}
        asked.append(Measure(form, shown, (form,), {"text": text}, "scorer"))
    return asked


@dataclass(frozen=True)
class Shipped:
    """A shipped judge on tiny random weights; `told` is how messages name its `weight`."""

    name: str
    network: dict
    tensors: dict
    file: Path
    weight: str
    told: str

    @property
    def asks(self):
        """Asks with as many images and texts as a judge has."""
        form = tiny.described(self.name, self.file.parent, self.network)[1]
        if self.name not in tiny.HEADS:
            return asks(form)
        asked = []
        for one in asks(form):
            second = {"image_1": picture(9)} if self.name == "edit_reward" else {}
            text = one.texts["text"]
            pages = [
                f"{head}: {text}, <|Reward|>\n\nEND" for head in tiny.HEADS[self.name]
            ]
            texts = {"text": "\f".join(pages)}
            asked.append(replace(one, images={**one.images, **second}, texts=texts))
        return asked

    def measure(self, asked=None, **network):
        asked = asked or self.asks
        own = {**self.network, **network}
        return measure(tiny.described(self.name, self.file.parent, own)[0], asked)

    def save(self):
        import torch
        from safetensors.torch import save_file

        save = save_file if self.file.suffix == ".safetensors" else torch.save
        save(self.tensors, self.file)


def hpsv2(folder):
    clip = tiny_scorers.build_clip(folder / "clip")
    config = json.loads((clip / "config.json").read_text())
    for tower in ("text_config", "vision_config"):
        config[tower]["hidden_act"] = "gelu"  # as in ViT-H-14
    (clip / "config.json").write_text(json.dumps(config))
    (clip / "model.safetensors").unlink()  # only the configuration is read
    network = {"base": str(clip), "open_clip": "hps.pt"}
    names = ("visual.proj", "visual_projection.weight")
    return Shipped(
        "hpsv2", network, tiny.open_clip_tensors(clip), folder / "hps.pt", *names
    )


def image_reward(folder):
    from transformers import BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *tiny_scorers.WORDS]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "words")
    network = {"weights": "reward.pt", "tokenizer": "words"}
    network["vision"] = {**tiny.VISION, "layer_norm_eps": 1e-6}
    network["text"] = {**tiny.READ, "vocab_size": len(words), "layer_norm_eps": 1e-12}
    about = (network, tiny.image_reward_tensors(len(words)), folder / "reward.pt")
    names = ("blip.visual_encoder.norm.bias", "vision.post_layernorm.bias")
    return Shipped("image_reward", *about, *names)


def qwen_reward(name):
    def build(folder):
        file, names = folder / "reward.safetensors", ["lm_head.weight"] * 2
        return Shipped(name, *tiny.reward_model(name, folder), file, *names)

    return build


BUILDERS = {"hpsv2": hpsv2, "image_reward": image_reward}
BUILDERS |= {name: qwen_reward(name) for name in tiny.HEADS}


@pytest.fixture(params=BUILDERS)
def shipped(request, tmp_path):
    made = BUILDERS[request.param](tmp_path)
    made.save()
    return made


def only(*names):
    """Run a test on these judges alone."""
    return pytest.mark.parametrize("shipped", names, indirect=True)


#: Changes of a weight of this name, and what is said of the file then.
ADDED = lambda held, key: held.update(more=held[key].clone())
SHORT = lambda held, key: held.update({key: held[key][:-1].clone()})
MISFITS = {
    "missing": (lambda held, key: held.pop(key), "lacks {}"),
    "extra": (ADDED, "contains the unknown weight more "),
    "renamed": (lambda held, key: held.update(other=held.pop(key)), "lacks {}"),
    "other shape": (SHORT, "has the wrong shape for {}"),
}


@pytest.mark.parametrize(("change", "line"), MISFITS.values(), ids=MISFITS)
def test_weights_that_do_not_fit_are_refused(shipped, change, line):
    change(shipped.tensors, shipped.weight)
    shipped.save()
    assert line.format(shipped.told) in refusal(shipped.measure)


def test_a_truncated_file_is_refused(shipped):
    shipped.file.write_bytes(shipped.file.read_bytes()[:-200])
    assert shipped.file.name in refusal(shipped.measure)


@only("hpsv2")
def test_a_file_of_another_digest_is_refused(shipped):
    digest = hashlib.sha256(shipped.file.read_bytes()).hexdigest()
    assert len(shipped.measure(digest=digest)) == len(TEXTS)
    shipped.file.write_bytes(shipped.file.read_bytes() + b"more")
    mismatch = f"SHA-256 mismatch: expected {digest}"
    assert mismatch in refusal(shipped.measure, digest=digest)


@only("image_reward")
def test_an_image_reward_without_a_part_of_its_head_is_refused(shipped):
    vision = {**shipped.network["vision"], "hiden_size": 3}
    unknown = "unknown key network.vision.hiden_size"
    assert unknown in refusal(shipped.measure, vision=vision)
    del shipped.tensors["mlp.layers.7.weight"]
    shipped.save()
    assert "7.bias has no matching weight" in refusal(shipped.measure)


def attention(tensors, query, memory, heads=2):
    """Attention in one equation, its projections given as (weight, bias) by q, k, v and out."""
    import torch

    def projected(part, source):
        weight, bias = tensors[part]
        return (source @ weight.T + bias).unflatten(-1, (heads, -1))

    q, k, v = projected("q", query), projected("k", memory), projected("v", memory)
    scores = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
    mixed = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).flatten(1)
    return mixed @ tensors["out"][0].T + tensors["out"][1]


def norm(tensors, name, values, eps=1e-5):
    import torch

    weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    return torch.nn.functional.layer_norm(values, weight.shape, weight, bias, eps)


def linear(tensors, name, values):
    return values @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def mlp(tensors, inner, outer, values):
    import torch

    hidden = torch.nn.functional.gelu(linear(tensors, inner, values))
    return linear(tensors, outer, hidden)


def pair(tensors, name):
    return tensors[f"{name}.weight"], tensors[f"{name}.bias"]


# HPSv2, in open_clip's layout


#: Where a layer of torch's own has its weights, and by what names files have them.
OWN = ("self_attn.in_proj_", "self_attn.out_proj.", "linear1.", "linear2.", "norm1.")
OPEN_CLIP = ("attn.in_proj_", "attn.out_proj.", "mlp.c_fc.", "mlp.c_proj.", "ln_1.")
BLIP = ("attn.qkv.", "attn.proj.", "mlp.fc1.", "mlp.fc2.", "norm1.")


def layers(tensors, start, names, values, eps=1e-5, mask=None):
    """Values after two layers, which normalise first."""
    import torch

    last = names[-1].replace("1", "2")
    theirs = dict(zip((*OWN, "norm2."), (*names, last), strict=True))
    for number in range(2):
        state = {
            f"{own}{kind}": tensors[f"{start}{number}.{their}{kind}"]
            for own, their in theirs.items()
            for kind in ("weight", "bias")
        }
        inner, wide = state["linear1.weight"].shape
        options = {"layer_norm_eps": eps, "norm_first": True}
        layer = torch.nn.TransformerEncoderLayer(wide, 2, inner, 0, "gelu", **options)
        layer.load_state_dict(state)
        with torch.no_grad():
            values = layer.eval()(values, mask)
    return values


def padded(image, size):
    """HPSv2's image: its longer side resized, the other padded with black."""
    import torch
    from torchvision.transforms import functional

    tensor = functional.to_tensor(image.convert("RGB"))
    shape = [round(length * size / max(image.size)) for length in tensor.shape[1:]]
    bicubic = functional.InterpolationMode.BICUBIC
    fitted = functional.resize(tensor, shape, bicubic, antialias=True)
    high, wide = shape
    left, top = (size - wide) // 2, (size - high) // 2
    sides = [left, top, size - wide - left, size - high - top]
    canvas = functional.pad(fitted, sides, fill=0)
    return functional.normalize(canvas, MEAN, DEVIATION).to(torch.float32)


def open_clip_cosine(tensors, image, token_ids, patch=8):
    import torch

    kernel = tensors["visual.conv1.weight"]
    patches = torch.nn.functional.conv2d(image[None], kernel, stride=patch)[0]
    seen = torch.cat([tensors["visual.class_embedding"][None], patches.flatten(1).T])
    seen = norm(tensors, "visual.ln_pre", seen + tensors["visual.positional_embedding"])
    blocks = "transformer.resblocks."
    seen = layers(tensors, f"visual.{blocks}", OPEN_CLIP, seen)[0]
    seen = norm(tensors, "visual.ln_post", seen) @ tensors["visual.proj"]
    length = len(token_ids)
    read = tensors["token_embedding.weight"][torch.tensor(token_ids)]
    read = read + tensors["positional_embedding"][:length]
    mask = torch.full((length, length), -torch.inf).triu(1)
    read = layers(tensors, blocks, OPEN_CLIP, read, mask=mask)
    read = norm(tensors, "ln_final", read)
    read = read[-1] @ tensors["text_projection"]
    return float(torch.nn.functional.cosine_similarity(seen, read, dim=0))


def require_values(shipped, value_of):
    """Replies, one a sample, equal `value_of` its images and its text."""
    wanted = []
    for one in shipped.asks:
        shown = [decode(image) for image in one.images.values()]
        wanted.append(value_of(shown, one.texts["text"]))
    found = values(shipped.measure())
    assert found == near(wanted, 1e-4)
    assert len(set(found)) == len(found)


@only("hpsv2")
def test_hpsv2_beside_plain_torch(shipped):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(shipped.network["base"])

    def value_of(images, text):
        ids = tokenizer(text, truncation=True, max_length=16).input_ids
        return open_clip_cosine(shipped.tensors, padded(images[0], 32), ids)

    require_values(shipped, value_of)


# PickScore and other dual encoders, whose layout is that of transformers


def dual_encoder(folder, base, images="[output]", **network):
    """The description of a dual encoder."""
    folder.mkdir(exist_ok=True)
    network = {"form": "dual_encoder", "base": base, **network}
    keys = "".join(f"  {key}: {value}\n" for key, value in network.items())
    asked = f"questions: {{SC: {{images: {images}, text: '{{{{ prompt }}}}'}}}}"
    text = f"name: pick\n{asked}\nsigmoid: [0, 1]\nnetwork:\n{keys}"
    (folder / "pick.yaml").write_text(text)
    return folder / "pick.yaml"


def test_the_learnt_scale_and_one_of_the_description(scorer_weights, tmp_path):
    from transformers import CLIPModel

    clip, asked = scorer_weights["clip_score"], asks("dual_encoder")
    wanted = [tiny.clip_logit(clip, one) for one in asked]
    shipped = tiny.described(
        "pickscore", tmp_path, {"base": str(clip), "processor": str(clip)}
    )
    for path in (shipped[0], dual_encoder(tmp_path / "own", clip, scale="learnt")):
        assert values(measure(path, asked)) == near(wanted)
    scale = CLIPModel.from_pretrained(clip).logit_scale.exp().item()
    plain = measure(dual_encoder(tmp_path / "plain", clip), asked)
    assert values(plain) == near([value / scale for value in wanted])
    assert all(reply.by.startswith(f"pick on {clip}@sha256:") for reply in plain)


def test_a_processor_from_elsewhere_and_a_long_text(scorer_weights, tmp_path):
    clip = scorer_weights["clip_score"]
    (tmp_path / "bare").mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(clip / name, tmp_path / "bare" / name)
    long = {"text": " ".join(["a red toy on the table"] * 10)}
    asked = replace(asks("dual_encoder")[0], texts=long)
    path = dual_encoder(tmp_path, "bare", processor=clip, scale="learnt")
    [found] = measure(path, [asked])
    assert found.value == near(tiny.clip_logit(clip, asked))
    assert found.notes == (TRUNCATED,)


@pytest.mark.parametrize(*table("wrong_dual_encoders.jsonl"))
def test_what_a_dual_encoder_cannot_be_is_one_line(
    scorer_weights, tmp_path, changed, line
):
    about = {"base": "clip_score", **changed}
    about["base"] = scorer_weights.get(about["base"], about["base"])
    path = dual_encoder(tmp_path, **about)
    assert line in refusal(measure, path, asks("dual_encoder"))


# the aesthetic predictor, a chain of linear layers without anything between


def test_aesthetic_beside_plain_torch(scorer_weights, tmp_path):
    import torch
    from transformers import CLIPModel, CLIPProcessor

    clip = scorer_weights["clip_score"]
    tensors = tiny.aesthetic_head(tmp_path, 24)
    model = CLIPModel.from_pretrained(clip).eval()
    processor = CLIPProcessor.from_pretrained(clip)

    def value_of(images, text):
        pixels = processor(images=images, return_tensors="pt")
        with torch.inference_mode():
            seen = model.vision_model(**pixels).pooler_output
            vector = model.visual_projection(seen)[0]
        vector = vector / vector.norm()
        for number in (0, 2, 4, 6, 7):
            vector = linear(tensors, f"layers.{number}", vector)
        return float(vector)

    network = {"base": str(clip), "head": "head.pth"}
    about = (network, tensors, tmp_path / "head.pth", "", "")
    require_values(Shipped("aesthetic", *about), value_of)


def test_an_absent_head_says_where_it_is_to_be_had(scorer_weights, tmp_path):
    clip = scorer_weights["clip_score"]
    path, form = tiny.described("aesthetic", tmp_path, {"base": str(clip)})
    line = refusal(measure, path, asks(form))
    assert "weights file not found" in line
    assert "github.com/christophschuhmann/improved-aesthetic-predictor" in line
    assert "pass --scorer FILE" in line


# ImageReward, in its authors' layout


def eye(tensors, image):
    """ImageReward's vision transformer."""
    import torch

    name = "blip.visual_encoder"
    kernel = pair(tensors, f"{name}.patch_embed.proj")
    patches = torch.nn.functional.conv2d(image[None], *kernel, stride=8)[0].flatten(1)
    seen = torch.cat([tensors[f"{name}.cls_token"][0], patches.T])
    seen = seen + tensors[f"{name}.pos_embed"][0]
    seen = layers(tensors, f"{name}.blocks.", BLIP, seen, 1e-6)
    return norm(tensors, f"{name}.norm", seen, 1e-6)


PROJECTIONS = {"q": "self.query", "k": "self.key", "v": "self.value"}
PROJECTIONS |= {"out": "output.dense"}


def image_reward_value(tensors, image, token_ids):
    """The number as ImageReward's authors publish its equation."""
    import torch

    seen, book = eye(tensors, image), "blip.text_encoder"
    words = tensors[f"{book}.embeddings.word_embeddings.weight"]
    places = tensors[f"{book}.embeddings.position_embeddings.weight"]
    read = words[torch.tensor(token_ids)] + places[: len(token_ids)]
    read = norm(tensors, f"{book}.embeddings.LayerNorm", read, 1e-12)
    for layer in range(2):
        block = f"{book}.encoder.layer.{layer}"
        for part in ("attention", "crossattention"):
            names = {s: f"{block}.{part}.{long}" for s, long in PROJECTIONS.items()}
            parts = {short: pair(tensors, name) for short, name in names.items()}
            memory = read if part == "attention" else seen
            mixed = attention(parts, read, memory)
            name = f"{block}.{part}.output.LayerNorm"
            read = norm(tensors, name, mixed + read, 1e-12)
        outer = f"{block}.output.dense"
        inner = mlp(tensors, f"{block}.intermediate.dense", outer, read)
        read = norm(tensors, f"{block}.output.LayerNorm", inner + read, 1e-12)
    value = read[0]
    for number in (0, 2, 4, 6, 7):
        value = linear(tensors, f"mlp.layers.{number}", value)
    return float((value - 0.16717362830052426) / 1.0333394966054072)


@only("image_reward")
def test_image_reward_beside_plain_torch(shipped, tmp_path):
    from torchvision import transforms
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "words")
    bicubic = transforms.InterpolationMode.BICUBIC
    steps = [transforms.Resize(32, bicubic), transforms.CenterCrop(32)]
    steps += [transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)]
    prepare = transforms.Compose(steps)

    def value_of(images, text):
        ids = tokenizer(text).input_ids
        return image_reward_value(shipped.tensors, prepare(images[0]).float(), ids)

    require_values(shipped, value_of)


# HPSv3 and EditReward, whose networks are transformers' and whose rest is plain torch


def resized(image, side):
    """An image at about side x side pixels, in steps of 28, as Qwen's reader has it."""
    wide, high = (max(28, round(length / 28) * 28) for length in image.size)
    scale = math.sqrt(image.width * image.height) / side
    if wide * high > side**2:
        wide, high = (math.floor(n / scale / 28) * 28 for n in image.size)
    elif wide * high < side**2:
        wide, high = (math.ceil(n / scale / 28) * 28 for n in image.size)
    return image.convert("RGB").resize((wide, high), PIL.Image.Resampling.BICUBIC)


def reward_value(name, network, tensors, images, pages):
    """The mean of the heads' first numbers at the token of rewards, as the authors compute it."""
    import torch
    from transformers import AutoConfig, AutoProcessor

    processor = AutoProcessor.from_pretrained(network["base"])
    processor.tokenizer.add_tokens(["<|Reward|>"], special_tokens=True)
    config = AutoConfig.from_pretrained(network["base"])
    config.get_text_config().vocab_size = len(processor.tokenizer)
    model = tiny.network_of(config)
    names = {tiny.published_name(name, key): key for key in model.state_dict()}
    model.load_state_dict({names[key]: tensors[key] for key in names})
    token = processor.tokenizer.convert_tokens_to_ids("<|Reward|>")
    pads = "<|vision_start|><|image_pad|><|vision_end|>" * len(images)
    pictures, values = [resized(image, tiny.SIDE) for image in images], []
    for head, text in zip(tiny.HEADS[name], pages.split("\f"), strict=True):
        user = f"<|im_start|>user\n{pads}\n{text}\n<|im_end|>\n"
        prompt = f"{user}<|im_start|>assistant\n"
        inputs = processor(text=[prompt], images=[pictures], return_tensors="pt")
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        with torch.inference_mode():
            embedded = model.get_input_embeddings()(ids)
            pixels = inputs["pixel_values"], inputs["image_grid_thw"]
            seen = model.model.visual(*pixels).pooler_output
            embedded[ids == config.image_token_id] = seen
            read = {"inputs_embeds": embedded, "attention_mask": mask}
            hidden = model.model(input_ids=None, **read).last_hidden_state
        value = hidden[ids == token][0]
        for number in (0, 3):
            value = linear(tensors, f"{head}.{number}", value).relu()
        values.append(float(linear(tensors, f"{head}.5", value)[0]))
    return sum(values) / len(values)


@only(*tiny.HEADS)
def test_a_reward_model_beside_plain_torch(shipped):
    about = (shipped.name, shipped.network, shipped.tensors)
    require_values(shipped, lambda *shown: reward_value(*about, *shown))


@only("edit_reward")
def test_a_text_for_each_head_is_needed(shipped):
    short = replace(shipped.asks[0], texts={"text": "only <|Reward|>"})
    [reply] = shipped.measure([short])
    assert "must have 2 parts, one per head, got 1" in reply.reason


LICENCES = ("none stated", "not verified", "Apache-2.0", "MIT (its package)")


def test_each_is_found_by_its_name_and_says_what_it_is():
    files = registry.shipped()
    assert tuple(name for name in files if registry.judge(name).scored) == tiny.NAMES
    for name in tiny.NAMES:
        about = registry.judge(name).file.manifest.about
        assert about.licence in LICENCES
        assert all(value for _, value in about)


def test_a_users_own_judge_may_have_the_name(tmp_path, monkeypatch):
    registry.judges.cache_clear()
    path, _ = tiny.described("pickscore", tmp_path, {"base": "mine"})
    try:
        assert registry.judge("pickscore", [path]).file.path == path
    finally:
        registry.judges.cache_clear()

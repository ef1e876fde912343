"""Shipped scorers with tiny random weights, in the layout that their authors published."""

import yaml

from vieval_plugin.images import decode
from vieval_plugin.judges import registry

NAMES = ("aesthetic", "edit_reward", "hpsv2", "hpsv3", "image_reward", "pickscore")
#: Pixels of an image that tiny reward models see.
SIDE = 112
HEADS = {"hpsv3": ("rm_head",), "edit_reward": ("rm_heads.head_0", "rm_heads.head_1")}


def described(name, folder, network):
    """A shipped judge with other weights; None as a value leaves a key out."""
    document = yaml.safe_load(registry.shipped()[name].read_text())
    document["network"] |= {"digest": "", **network}
    if document["network"]["form"] == "dual_encoder" and "open_clip" not in network:
        del document["network"]["digest"]
    if document.pop("wording", None):
        [question] = document["questions"].values()
        pages = [f"{question['text']} <|Reward|>" for _ in HEADS[name]]
        question["text"] = "\f".join(pages)
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document))
    return path, document["network"]["form"]


def random_tensors(shapes, seed=0):
    import torch

    generator = torch.Generator().manual_seed(seed)
    drawn = lambda shape: torch.randn(shape, generator=generator) * 0.3
    return {name: drawn(shape) for name, shape in shapes.items()}


def linear(name, out, inside=None):
    """The shapes of a layer by the names of its tensors; of a norm where nothing goes in."""
    weight = (out,) if inside is None else (out, inside)
    return {f"{name}.weight": weight, f"{name}.bias": (out,)}


def open_clip_tensors(clip):
    """Random weights in open_clip's layout, of the sizes of a transformers CLIP's configuration."""
    from transformers import CLIPConfig

    config = CLIPConfig.from_pretrained(clip)
    text, vision = config.text_config, config.vision_config
    side, wide, shared = vision.patch_size, vision.hidden_size, config.projection_dim
    places = (vision.image_size // side) ** 2 + 1
    shapes = {
        "positional_embedding": (text.max_position_embeddings, text.hidden_size),
        "text_projection": (text.hidden_size, shared),
        "logit_scale": (),
        "token_embedding.weight": (text.vocab_size, text.hidden_size),
        "visual.class_embedding": (wide,),
        "visual.positional_embedding": (places, wide),
        "visual.proj": (wide, shared),
        "visual.conv1.weight": (wide, 3, side, side),
    }
    for name in ("ln_final", "visual.ln_pre", "visual.ln_post"):
        shapes |= linear(name, 32)
    for tower, part in (("", text), ("visual.", vision)):
        wide, inner = part.hidden_size, part.intermediate_size
        for layer in range(part.num_hidden_layers):
            block = f"{tower}transformer.resblocks.{layer}"
            shapes[f"{block}.attn.in_proj_weight"] = (3 * wide, wide)
            shapes[f"{block}.attn.in_proj_bias"] = (3 * wide,)
            shapes |= linear(f"{block}.attn.out_proj", wide, wide)
            shapes |= linear(f"{block}.mlp.c_fc", inner, wide)
            shapes |= linear(f"{block}.mlp.c_proj", wide, inner)
            for name in ("ln_1", "ln_2"):
                shapes |= linear(f"{block}.{name}", wide)
    return random_tensors(shapes)


def aesthetic_head(folder, size, prefix="layers"):
    import torch

    shapes = {}
    for number, out in zip((0, 2, 4, 6, 7), (12, 8, 6, 4, 1), strict=True):
        shapes |= linear(f"{prefix}.{number}", out, size)
        size = out
    tensors = random_tensors(shapes, seed=3)
    torch.save(tensors, folder / "head.pth")
    return tensors


def reward_model(name, folder):
    """A tiny, random HPSv3 or EditReward in its published layout: its network and its tensors."""
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoProcessor

    from tests import tiny_model

    base = tiny_model.build(folder / "base", side=1024)
    if name == "hpsv3":
        as_qwen2(base)
    processor = AutoProcessor.from_pretrained(base)
    processor.tokenizer.add_tokens(["<|Reward|>"], special_tokens=True)
    config = AutoConfig.from_pretrained(base)
    config.get_text_config().vocab_size = len(processor.tokenizer)
    held = network_of(config).state_dict().items()
    shapes = {published_name(name, key): tuple(value.shape) for key, value in held}
    for head in HEADS[name]:
        for number, inside, out in ((0, 128, 12), (3, 12, 6), (5, 6, 2)):
            shapes |= linear(f"{head}.{number}", out, inside)
    is_norm = lambda key: "norm" in key and key.endswith("weight")
    drawn = random_tensors(shapes, seed=7).items()
    tensors = {key: tensor + is_norm(key) for key, tensor in drawn}
    save_file(tensors, folder / "reward.safetensors")
    for file in base.glob("*.safetensors"):
        file.unlink()  # only the configuration and the processor are read
    network = {"base": str(base), "weights": "reward.safetensors", "dtype": "float32"}
    return {**network, "min_pixels": SIDE**2, "max_pixels": SIDE**2}, tensors


def network_of(config):
    from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

    return MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING[type(config)](config).eval()


def published_name(judge, name):
    """The name in a judge's file of a weight of transformers 5; HPSv3's are those of 4.45."""
    if judge != "hpsv3":
        return name
    name = name.replace("model.visual.", "visual.")
    return name.replace("model.language_model.", "model.")


def as_qwen2(folder):
    """Make the configuration and the processor of a tiny Qwen2.5-VL those of a Qwen2-VL."""
    import json

    file = folder / "config.json"
    config = json.loads(file.read_text())
    config |= {"model_type": "qwen2_vl"}
    config["architectures"] = ["Qwen2VLForConditionalGeneration"]
    config["text_config"]["model_type"] = "qwen2_vl_text"
    sizes = {"depth": 2, "embed_dim": 64, "hidden_size": 128, "num_heads": 2}
    config["vision_config"] = {"model_type": "qwen2_vl", **sizes, "mlp_ratio": 2}
    file.write_text(json.dumps(config))
    for file in (folder / "processor_config.json", folder / "tokenizer_config.json"):
        if file.exists():
            file.write_text(file.read_text().replace("Qwen2_5_VLP", "Qwen2VLP"))


VISION = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
VISION |= {"num_attention_heads": 2, "image_size": 32, "patch_size": 8}
READ = {"hidden_size": 12, "intermediate_size": 24, "num_hidden_layers": 2}
READ |= {"num_attention_heads": 2, "encoder_hidden_size": 16}
READ |= {"max_position_embeddings": 40}


def image_reward_tensors(words):
    shapes = {
        "blip.visual_encoder.cls_token": (1, 1, 16),
        "blip.visual_encoder.pos_embed": (1, 17, 16),
        "blip.visual_encoder.patch_embed.proj.weight": (16, 3, 8, 8),
        "blip.visual_encoder.patch_embed.proj.bias": (16,),
        "blip.text_encoder.embeddings.word_embeddings.weight": (words, 12),
        "blip.text_encoder.embeddings.position_embeddings.weight": (40, 12),
        "blip.vision_proj.weight": (5, 16),
        "blip.text_proj.weight": (5, 12),
    }

    def add(name, out, inside):
        shapes.update(linear(name, out, inside or None))

    add("blip.visual_encoder.norm", 16, 0)
    add("blip.text_encoder.embeddings.LayerNorm", 12, 0)
    for layer in range(2):
        block = f"blip.visual_encoder.blocks.{layer}"
        add(f"{block}.norm1", 16, 0)
        add(f"{block}.norm2", 16, 0)
        add(f"{block}.attn.qkv", 48, 16)
        add(f"{block}.attn.proj", 16, 16)
        add(f"{block}.mlp.fc1", 32, 16)
        add(f"{block}.mlp.fc2", 16, 32)
        block = f"blip.text_encoder.encoder.layer.{layer}"
        for part, inside in (("attention", 12), ("crossattention", 16)):
            add(f"{block}.{part}.self.query", 12, 12)
            add(f"{block}.{part}.self.key", 12, inside)
            add(f"{block}.{part}.self.value", 12, inside)
            add(f"{block}.{part}.output.dense", 12, 12)
            add(f"{block}.{part}.output.LayerNorm", 12, 0)
        add(f"{block}.intermediate.dense", 24, 12)
        add(f"{block}.output.dense", 12, 24)
        add(f"{block}.output.LayerNorm", 12, 0)
    inside = 12
    for number, out in ((0, 8), (2, 6), (4, 4), (6, 3), (7, 1)):
        add(f"mlp.layers.{number}", out, inside)
        inside = out
    return random_tensors(shapes, seed=5)


def clip_logit(model, one):
    """Logits per image as the model gives them: cosine times its learnt scale."""
    import torch
    from transformers import CLIPModel, CLIPProcessor

    asked = {"text": [one.texts["text"]], "images": [decode(one.images["image_0"])]}
    about = {"return_tensors": "pt", "truncation": True, "max_length": 16}
    inputs = CLIPProcessor.from_pretrained(model)(**asked, **about)
    with torch.inference_mode():
        return float(CLIPModel.from_pretrained(model).eval()(**inputs).logits_per_image)

"""Shipped scorers with tiny random weights, in the layout that their authors published."""

import yaml

from vieval_plugin.images import decode
from vieval_plugin.judges import registry

NAMES = ("aesthetic", "hpsv2", "image_reward", "pickscore")


def described(name, folder, network):
    """A shipped judge with other weights; None as a value leaves a key out."""
    document = yaml.safe_load(registry.shipped()[name].read_text())
    document["network"] |= network
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document))
    return path, document["network"]["form"]


def random_tensors(shapes, seed=0):
    import torch

    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(shape, generator=generator) * 0.3
        for name, shape in shapes.items()
    }


def open_clip_tensors(clip):
    """Random weights in open_clip's layout, of the sizes of a transformers CLIP's configuration."""
    from transformers import CLIPConfig

    config = CLIPConfig.from_pretrained(clip)
    text, vision = config.text_config, config.vision_config
    shapes = {
        "positional_embedding": (text.max_position_embeddings, text.hidden_size),
        "text_projection": (text.hidden_size, config.projection_dim),
        "logit_scale": (),
        "token_embedding.weight": (text.vocab_size, text.hidden_size),
        "visual.class_embedding": (vision.hidden_size,),
        "visual.positional_embedding": (
            (vision.image_size // vision.patch_size) ** 2 + 1,
            vision.hidden_size,
        ),
        "visual.proj": (vision.hidden_size, config.projection_dim),
        "visual.conv1.weight": (
            vision.hidden_size,
            3,
            vision.patch_size,
            vision.patch_size,
        ),
    }
    for name in ("ln_final", "visual.ln_pre", "visual.ln_post"):
        shapes |= {f"{name}.{kind}": (32,) for kind in ("weight", "bias")}
    for tower, part in (("", text), ("visual.", vision)):
        wide, inner = part.hidden_size, part.intermediate_size
        for layer in range(part.num_hidden_layers):
            block = f"{tower}transformer.resblocks.{layer}"
            shapes |= {
                f"{block}.attn.in_proj_weight": (3 * wide, wide),
                f"{block}.attn.in_proj_bias": (3 * wide,),
            }
            for name, out, inside in (
                ("attn.out_proj", wide, wide),
                ("mlp.c_fc", inner, wide),
                ("mlp.c_proj", wide, inner),
            ):
                shapes |= {
                    f"{block}.{name}.weight": (out, inside),
                    f"{block}.{name}.bias": (out,),
                }
            for name in ("ln_1", "ln_2"):
                shapes |= {
                    f"{block}.{name}.{kind}": (wide,) for kind in ("weight", "bias")
                }
    return random_tensors(shapes)


def aesthetic_head(folder, size, prefix="layers"):
    import torch

    widths = dict(zip((0, 2, 4, 6, 7), (size, 12, 8, 6, 4), strict=True))
    outs = [12, 8, 6, 4, 1]
    shapes = {}
    for (number, inside), out in zip(widths.items(), outs, strict=True):
        shapes |= {
            f"{prefix}.{number}.weight": (out, inside),
            f"{prefix}.{number}.bias": (out,),
        }
    tensors = random_tensors(shapes, seed=3)
    torch.save(tensors, folder / "head.pth")
    return tensors


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
        shapes[f"{name}.weight"] = (out, inside) if inside else (out,)
        shapes[f"{name}.bias"] = (out,)

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

    inputs = CLIPProcessor.from_pretrained(model)(
        text=[one.texts["text"]],
        images=[decode(one.images["image_0"])],
        return_tensors="pt",
        truncation=True,
        max_length=16,
    )
    with torch.inference_mode():
        return float(CLIPModel.from_pretrained(model).eval()(**inputs).logits_per_image)

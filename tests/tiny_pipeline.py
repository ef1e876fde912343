"""Diffusers pipelines of real architectures with random weights."""

from pathlib import Path

import yaml

SIZES = yaml.safe_load("""
unet: {sample_size: 16, in_channels: 4, out_channels: 4, layers_per_block: 1,
       block_out_channels: [8, 16], norm_num_groups: 4, cross_attention_dim: 32, attention_head_dim: 2,
       down_block_types: [DownBlock2D, CrossAttnDownBlock2D],
       up_block_types: [CrossAttnUpBlock2D, UpBlock2D]}
vae: {block_out_channels: [8, 8], norm_num_groups: 4, latent_channels: 4, sample_size: 32,
      down_block_types: [DownEncoderBlock2D, DownEncoderBlock2D],
      up_block_types: [UpDecoderBlock2D, UpDecoderBlock2D]}
text: {hidden_size: 32, intermediate_size: 64, num_hidden_layers: 2, num_attention_heads: 2,
       max_position_embeddings: 16}
absent: {safety_checker: null, feature_extractor: null, requires_safety_checker: false}
""")


def build_pipeline(folder: Path, editing: bool = False) -> Path:
    """A Stable Diffusion of 32 x 32 pixels, from text or from image and text."""
    import diffusers
    import torch
    from transformers import CLIPTextConfig, CLIPTextModel

    from tests.tiny_scorers import clip_tokenizer

    tokenizer = clip_tokenizer()
    tokenizer.model_max_length = 16
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        unet = diffusers.UNet2DConditionModel(**SIZES["unet"])
        vae = diffusers.AutoencoderKL(**SIZES["vae"])
        marks = ("bos_token_id", "eos_token_id", "pad_token_id")
        own = {name: getattr(tokenizer, name) for name in marks}
        sizes = {**SIZES["text"], "vocab_size": len(tokenizer), **own}
        text = CLIPTextModel(CLIPTextConfig(**sizes))
    name = "StableDiffusionImg2ImgPipeline" if editing else "StableDiffusionPipeline"
    parts = {"unet": unet, "vae": vae, "text_encoder": text, "tokenizer": tokenizer}
    scheduler = diffusers.DDIMScheduler(clip_sample=False, steps_offset=1)
    parts |= {"scheduler": scheduler, **SIZES["absent"]}
    pipeline = getattr(diffusers, name)(**parts)
    pipeline.save_pretrained(folder)
    return Path(folder)

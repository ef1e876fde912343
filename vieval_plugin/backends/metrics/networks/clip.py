"""CLIP: how alike an image and a text are, or two images (Radford et al., ICML 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vieval_plugin.backends.metrics.encoders import (
    Encoder,
    cosines,
    encoder_inputs,
)
from vieval_plugin.backends.metrics.network_metrics import (
    Batch,
    NetworkInputs,
    NetworkMetric,
    Pictures,
)
from vieval_plugin.backends.weights import (
    Origin,
    Tensors,
    identity,
    pretrained,
    pretrained_tokenizer,
    weights_name,
)


def load(
    origin: Origin,
    processor: str = "",
    tensors: Tensors | None = None,
    **arguments: Any,
) -> Encoder:
    """A CLIP of transformers with both of its encoders; VievalError as `weights.pretrained`.

    `processor` is where its image processor and tokenizer are, if not with the weights;
    `tensors` are the weights where only the configuration is there; `arguments` are further ones
    of `weights.pretrained`.
    """
    network, images = pretrained(
        "CLIPModel",
        "clip",
        origin,
        processor,
        tensors,
        **arguments,
    )
    has_bundled_processor = not processor or processor == origin.model
    tokenizer = pretrained_tokenizer(
        origin.model if has_bundled_processor else processor,
        origin.revision if has_bundled_processor else None,
    )
    preparing = images.to_json_string(), tokenizer.backend_tokenizer.to_str()
    digest = identity(network, *preparing)

    def embed(pixels: Any) -> Any:
        return network.visual_projection(
            network.vision_model(pixel_values=pixels).pooler_output
        )

    def embed_texts(padded: Any) -> Any:
        return network.text_projection(network.text_model(**padded).pooler_output)

    named_network = network if tensors is None else None
    name = weights_name(origin, named_network, digest)
    return Encoder(
        name,
        digest,
        processor=images,
        embed=embed,
        device=network.device,
        tokenizer=tokenizer,
        longest=network.config.text_config.max_position_embeddings,
        embed_texts=embed_texts,
        scale=float(network.logit_scale.detach().exp()),
        size=network.config.projection_dim,
    )


def clip_score(encoder: Encoder, batch: Batch) -> Any:
    """Cosine of the embeddings of `image` and `text`, in [-1, 1]; the more alike, the higher.

    Hessel et al., CLIPScore (EMNLP 2021), less its scale, which no rank statistic sees. As VIEScore
    has it (Ku et al., ACL 2024) with CLIP ViT-B/32.
    """
    return (encoder.images(batch["image"]) * encoder.texts(batch["text"])).sum(-1)


def clip_i(encoder: Encoder, batch: Batch) -> Any:
    """Cosine of CLIP's embeddings of `image` and `reference`, in [-1, 1]; the more alike, the
    higher.

    Ruiz et al., DreamBooth (CVPR 2023).
    """
    return cosines(encoder, batch)


def clip_direction(encoder: Encoder, batch: Batch) -> Any:
    """CLIP-D: cosine of the change from the embedding of `source` to that of `image` with the change
    from that of `source_text` to that of `output_text`, in [-1, 1]; 0 where nothing changes.

    Gal et al., StyleGAN-NADA (SIGGRAPH 2022), with embeddings of length 1.
    """
    images = encoder.images([*batch["image"], *batch["source"]]).cpu().double()
    texts = encoder.texts([*batch["output_text"], *batch["source_text"]]).cpu().double()
    half = len(batch["image"])
    change = images[:half] - images[half:]
    expected = texts[:half] - texts[half:]
    lengths = change.norm(dim=-1) * expected.norm(dim=-1)
    return (change * expected).sum(-1) / lengths.clamp(min=_NO_CHANGE)


def image_and_text(
    encoder: Encoder, images: Pictures, texts: Mapping[str, str]
) -> NetworkInputs:
    """The one image, whatever its role is called, and the text as an encoder takes them."""
    [image] = images.values()
    return encoder_inputs(encoder, {"image": image}, texts)


_WEIGHTS = "openai/clip-vit-base-patch32"
# below it a product of two changes is rounding
_NO_CHANGE = 1e-6

METRICS = (
    NetworkMetric("clip_score", load, _WEIGHTS, encoder_inputs, clip_score),
    NetworkMetric("clip_i", load, _WEIGHTS, encoder_inputs, clip_i),
    NetworkMetric("clip_direction", load, _WEIGHTS, encoder_inputs, clip_direction),
)

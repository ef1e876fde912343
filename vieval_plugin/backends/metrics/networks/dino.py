"""DINO: how alike two images are to a vision transformer that was trained without labels."""

from __future__ import annotations

from typing import Any

from vieval_plugin.backends.metrics.encoders import (
    Encoder,
    cosines,
    encoder_inputs,
)
from vieval_plugin.backends.metrics.network_metrics import Batch, NetworkMetric
from vieval_plugin.backends.weights import Origin, identity, pretrained, weights_name


def load(origin: Origin) -> Encoder:
    """A vision transformer of DINO, whose vector is its class token; VievalError as
    `weights.pretrained`.
    """
    # without the pooler, of which DINO has no weights
    network, processor = pretrained("ViTModel", "vit", origin, add_pooling_layer=False)
    digest = identity(network, processor.to_json_string())
    return Encoder(
        weights_name(origin, network, digest),
        digest,
        processor,
        lambda pixels: network(pixel_values=pixels).last_hidden_state[:, 0],
        network.device,
    )


def dino(encoder: Encoder, batch: Batch) -> Any:
    """Cosine of the class tokens of DINO's ViT-S/16 for `image` and `reference`, in [-1, 1]; the
    more alike, the higher.

    Ruiz et al., DreamBooth (CVPR 2023), with the network of Caron et al., Emerging properties in
    self-supervised vision transformers (ICCV 2021).
    """
    return cosines(encoder, batch)


METRIC = NetworkMetric("dino", load, "facebook/dino-vits16", encoder_inputs, dino)

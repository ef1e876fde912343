"""A Mask2Former with random weights, spread so that some queries are sure of a class."""

import yaml

SIZES = yaml.safe_load("""
backbone: {image_size: 64, embed_dim: 8, depths: [1, 1, 1, 1], num_heads: [1, 1, 2, 2],
           window_size: 4, out_features: [stage1, stage2, stage3, stage4]}
whole: {feature_size: 32, mask_feature_size: 32, hidden_dim: 32, encoder_feedforward_dim: 16,
        dim_feedforward: 16, encoder_layers: 1, decoder_layers: 2, num_attention_heads: 2,
        num_queries: 10}
""")


def build(folder, classes, seed=0, backbone=None, **shape):
    """Write the network to a folder; `backbone` and `shape` replace parts of its configurations."""
    import torch
    from transformers import (
        Mask2FormerConfig,
        Mask2FormerForUniversalSegmentation,
        Mask2FormerImageProcessor,
        SwinConfig,
    )

    names = {"id2label": dict(enumerate(classes))}
    names["label2id"] = {name: number for number, name in enumerate(classes)}
    seen = SwinConfig(**SIZES["backbone"] | (backbone or {}))
    whole = SIZES["whole"] | shape
    config = Mask2FormerConfig(backbone_config=seen, **names, **whole)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Mask2FormerForUniversalSegmentation(config)
        with torch.no_grad():
            network.class_predictor.weight.normal_(0, 1.5)
    network.save_pretrained(folder)
    Mask2FormerImageProcessor().save_pretrained(folder)
    return folder

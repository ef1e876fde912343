"""A GroundingDINO small enough to build in a test: random weights, a layer or two, a few words.

What it finds means nothing, but everything around it is real: processor, tokenizer, thresholds,
boxes in pixels.
"""

import yaml

WORDS = [
    "a",
    "cat",
    "dog",
    "red",
    "toy",
    "background",
    "the",
    "in",
    "room",
    "make",
    "it",
    "blue",
    ".",
    ",",
    "?",
]
SIZES = yaml.safe_load("""
backbone: {image_size: 64, embed_dim: 8, depths: [1, 1, 1, 1], num_heads: [1, 1, 2, 2],
           window_size: 4, out_indices: [2, 3, 4]}
text: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 16,
       max_position_embeddings: 256}
whole: {num_queries: 12, encoder_layers: 1, decoder_layers: 2, encoder_ffn_dim: 16,
        decoder_ffn_dim: 16, encoder_attention_heads: 2, decoder_attention_heads: 2,
        d_model: 64, max_text_len: 256, disable_custom_kernels: true}
""")


def build(folder, seed=0):
    """Write the model with its processor to a folder, the same for the same seed."""
    import torch
    from transformers import (
        BertConfig,
        BertTokenizer,
        GroundingDinoConfig,
        GroundingDinoForObjectDetection,
        GroundingDinoImageProcessor,
        GroundingDinoProcessor,
        SwinConfig,
    )

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = BertTokenizer(str(folder / "vocab.txt"))
    images = GroundingDinoImageProcessor(size={"shortest_edge": 64, "longest_edge": 96})
    text = BertConfig(vocab_size=len(vocabulary), **SIZES["text"])
    parts = {"backbone_config": SwinConfig(**SIZES["backbone"]), "text_config": text}
    config = GroundingDinoConfig(**parts, **SIZES["whole"])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GroundingDinoForObjectDetection(config)
    model.save_pretrained(folder)
    GroundingDinoProcessor(images, tokenizer).save_pretrained(folder)
    return folder

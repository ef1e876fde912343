"""The networks of the scorers, small enough to build in a test: real architectures, random weights,
a tokenizer made here.

What they say means nothing; that it is what the libraries say is the point. AlexNet has its own
size, for LPIPS knows no other.
"""

from pathlib import Path

WORDS = ("a", "red", "toy", "cat", "dog", "on", "the", "table", "photo", "of")
CONTEXT = 16
SIZE = {"hidden_size": 32, "intermediate_size": 64}
SIZE |= {"num_hidden_layers": 2, "num_attention_heads": 2}
SPREAD = 0.3  # with the usual 0.02 the image hardly moves the output


def build_clip(folder: Path, seed: int = 0, safe: bool = True) -> Path:
    """A CLIP of two layers a tower that reads 16 tokens; `safe`, or as a pickled state dict."""
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor

    tokenizer = clip_tokenizer()
    marks = ("bos_token_id", "eos_token_id", "pad_token_id")
    text = {**SIZE, "vocab_size": len(tokenizer), "max_position_embeddings": CONTEXT}
    text |= {name: getattr(tokenizer, name) for name in marks}
    parts = {"text_config": text, "projection_dim": 24}
    parts["vision_config"] = {**SIZE, "image_size": 32, "patch_size": 8}
    config = CLIPConfig(**parts)
    crop = {"height": 32, "width": 32}
    images = CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=crop)
    CLIPProcessor(images, tokenizer).save_pretrained(folder)
    _save(_seeded(CLIPModel, config, seed), folder, safe)
    return Path(folder)


def build_dino(folder: Path, seed: int = 0, pooler: bool = False) -> Path:
    """A vision transformer of two layers, without a pooler as DINO's is."""
    from transformers import ViTConfig, ViTImageProcessor, ViTModel

    config = ViTConfig(**SIZE, image_size=32, patch_size=8)
    ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    make = lambda own: ViTModel(own, add_pooling_layer=pooler)
    _save(_seeded(make, config, seed), folder, safe=True)
    return Path(folder)


def build_alexnet(file: Path, seed: int = 0) -> Path:
    """The features of torchvision's AlexNet, as safetensors or a pickled state dict by its name."""
    import torch
    from safetensors.torch import save_file
    from torchvision.models import alexnet

    # the classifier, which LPIPS does not use, is most of it
    found = _seeded(lambda _: alexnet(), None, seed).state_dict()
    held = {name: it for name, it in found.items() if name.startswith("features.")}
    file = Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(held, file) if file.suffix == ".safetensors" else torch.save(held, file)
    return file


def clip_tokenizer():
    """CLIP's tokenizer with single bytes and a few words."""
    from tokenizers import pre_tokenizers
    from transformers import CLIPTokenizer

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*letters, *(f"{letter}</w>" for letter in letters)]
    merges = []
    for word in WORDS:
        whole = [*word[:-1], f"{word[-1]}</w>"]
        while len(whole) > 1:
            merges.append((whole[0], whole[1]))
            whole = [whole[0] + whole[1], *whole[2:]]
            pieces.append(whole[0])
    pieces += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    return CLIPTokenizer(vocab=vocabulary, merges=list(dict.fromkeys(merges)))


def _seeded(make, argument, seed):
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make(argument)
        with torch.no_grad():
            for name, tensor in network.named_parameters():
                is_small = tensor.dim() > 1 and tensor.shape[0] < 1000
                if is_small and "features" not in name:
                    tensor.normal_(0, SPREAD)
    return network.eval()


def _save(network, folder, safe):
    import torch

    network.save_pretrained(folder)
    if not safe:
        torch.save(network.state_dict(), Path(folder) / "pytorch_model.bin")
        (Path(folder) / "model.safetensors").unlink()

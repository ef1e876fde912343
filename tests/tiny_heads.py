"""Value heads and adapters for the tiny Qwen2.5-VL: random weights, real files."""

import itertools
from pathlib import Path

SPREAD = 0.1


def build_head(file, sizes=(128, 64, 1), seed=0, prefix="", bias=True, step=2):
    """Linear layers as `torch.nn.Sequential` names them; `step` 3 as with dropout between."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(seed)
    drawn = lambda *shape: torch.randn(*shape, generator=generator) * SPREAD
    held = {}
    for number, (before, after) in enumerate(itertools.pairwise(sizes)):
        name = f"{prefix}.{number * step}" if prefix else str(number * step)
        held[f"{name}.weight"] = drawn(after, before)
        if bias:
            held[f"{name}.bias"] = drawn(after)
    file = Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(held, file) if file.suffix == ".safetensors" else torch.save(held, file)
    return file


def build_adapter(folder: Path, base: Path, added=(), seed: int = 1) -> Path:
    """A random LoRA adapter; with `added` tokens it has embeddings for the whole tokenizer."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForImageTextToText, AutoProcessor

    network = AutoModelForImageTextToText.from_pretrained(base, dtype="float32")
    processor = AutoProcessor.from_pretrained(base)
    whole = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if added:
            processor.tokenizer.add_tokens(list(added), special_tokens=True)
            count = len(processor.tokenizer)
            network.resize_token_embeddings(count, mean_resizing=False)
            whole = ["embed_tokens", "lm_head"]
        trained = {"target_modules": ["q_proj", "v_proj"]}
        trained["modules_to_save"] = whole or None
        config = LoraConfig(r=4, lora_alpha=8, **trained)
        adapted = get_peft_model(network, config)
        for name, tensor in adapted.named_parameters():
            if "lora_B" in name or "modules_to_save" in name:
                tensor.data.normal_(0, 0.1)
    adapted.save_pretrained(folder)
    processor.save_pretrained(folder)
    return Path(folder)

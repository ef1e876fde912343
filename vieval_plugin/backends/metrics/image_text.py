"""Image-text models of transformers as reward models build on them: with an adapter, and with
tokens of their own.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import PIL.Image

from vieval_plugin.backends.weights import (
    Origin,
    Tensors,
    device,
    hub_name_or_folder,
    library,
    load_failure_reason,
    require_whole,
)
from vieval_plugin.text.errors import VievalError, line_of


@dataclass(frozen=True)
class ImageTextModel:
    """A loaded model with its processor."""

    #: Gives hidden states; its language head is left alone.
    network: Any
    #: Prepares texts and images.
    processor: Any
    device: Any

    @property
    def tokenizer(self) -> Any:
        return self.processor.tokenizer

    @property
    def size(self) -> int:
        """The length of a hidden state."""
        return int(self.network.config.get_text_config().hidden_size)

    def token(self, text: str) -> int:
        """The id of a token; VievalError where the text is not one token."""
        token_ids = self.tokenizer(text, add_special_tokens=False).input_ids
        if len(token_ids) != 1:
            raise VievalError(
                f"{text!r} must be a single token of this model, got {len(token_ids)} "
                "tokens; list it under added_tokens"
            )
        return int(token_ids[0])

    def prompt(self, system: str, text: str, images: int, answer: str) -> str:
        """A conversation in the model's own template: images, then a text, then what the answer
        begins with.
        """
        content = [{"type": "image"} for _ in range(images)]
        content.append({"type": "text", "text": text})
        turns = []
        if system:
            turns.append(
                {"role": "system", "content": [{"type": "text", "text": system}]}
            )
        turns.append({"role": "user", "content": content})
        return (
            str(
                self.processor.apply_chat_template(
                    turns,
                    tokenize=False,
                    add_generation_prompt=True,
                )
            )
            + answer
        )

    def inputs(self, prompt: str, images: Sequence[PIL.Image.Image]) -> Tensors:
        """The network's inputs for one conversation: tensors whose first axis can be put
        together.
        """
        begin = self.tokenizer.bos_token
        return dict(
            self.processor(
                text=[prompt],
                images=[list(images)],
                return_tensors="pt",
                add_special_tokens=not (begin and prompt.startswith(begin)),
            )
        )

    def hidden(self, inputs: Tensors, sequential: bool = False) -> Any:
        """The last hidden states, a tensor (asks, tokens, size).

        With `sequential` each token's position is its index, where a model would give those of an
        image rows and columns.
        """
        torch = library("torch")
        if sequential:
            shape = inputs["input_ids"].shape
            indices = torch.arange(shape[1]).expand(*shape)
            has_rows = "mrope_section" in str(
                self.network.config.get_text_config().to_dict()
            )
            if has_rows:
                indices = indices.expand(3, *indices.shape)
            inputs = {**inputs, "position_ids": indices}
        on_device = {}
        for name, value in inputs.items():
            # token ids stay whole numbers
            dtype = self.network.dtype if torch.is_floating_point(value) else None
            on_device[name] = value.to(self.device, dtype)
        return self.network.base_model(**on_device, use_cache=False).last_hidden_state


def load(
    base: Origin,
    processor: str,
    added_tokens: Sequence[str],
    adapter: str,
    pixels: dict[str, int],
    dtype: str,
    tensors: Tensors | None = None,
) -> ImageTextModel:
    """An image-text model with its processor.

    Args:
        base: a name on the hub or a folder, and its revision and device.
        processor: where the processor is, if not with the base.
        added_tokens: special tokens that the tokenizer gets, in this order.
        adapter: a folder that peft wrote, or its name on the hub; its weights are added to the
            base's.
        pixels: bounds of an image's pixels (`min_pixels`, `max_pixels`), for processors that have
            them.
        dtype: float32 or bfloat16.
        tensors: all weights, where only the configuration and the processor are the base's; the
            network then has as many embeddings as the tokenizer has tokens.

    Raises:
        VievalError: a part of it is missing, lacks weights, is not an image-text model, or holds
            more than tensors.
    """
    where = hub_name_or_folder(base.model)
    on = device(base.device)
    transformers = library("transformers")
    origin = {
        "trust_remote_code": False,
        **({"revision": base.revision} if base.revision else {}),
    }
    try:
        loaded = _processor(
            transformers,
            hub_name_or_folder(processor),
            pixels,
            {} if processor != base.model else origin,
        )
        loaded.tokenizer.add_tokens(list(added_tokens), special_tokens=True)
        if tensors is not None:
            config = transformers.AutoConfig.from_pretrained(where, **origin)
            config.get_text_config().vocab_size = len(loaded.tokenizer)
            network = _network_of(config, tensors, dtype)
            return ImageTextModel(network.to(on).eval(), loaded, on)
        network, loading_info = (
            transformers.AutoModelForImageTextToText.from_pretrained(
                where,
                dtype=dtype,
                output_loading_info=True,
                **origin,
            )
        )
    except VievalError:
        raise
    except Exception as error:  # of files that others wrote
        if "Unrecognized configuration class" in str(error):
            raise VievalError(
                f"{where} has an unsupported architecture; use an image-text model"
            ) from None
        raise VievalError(load_failure_reason(where, base.revision, error)) from None
    # the language head gives no hidden state, and reward models may be kept without it
    if missing := sorted(
        name
        for name in loading_info["missing_keys"]
        if not name.endswith("lm_head.weight")
    ):
        raise VievalError(
            f"{where} is missing weights of {type(network).__name__}, such as "
            f"{missing[0]}"
        )
    embedded = network.get_input_embeddings().weight.shape[0]
    if (
        len(loaded.tokenizer) > embedded
    ):  # embeddings of new tokens are no numbers until they are loaded
        network.resize_token_embeddings(len(loaded.tokenizer), mean_resizing=False)
        network.get_input_embeddings().weight.data[embedded:] = math.nan
    if adapter:
        network = _adapted(network, adapter)
    if bool(network.get_input_embeddings().weight.isnan().any()):
        raise VievalError(
            f"neither {where} nor an adapter has embeddings for {', '.join(added_tokens)}; "
            "use an adapter that was saved with them"
        )
    return ImageTextModel(
        network.to(on).eval(),
        loaded,
        on,
    )


def _processor(
    transformers: Any,
    where: str,
    pixels: dict[str, int],
    origin: dict[str, Any],
) -> Any:
    processor = transformers.AutoProcessor.from_pretrained(
        where,
        **pixels,
        **origin,
    )
    images = getattr(processor, "image_processor", None)
    if images is None or getattr(processor, "tokenizer", None) is None:
        raise VievalError(f"{where} has no processor that handles both images and text")
    options = getattr(getattr(images, "valid_kwargs", None), "__annotations__", {})
    if unknown := sorted(set(pixels) - set(options)):
        raise VievalError(
            f"the processor of {where} does not support {unknown[0]}; remove that setting"
        )
    if not getattr(processor, "chat_template", None):
        raise VievalError(f"{where} has no chat template; use a processor that has one")
    return processor


def _network_of(config: Any, tensors: Tensors, dtype: str) -> Any:
    """The network of a configuration with these weights, each of its own and no other."""
    kinds = library("transformers").MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    network, loading_info = kinds[type(config)].from_pretrained(
        None,
        config=config,
        state_dict=dict(tensors),
        dtype=dtype,
        output_loading_info=True,
        ignore_mismatched_sizes=True,
    )
    require_whole(
        f"the weights file for {config.name_or_path}",
        loading_info["missing_keys"],
        loading_info["unexpected_keys"],
        [name for name, *_ in loading_info["mismatched_keys"]],
    )
    return network


def _adapted(network: Any, adapter: str) -> Any:
    """The network with the adapter's weights added to its own, and those saved whole in place of
    its own.
    """
    peft = library("peft")
    where = hub_name_or_folder(adapter)
    try:
        config = peft.PeftConfig.from_pretrained(where)
        if str(getattr(config.peft_type, "value", config.peft_type)) != "LORA":
            raise VievalError(f"{where} must be a LoRA adapter, got {config.peft_type}")
        with warnings.catch_warnings():
            # peft goes on with random numbers
            warnings.filterwarnings("error", message=".*missing adapter keys.*")
            return peft.PeftModel.from_pretrained(network, where).merge_and_unload()
    except VievalError:
        raise
    except Exception as error:  # of files that others wrote
        if Path(where).is_dir() and not (Path(where) / "adapter_config.json").exists():
            raise VievalError(
                f"{where} has no adapter_config.json; use an adapter saved by peft"
            ) from None
        raise VievalError(
            f"the adapter {where} does not match its base model: {line_of(error)}"
        ) from None

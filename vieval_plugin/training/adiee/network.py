"""A model with the token `[SCORE]` and a head that reads a number at the position that
predicts the token.

Source: ADIEE (ICCV 2025), supplementary: an MLP of two layers as wide as the model on the last
layer's hidden state at the position that predicts the token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from vieval_plugin.backends.weights import library
from vieval_plugin.text.errors import VievalError
from vieval_plugin.training.tuning import Tune, load_base

TOKEN = "[SCORE]"

_IGNORED = -100
# language model only: some image towers use the same projection names
_TUNED = r"^(?!.*(?:visual|vision)).*\.(?:q_proj|v_proj)$"
_RANK = 8
_ALPHA = 16
_DROPOUT = 0.05


@dataclass(frozen=True)
class Trained:
    """A model during training."""

    #: Gives the losses.
    module: Any
    #: The model in it.
    network: Any
    #: Prepares the model's inputs.
    processor: Any

    @property
    def head(self) -> Any:
        return self.module.head


def load(
    base: str,
    tuning: Tune,
    with_head: bool,
    dtype: str = "float32",
) -> Trained:
    """Load a base with its token and a new head, and mark the weights to train.

    Args:
        base: a folder or a name on the hub of an image-text model of transformers.
        tuning: `full` for every weight, `lora` for adapters on the language model's query and value
            projections; then embeddings, output layer and head are trained too.
        with_head: if False, neither token nor head is added, and the model learns to answer with numbers.
        dtype: of the base's weights.

    Raises:
        VievalError: the base cannot be loaded, already has a token of that name, or has no layers
            for adapters.
    """
    network, processor = load_base(base, dtype)
    tokenizer = processor.tokenizer
    tokenizer.padding_side = "right"
    if with_head:
        if TOKEN in tokenizer.get_vocab():
            raise VievalError(
                f"--base {base} already contains the token {TOKEN}; use the base "
                "that it was trained from"
            )
        tokenizer.add_special_tokens(
            {"extra_special_tokens": [TOKEN]}, replace_extra_special_tokens=False
        )
        if len(tokenizer) > network.get_input_embeddings().num_embeddings:
            network.resize_token_embeddings(len(tokenizer))
    torch = library("torch")
    width = network.get_input_embeddings().embedding_dim
    network = network if tuning == "full" else _adapted(network, base)
    linear = torch.nn.Linear
    head = (
        torch.nn.Sequential(
            linear(width, width),
            torch.nn.ReLU(),
            linear(width, 1),
        )
        if with_head
        else None
    )
    return Trained(_module(torch, network, head), network, processor)


def _adapted(network: Any, base: str) -> Any:
    if not any(re.match(_TUNED, name) for name, _ in network.named_modules()):
        raise VievalError(
            f"--base {base} has no q_proj and v_proj layers for adapters; use --tune "
            "full"
        )
    peft = library("peft")
    settings = peft.LoraConfig(
        r=_RANK,
        lora_alpha=_ALPHA,
        lora_dropout=_DROPOUT,
        target_modules=_TUNED,
    )
    adapted = peft.get_peft_model(network, settings)
    for layer in (network.get_input_embeddings(), network.get_output_embeddings()):
        layer.requires_grad_(True)
    return adapted


def merged(network: Any) -> Any:
    """Merge adapters into the weights of the transformers model."""
    has_adapters = hasattr(network, "merge_and_unload")
    return network.merge_and_unload() if has_adapters else network


def positions(tokens: Any, token: int) -> Any:
    """For each row of token ids (rows, length), return the position that predicts the
    first `token`: the one before it.

    Raises:
        VievalError: a row has no such token, or begins with it.
    """
    first = (tokens == token).int().argmax(dim=1)
    found = tokens.gather(1, first[:, None])[:, 0]
    if bool(((found != token) | (first == 0)).any()):
        raise VievalError(
            f"every answer must contain {TOKEN}; use the tokenizer that the model "
            "was trained with"
        )
    return first - 1


def _module(torch: Any, network: Any, head: Any) -> Any:
    class Scorer(torch.nn.Module):  # type: ignore[misc]
        """Map hidden states to losses in one call, as required to share a model between
        processes.
        """

        def __init__(self) -> None:
            super().__init__()
            self.network = network
            self.head = head

        def forward(
            self,
            inputs: Any,
            at: Any,
            targets: Any,
        ) -> tuple[Any, Any]:
            """Return values (rows,) of the head at the positions `at`, None without a
            head; and the text's cross-entropy.

            `targets` (rows, length) has the expected token ids, -100 at other
            positions.
            """
            # the transformers model, with or without adapters
            model = self.network
            if hasattr(model, "get_base_model"):
                model = model.get_base_model()
            hidden = model.base_model(**inputs).last_hidden_state
            is_target = targets[:, 1:] != _IGNORED
            target_states = hidden[:, :-1][is_target]
            logits = model.get_output_embeddings()(target_states).float()
            text = torch.nn.functional.cross_entropy(logits, targets[:, 1:][is_target])
            if self.head is None:
                return None, text
            read = hidden[torch.arange(len(at), device=at.device), at]
            return self.head(read.float()).squeeze(-1), text

    return Scorer()

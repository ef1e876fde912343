"""Probabilities from the host's own `loglikelihood`, of the models where it is known what that returns.

The host documents a log-probability; its models return a mean cross-entropy in nats, positive, over whatever tokens
their code leaves unmasked. Only where those are exactly the answer and the end of the turn is exp(-value)
`sequence_mean`; docs/vqascore_models.md tells how each model was read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from lmms_eval.api.instance import Instance

from vieval_plugin.backends.reply_checks import log_probability
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Failure, Likelihood, Probabilities, Reply, Status

# class -> the conversation template with which only the answer and the end of the turn are scored
_ALLOWED = {"Llava": "vicuna_v1", "Ross": "vicuna_v1"}


def require_known(model: Any, asks: Sequence[Likelihood]) -> None:
    """VievalError where a model cannot tell these probabilities, or it is not known what it would tell."""
    name = type(model).__name__
    advice = "serve it with vLLM and use --model vieval_openai, or use --model vieval_transformers"
    if name not in _ALLOWED:
        raise VievalError(f"{name} cannot be asked for probabilities here; {advice}")
    if (template := getattr(model, "conv_template", None)) != _ALLOWED[name]:
        raise VievalError(f"{name} scores other tokens too with conv_template={template}; use {_ALLOWED[name]}")
    if any(ask.definition != "sequence_mean" for ask in asks):
        raise VievalError(
            f"{name}'s loglikelihood tells sequence_mean only: set the judge's option `definition` to it where it has one, "
            f"or {advice}"
        )


def probabilities(
    model: Any,
    asks: Sequence[Likelihood],
    place: tuple[str, str],
    visuals: Callable[[Any], list[Any]],
    text: Callable[[Likelihood], str],
) -> list[Reply]:
    """The probability of every continuation of every ask; `place` is the task and split whose rows the asks are."""
    task, split = place
    rows = [
        Instance(
            "loglikelihood",
            (text(ask), continuation, visuals, row, task, split),
            0,
            {"task": task, "doc_id": row, "repeats": 1, "split": split},
        )
        for row, ask in enumerate(asks)
        for continuation in ask.continuations
    ]
    losses = iter([loss for loss, _ in model.loglikelihood(rows)] if rows else [])
    return [_read([next(losses) for _ in ask.continuations]) for ask in asks]


def _read(losses: Sequence[Any]) -> Reply:
    """Probabilities from losses, which may be tensors of one number."""
    try:
        log_probabilities = [loss if isinstance(loss, bool) else -float(loss) for loss in losses]
        values = tuple(math.exp(log_probability(value)) for value in log_probabilities)
    except (TypeError, ValueError) as error:
        return Failure(Status.API_ERROR, f"the host's model told {error}")
    return Probabilities(values, values)

"""Use any lmms-eval model as a judge's backbone, through a method `vieval_judge` added
to its base class.

The asks of all live programs become one synthetic dataset with one row an ask, served by functions
of this module: about half of the host's models use the first request's functions for a whole batch,
and would show every sample the first one's images if each request brought its own.
"""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from lmms_eval.api.instance import GenerationResult, Instance, unwrap_generation_output

from vieval_plugin import config
from vieval_plugin.backends.cache.store import Store, key_of, question
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.batch import answer_in_batches, chats_and_likelihoods
from vieval_plugin.backends.reply_checks import log_probability
from vieval_plugin.hosts.lmms_eval.answering import (
    JudgeRequest,
    judged,
    or_plan,
    requests_of,
    results,
)
from vieval_plugin.hosts.shutdown import vieval_errors
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Image,
    Likelihood,
    Probabilities,
    Reply,
    Status,
    Text,
)
from vieval_plugin.run.answerers import BatchAnswerer
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.router import AnswerBatch, Question
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import say
from vieval_plugin.text.redaction import redacted

TASK = "vieval_asks"
SPLIT = "asks"
# what hosts write in place of an answer; the last is `async_openai` on a message without content
_FAILURES = (
    "[LMMS_EVAL_REQUEST_FAILED",
    "[LMMS_EVAL_BUDGET_EXCEEDED",
    'Error: can only concatenate str (not "NoneType") to str',
)
# The host documents a log-probability of `loglikelihood`; its models return a mean cross-entropy in
# nats, positive, over whatever tokens their code leaves unmasked. Only where those are exactly the
# answer and the end of the turn is exp(-value) `sequence_mean`: docs/dev/hosts.md
# has each model. class -> the conversation template with which only these are scored
_ALLOWED = {"Llava": "vicuna_v1", "Ross": "vicuna_v1"}


@vieval_errors
@or_plan
def vieval_judge(model: Any, instances: list[Instance]) -> list[GenerationResult]:
    """Judge all samples with a host's own model, in batch steps; becomes a method of the host's
    base class.
    """
    _refuse_lockstep(model)
    requests = requests_of(instances)
    if not requests:
        return results(instances, [], [], "")
    # the weights of a model that a user made may be any, so that answers could not be told apart
    answerer = BatchAnswerer(
        _HostBackend(model, requests), keeps_replies=bool(requests[0].model_hash)
    )
    return judged(
        instances,
        answerer,
        config.current(),
        requests[0].backbone,
    )


class _HostBackend:
    """Answers the asks of a batch step through the host's `generate_until`. Calling it
    answers the jobs of a run.
    """

    def __init__(self, model: Any, requests: list[JudgeRequest]) -> None:
        self.model = model
        self.requests = requests

    def __call__(
        self, jobs: Sequence[Job], store: Store | None, usage: Usage
    ) -> AnswerBatch:
        self.repeats = [job.repeat for job in jobs]
        self.store = store
        self.usage = usage
        return self.answer

    def answer(self, questions: list[tuple[int, Question]]) -> list[Reply]:
        likelihoods = chats_and_likelihoods(questions)[1]
        if likelihoods:
            require_known(self.model, [ask for _, _, ask in likelihoods])
        return answer_in_batches(
            questions,
            key=self._key,
            generate=self._generate,
            store=self.store,
            model=self.requests[0].backbone,
            usage=self.usage,
        )

    def _generate(self, batch: list[tuple[int, Question]]) -> list[Reply]:
        try:
            return self._ask(batch)
        # an image that cannot be read ends the host's whole batch: ask the rest without it
        except VievalError:
            failures = [_unreadable(ask) for _, ask in batch]
            if not any(failures):
                raise
        asks = zip(batch, failures, strict=True)
        readable = [numbered for numbered, failure in asks if not failure]
        replies = iter(self._ask(readable))
        return [failure or next(replies) for failure in failures]

    def _ask(self, batch: list[tuple[int, Question]]) -> list[Reply]:
        """Chats by the host's `generate_until`, then likelihoods by its `loglikelihood`; replies
        in the asks' order.
        """
        chats, likelihoods = chats_and_likelihoods(batch)
        numbered = [(number, ask) for _, number, ask in chats]
        texts = self._run([ask for _, ask in numbered], lambda: self._texts(numbered))
        asks = [ask for _, _, ask in likelihoods]
        likelihood_replies = self._run(asks, lambda: probabilities(self.model, asks))
        indices = [index for index, *_ in (*chats, *likelihoods)]
        replies = dict(zip(indices, [*texts, *likelihood_replies], strict=True))
        return [replies[index] for index in range(len(batch))]

    def _texts(self, chats: list[tuple[int, Chat]]) -> list[Reply]:
        rows = []
        for row, (number, chat) in enumerate(chats):
            generation = self._generation(number, chat)
            arguments = _arguments(self.model, chat, generation, row)
            rows.append(Instance("generate_until", arguments, 0, _metadata(row)))
        return [_reply(output) for output in self.model.generate_until(rows)]

    def _run(
        self, asks: Sequence[Question], answer: Callable[[], list[Reply]]
    ) -> list[Reply]:
        """Expose asks as rows of the synthetic dataset while the host's model answers
        them.
        """
        if not asks:
            return []
        self.model.task_dict[TASK] = {SPLIT: [{"ask": ask} for ask in asks]}
        try:
            return answer()
        except VievalError:
            raise
        except Exception as error:  # the host would print it and exit 0
            say(*redacted(traceback.format_exc()).splitlines(), file=sys.stderr)
            reason = redacted(" ".join(str(error).split()))[:300]
            problem = f"{type(error).__name__}: {reason}"
            raise VievalError(
                f"{type(self.model).__name__} failed ({problem}); earlier answers are kept; run "
                "the same command again to resume"
            ) from None
        finally:
            del self.model.task_dict[TASK]

    def _generation(self, number: int, ask: Chat) -> dict[str, Any]:
        generation = dict(self.requests[number].generation)
        return {
            "temperature": 0,
            **generation,
            "max_new_tokens": generation.get("max_new_tokens") or ask.max_tokens,
        }

    def _key(self, number: int, ask: Question, digest: Callable[[Image], str]) -> str:
        request = self.requests[number]
        question_parts = question(ask, digest)
        identity = {
            "host": request.model_hash,
            "simple": bool(self.model.is_simple),
            "repeat": self.repeats[number],
        }
        chats, _ = chats_and_likelihoods([(number, ask)])
        generation = self._generation(number, chats[0][2]) if chats else {}
        return key_of({**identity, **question_parts, "generation": generation})


def messages_of(doc: dict[str, Any], **_rounds: Any) -> list[dict[str, Any]]:
    """A row's conversation in the form of the host's chat models."""
    messages = []
    for message in doc["ask"].messages:
        content = list(map(_content, message.parts))
        messages.append({"role": message.role, "content": content})
    return messages


def _content(part: Image | str) -> dict[str, Any]:
    """A part of a message in the form of the host's chat models."""
    if isinstance(part, Image):
        return {"type": "image", "url": decode(part)}
    return {"type": "text", "text": part}


def visuals_of(doc: dict[str, Any]) -> list[Any]:
    """A row's images, in order, for the host's simple models."""
    return [
        decode(part)
        for message in doc["ask"].messages
        for part in message.parts
        if isinstance(part, Image)
    ]


def text_of(chat: Question) -> str:
    """A conversation as one text: simple models take no turns."""
    turns = [
        "\n\n".join(part for part in m.parts if isinstance(part, str))
        for m in chat.messages
    ]
    if len(turns) == 1:
        return turns[0]
    roles = [message.role for message in chat.messages]
    spoken = [f"{role}: {turn}" for role, turn in zip(roles, turns, strict=True)]
    return "\n\n".join(spoken)


def _arguments(
    model: Any, chat: Chat, generation: dict[str, Any], row: int
) -> tuple[Any, ...]:
    inputs = (
        (dict(generation), visuals_of)
        if model.is_simple
        else (messages_of, dict(generation))
    )
    return (text_of(chat), *inputs, row, TASK, SPLIT)


def _metadata(row: int) -> dict[str, Any]:
    return {
        "task": TASK,
        "doc_id": row,
        "repeats": 1,
        "split": SPLIT,
    }


def _reply(output: Any) -> Reply:
    """Reply in a host's output; placeholder texts of failed calls are failures."""
    text, tokens = unwrap_generation_output(output)
    text = text if isinstance(text, str) else str(text or "")
    if text.startswith(_FAILURES):
        return Failure(Status.API_ERROR, " ".join(text.split())[:300])
    if not text.strip():
        return Failure(Status.API_ERROR, "the host's model returned an empty reply")
    return Text(
        text,
        tokens.input_tokens if tokens else None,
        tokens.output_tokens if tokens else None,
    )


def _unreadable(chat: Question) -> Failure | None:
    try:
        visuals_of({"ask": chat})
    except VievalError as error:
        return Failure(Status.TOOL_ERROR, str(error))
    return None


def _refuse_lockstep(model: Any) -> None:
    """Refuse ranks that must generate in lockstep: each has its own number of batch steps, and
    all would wait for ever.
    """
    kind = str(
        getattr(getattr(model, "accelerator", None), "distributed_type", "")
    ).upper()
    if model.world_size > 1 and ("FSDP" in kind or "DEEPSPEED" in kind):
        raise VievalError(
            "judging with a model sharded across processes (FSDP, DeepSpeed) is not "
            "supported, because ranks need different numbers of steps; serve the "
            "model with vLLM and use --model vieval_openai, or run one process"
        )


def require_known(model: Any, asks: Sequence[Likelihood]) -> None:
    """Raise VievalError if the model's probabilities are unsupported or undocumented."""
    name = type(model).__name__
    advice = "serve it with vLLM and use --model vieval_openai, or use --model vieval_transformers"
    if name not in _ALLOWED:
        raise VievalError(f"{name} does not support probabilities here; {advice}")
    if (template := getattr(model, "conv_template", None)) != _ALLOWED[name]:
        raise VievalError(
            f"{name} with conv_template={template} also scores other tokens; use "
            f"conv_template={_ALLOWED[name]}"
        )
    if any(ask.definition != "sequence_mean" for ask in asks):
        raise VievalError(
            f"{name} supports only sequence_mean; set the judge's option `definition` to it, if "
            f"it has that option, or {advice}"
        )


def probabilities(model: Any, asks: Sequence[Likelihood]) -> list[Reply]:
    """The probability of every continuation of every ask, which are the rows of the synthetic
    dataset.
    """
    rows = []
    for row, ask in enumerate(asks):
        for continuation in ask.continuations:
            arguments = text_of(ask), continuation, visuals_of, row, TASK, SPLIT
            rows.append(Instance("loglikelihood", arguments, 0, _metadata(row)))
    losses = iter([loss for loss, _ in model.loglikelihood(rows)] if rows else [])
    return [_read([next(losses) for _ in ask.continuations]) for ask in asks]


def _read(losses: Sequence[Any]) -> Reply:
    """Probabilities from losses, which may be tensors of one number."""
    try:
        log_probabilities = [
            loss if isinstance(loss, bool) else -float(loss) for loss in losses
        ]
        values = tuple(math.exp(log_probability(value)) for value in log_probabilities)
    except (TypeError, ValueError) as error:
        return Failure(Status.API_ERROR, f"the host's model returned {error}")
    return Probabilities(values, values)

"""Any model of lmms-eval as a judge's backbone: the method `vieval_judge` that its base class gets.

The asks of all live programs become one synthetic dataset with one row an ask, served by functions of this module:
about half of the host's models use the first request's functions for a whole batch, and would show every sample the
first one's images if each request brought its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lmms_eval.api.instance import GenerationResult, Instance, unwrap_generation_output

from vieval_plugin import config, live
from vieval_plugin.backends.measure import measure
from vieval_plugin.backends.store import Store, key_of
from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.lmms_eval.answering import jobs, results
from vieval_plugin.hosts.lmms_eval.errors import one_line
from vieval_plugin.hosts.lmms_eval.task import JudgeRequest
from vieval_plugin.images import decode, digest
from vieval_plugin.judges.protocol import Ask, Chat, Failure, Image, Likelihood, Measure, Reply, Status, Text
from vieval_plugin.scheduler import run_in_waves

TASK, SPLIT = "vieval_asks", "asks"
# replies are stored after each call of the host's model; so many asks are lost at most when a run is killed
ASKS_A_CALL = 512
_FAILURES = ("[LMMS_EVAL_REQUEST_FAILED", "[LMMS_EVAL_BUDGET_EXCEEDED")


@one_line
def vieval_judge(model: Any, instances: list[Instance]) -> list[GenerationResult]:
    """Judge all samples with a host's own model, wave by wave; becomes a method of the host's base class."""
    _refuse_lockstep(model)
    options = config.current()
    requests, made, prepared = jobs(instances, options)
    if not requests:
        return results(instances, [], [], prepared, "")
    live.require_images((r.sample for r in requests), "`vieval tasks` says how to get a benchmark's images")
    progress = live.Progress()
    with _store(options, requests[0]) as store:
        backend = _HostBackend(model, requests, [job.repeat for job in made], store, progress)
        outcomes = run_in_waves([job.judge(job.sample) for job in made], backend.answer)
    progress.statuses.update(outcome.verdict.status for outcome in outcomes)
    print("\n".join(f"vieval: {line}" for line in progress.lines()), file=sys.stderr)
    return results(instances, requests, outcomes, prepared, requests[0].backbone)


class _HostBackend:
    """Answers the asks of one wave through the host's `generate_until`, the store first."""

    def __init__(
        self, model: Any, requests: list[JudgeRequest], repeats: list[int], store: Store | None, progress: live.Progress
    ) -> None:
        self.model, self.requests, self.repeats = model, requests, repeats
        self.store, self.progress = store, progress

    def answer(self, asked: list[tuple[int, Ask]]) -> list[Reply]:
        replies: dict[int, Reply] = {}
        chats: list[tuple[int, Chat, dict[str, Any], str]] = []
        for place, (number, ask) in enumerate(asked):
            if isinstance(ask, Measure):
                replies[place] = measure(ask)
            elif isinstance(ask, Chat):
                generation = self._generation(number, ask)
                key = self._key(number, ask, generation)
                stored = self.store.get(key) if self.store else None
                if stored is None:
                    chats.append((place, ask, generation, key))
                else:
                    replies[place] = Text(**stored)
                    self.progress.usage.cached += 1
            else:
                raise VievalError(_cannot(self.model, ask))
        for start in range(0, len(chats), ASKS_A_CALL):
            replies |= self._generate(chats[start : start + ASKS_A_CALL])
        return [replies[place] for place in range(len(asked))]

    def _generate(self, chats: list[tuple[int, Chat, dict[str, Any], str]]) -> dict[int, Reply]:
        self.model.task_dict[TASK] = {SPLIT: [{"ask": chat} for _, chat, _, _ in chats]}
        rows = [
            Instance("generate_until", _arguments(self.model, chat, generation, row), 0, _metadata(row))
            for row, (_, chat, generation, _) in enumerate(chats)
        ]
        outputs = self.model.generate_until(rows)
        usage, replies = self.progress.usage, dict[int, Reply]()
        for (place, _, _, key), output in zip(chats, outputs, strict=True):
            reply = replies[place] = _reply(output)
            usage.calls += 1
            if isinstance(reply, Failure):
                usage.failures[reply.reason] += 1
                continue
            assert isinstance(reply, Text)
            usage.input_tokens += reply.input_tokens or 0
            usage.output_tokens += reply.output_tokens or 0
            if self.store:
                stored = {"text": reply.text, "input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
                self.store.put(key, self.requests[0].backbone, stored)
        del self.model.task_dict[TASK]
        return replies

    def _generation(self, number: int, ask: Chat) -> dict[str, Any]:
        given = dict(self.requests[number].generation)
        return {**given, "max_new_tokens": given.get("max_new_tokens") or ask.max_tokens}

    def _key(self, number: int, ask: Chat, generation: dict[str, Any]) -> str:
        if self.store is None:
            return ""
        messages = [
            [m.role, [{"image": digest(p)} if isinstance(p, Image) else p for p in m.parts]] for m in ask.messages
        ]
        identity = {"host": self.requests[number].model_hash, "simple": bool(self.model.is_simple)}
        return key_of({**identity, "generation": generation, "messages": messages, "repeat": self.repeats[number]})


def messages_of(doc: dict[str, Any], **_rounds: Any) -> list[dict[str, Any]]:
    """A row's conversation in the form of the host's chat models."""
    return [
        {
            "role": message.role,
            "content": [
                {"type": "image", "url": decode(part)} if isinstance(part, Image) else {"type": "text", "text": part}
                for part in message.parts
            ],
        }
        for message in doc["ask"].messages
    ]


def visuals_of(doc: dict[str, Any]) -> list[Any]:
    """A row's images, in order, for the host's simple models."""
    return [decode(part) for message in doc["ask"].messages for part in message.parts if isinstance(part, Image)]


def text_of(chat: Chat) -> str:
    """A conversation as one text: simple models take no turns."""
    turns = ["\n\n".join(part for part in m.parts if isinstance(part, str)) for m in chat.messages]
    if len(turns) == 1:
        return turns[0]
    return "\n\n".join(f"{m.role}: {turn}" for m, turn in zip(chat.messages, turns, strict=True))


def _arguments(model: Any, chat: Chat, generation: dict[str, Any], row: int) -> tuple[Any, ...]:
    text = text_of(chat)
    if model.is_simple:
        return (text, dict(generation), visuals_of, row, TASK, SPLIT)
    return (text, messages_of, dict(generation), row, TASK, SPLIT)


def _metadata(row: int) -> dict[str, Any]:
    return {"task": TASK, "doc_id": row, "repeats": 1, "split": SPLIT}


def _reply(output: Any) -> Reply:
    """A host's output; what it writes in place of an answer when a call failed is no answer."""
    text, tokens = unwrap_generation_output(output)
    text = text if isinstance(text, str) else str(text)
    if text.startswith(_FAILURES):
        return Failure(Status.API_ERROR, " ".join(text.split())[:300])
    if not text.strip():
        return Failure(Status.API_ERROR, "the host's model returned an empty text")
    return Text(text, tokens.input_tokens if tokens else None, tokens.output_tokens if tokens else None)


def _cannot(model: Any, ask: Ask) -> str:
    name = type(model).__name__
    if isinstance(ask, Likelihood):
        return f"{name} cannot be asked for probabilities here; run this judge with --model vieval_openai"
    return f"{name} answers chats only, this judge asked for {type(ask).__name__}"


def _refuse_lockstep(model: Any) -> None:
    """Ranks that must generate in lockstep would wait for ever: each has its own number of waves."""
    kind = str(getattr(getattr(model, "accelerator", None), "distributed_type", "")).upper()
    if model.world_size > 1 and ("FSDP" in kind or "DEEPSPEED" in kind):
        raise VievalError(
            "judging with a model sharded over processes (FSDP, DeepSpeed) is not supported: ranks differ in their number "
            "of waves; serve the model with vLLM and use --model vieval_openai, or run one process"
        )


@contextmanager
def _store(options: config.Config, request: JudgeRequest) -> Iterator[Store | None]:
    """The store of replies; none for a model that the host did not name, whose answers could not be told apart."""
    path = options.store_path()
    store = Store(path) if path and request.model_hash else None
    try:
        yield store
    finally:
        if store is not None:
            store.close()

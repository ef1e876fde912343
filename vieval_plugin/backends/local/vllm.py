"""Chats and likelihoods through vLLM in this process, whole batches at a time."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from vieval_plugin.backends.cache.store import Store, key_of, question
from vieval_plugin.backends.http.image_encoding import encode
from vieval_plugin.backends.http.openai import Sampling, message_document
from vieval_plugin.backends.http.responses import CUT
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.batch import (
    EngineDied,
    ExaminedImage,
    answer_in_batches,
    run_or_halve,
)
from vieval_plugin.backends.reply_checks import (
    NumberedQuestion,
    Question,
    probabilities,
)
from vieval_plugin.backends.token_probabilities import (
    CLOSE_ENOUGH,
    UNKNOWN,
    Bounds,
    BoundsByPrefix,
    Tokens,
    open_prefix_tokens,
    probabilities_from_bounds,
    tokens_by_prefix,
)
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Image,
    Likelihood,
    Reply,
    Status,
    Text,
)
from vieval_plugin.text.errors import VievalError

_TOP_LOGPROBS = 20
_IMPOSSIBLE = -9999.0


#: An ask for continuations, its conversation and vLLM's output.
_PrefixAsk: TypeAlias = tuple[Any, list[Any], Any]


class VLLMBackend:
    """An engine of vLLM. `arguments` go to `vllm.LLM` as they are; a second engine in a process
    needs memory for both.
    """

    def __init__(
        self,
        model: str,
        *,
        usage: Usage,
        sampling: Sampling = Sampling(),
        store: Store | None = None,
        max_pixels: int | None = None,
        **arguments: Any,
    ) -> None:
        try:
            import vllm
        except ImportError as error:
            raise VievalError(
                f"vllm is not installed ({error}); run pip install 'vllm>=0.32,<0.33', or "
                "serve the model and use vieval_openai"
            ) from None
        self.model = model
        self.usage = usage
        self.sampling = sampling
        self.store = store
        self._max_pixels = max_pixels
        self._arguments = {k: str(v) for k, v in arguments.items()}
        self._engine = vllm.LLM(model=model, max_logprobs=_TOP_LOGPROBS, **arguments)
        # its threads end before the interpreter does: a process that left them running was seen to
        # end by SIGABRT; at an exit it is closed before multiprocessing waits for its processes,
        # which was registered earlier
        atexit.register(
            weakref.finalize(self, self._engine.llm_engine.engine_core.shutdown)
        )

    def answer(
        self, questions: Sequence[NumberedQuestion], repeats: Sequence[int]
    ) -> list[Reply]:
        """Replies to asks, in order; each comes with its program's number, an index into
        `repeats`.
        """
        return answer_in_batches(
            questions,
            look=self._look,
            key=lambda number, ask, digest: self._key(
                ask,
                repeats[number],
                digest,
            ),
            generate=lambda batch: self._generate([ask for _, ask in batch]),
            store=self.store,
            model=self.model,
            usage=self.usage,
        )

    def _look(self, image: Image) -> ExaminedImage:
        encoded = encode(image, self._max_pixels)
        return ExaminedImage(encoded.digest, encoded.notes)

    def _key(self, ask: Question, repeat: int, digest: Callable[[Image], str]) -> str:
        return key_of(
            {
                "engine": "vllm",
                "model": self.model,
                "arguments": self._arguments,
                "pixels": self._max_pixels,
                "temperature": self.sampling.temperature,
                "extra": self.sampling.extra,
                "limit": self.sampling.limit(ask),
                "repeat": repeat,
                **question(ask, digest),
            }
        )

    def _generate(self, asks: list[Question]) -> list[Reply]:
        replies: dict[int, Reply] = {}
        positions = []
        conversations = []
        for position, ask in enumerate(asks):
            if isinstance(ask, Likelihood) and ask.definition == "sequence_mean":
                replies[position] = Failure(
                    Status.API_ERROR,
                    f"vLLM cannot compute {ask.definition}; use vieval_transformers",
                )
                continue
            try:
                conversations.append(
                    [message_document(message, self._url) for message in ask.messages]
                )
                positions.append(position)
            except VievalError as error:
                replies[position] = Failure(Status.TOOL_ERROR, str(error))
        outputs = self._chat(
            conversations, [self._parameters(asks[position]) for position in positions]
        )
        prefix_asks = {}
        for position, conversation, output in zip(
            positions,
            conversations,
            outputs,
            strict=True,
        ):
            ask = asks[position]
            if isinstance(output, Failure):
                replies[position] = output
            elif isinstance(ask, Likelihood) and ask.definition == "beginning":
                prefix_asks[position] = ask, conversation, output
            else:
                replies[position] = _reply(ask, output)
        replies |= zip(
            prefix_asks,
            self._prefix_replies(list(prefix_asks.values())),
            strict=True,
        )
        return [replies[position] for position in range(len(asks))]

    def _prefix_replies(self, prefix_asks: Sequence[_PrefixAsk]) -> list[Reply]:
        """Replies to asks for prefixes, each with its conversation and the output that lists its
        first tokens.

        A further call has the first tokens that were not listed and may count, and another the
        turns that go on.
        """
        tokens = [
            list(map(self._tokens, ask.continuations)) for ask, _, _ in prefix_asks
        ]
        after = [
            tokens_by_prefix(continuation_tokens) for continuation_tokens in tokens
        ]
        bounds: list[BoundsByPrefix] = []
        firsts = []
        for number, (_, _, output) in enumerate(prefix_asks):
            first_bounds = _first(output, after[number][()])
            bounds.append({(): first_bounds})
            firsts += [(number, (), token) for token in _open_tokens(first_bounds)]
        self._ask_for_tokens(prefix_asks, bounds, firsts)
        further = [
            (number, prefix, token)
            for number, following in enumerate(after)
            for prefix, token in open_prefix_tokens(following, bounds[number][()])
        ]
        self._ask_for_tokens(prefix_asks, bounds, further)
        return [
            probabilities_from_bounds(answer_tokens, by_prefix)
            for answer_tokens, by_prefix in zip(tokens, bounds, strict=True)
        ]

    def _ask_for_tokens(
        self,
        prefix_asks: Sequence[_PrefixAsk],
        bounds: Sequence[BoundsByPrefix],
        token_requests: Sequence[tuple[int, Tokens, int]],
    ) -> None:
        """Add to `bounds` what the engine tells of single tokens, each by an ask's number and
        the prefix before it.
        """
        going_on = any(prefix for _, prefix, _ in token_requests)
        turns = []
        for number, prefix, _ in token_requests:
            conversation = list(prefix_asks[number][1])
            if going_on:
                conversation.append(
                    {
                        "role": "assistant",
                        "content": self._engine.get_tokenizer().decode(prefix),
                    }
                )
            turns.append(conversation)
        outputs = self._chat(
            turns,
            [_allowed(token) for *_, token in token_requests],
            going_on,
        )
        for (number, prefix, token), output in zip(
            token_requests,
            outputs,
            strict=True,
        ):
            # a template may change how the turn begins, and the tokenizer join its first token with
            # what stands before
            prompt = [*prefix_asks[number][2].prompt_token_ids, *prefix]
            if (
                not isinstance(output, Failure)
                and list(output.prompt_token_ids) == prompt
            ):
                low, high = _first(output, (token,))[token]
                by_token = bounds[number].setdefault(prefix, {})
                # a value above the bound that it should lie within shows an engine that
                # renormalises
                if high <= by_token.get(token, UNKNOWN)[1] * (1 + 1e-6):
                    by_token[token] = low, high

    def _tokens(self, text: str) -> Tokens:
        return tuple(
            self._engine.get_tokenizer().encode(text, add_special_tokens=False)
        )

    def _chat(
        self,
        conversations: list[Any],
        parameters: list[Any],
        going_on: bool = False,
    ) -> list[Any]:
        """The engine's outputs; a request that it refuses makes a whole call raise, and fails
        alone.

        `going_on` is for conversations that end with how the turn to be made begins.
        """
        turn = {
            "add_generation_prompt": not going_on,
            "continue_final_message": going_on,
        }

        def chat(requests: Sequence[tuple[Any, Any]]) -> list[Any]:
            try:
                return list(
                    self._engine.chat(*map(list, zip(*requests, strict=True)), **turn)
                )
            except Exception as error:
                if type(error).__name__ == "EngineDeadError":
                    raise EngineDied(
                        "the vLLM engine died (see its messages above); earlier answers are kept"
                    ) from None
                raise

        requests = list(zip(conversations, parameters, strict=True))
        return run_or_halve(requests, chat) if requests else []

    def _url(self, image: Image) -> str:
        return encode(image, self._max_pixels).url

    def _parameters(self, ask: Question) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        if isinstance(ask, Likelihood):
            return SamplingParams(temperature=0, max_tokens=1, logprobs=_TOP_LOGPROBS)
        structured = None
        if ask.schema is not None:
            structured = StructuredOutputsParams(json=dict(ask.schema))
        return SamplingParams(
            temperature=self.sampling.temperature,
            max_tokens=self.sampling.limit(ask),
            structured_outputs=structured,
            **self.sampling.extra,
        )


def _allowed(token: int) -> Any:
    """For a request that tells one token's raw log-probability."""
    from vllm import SamplingParams

    return SamplingParams(
        temperature=0,
        max_tokens=1,
        logprobs=0,
        allowed_token_ids=[token],
    )


def _open_tokens(first: Mapping[int, Bounds]) -> list[int]:
    """Tokens that the likeliest do not settle; none where all of them together hardly count."""
    widths = {token: high - low for token, (low, high) in first.items()}
    if sum(widths.values()) <= CLOSE_ENOUGH:
        return []
    return [token for token, width in widths.items() if width]


def _first(output: Any, token_ids: Sequence[int]) -> dict[int, Bounds]:
    """The lowest and highest that the probability of each first token can be, from those that an
    output lists.
    """
    logprobs = output.outputs[0].logprobs
    entries = logprobs[0] if logprobs else {}
    likeliest = {
        str(token): max(entry.logprob, _IMPOSSIBLE) for token, entry in entries.items()
    }
    bounds = probabilities(likeliest, tuple(map(str, token_ids)))
    if isinstance(bounds, Failure):
        return dict.fromkeys(token_ids, UNKNOWN)
    return dict(zip(token_ids, zip(bounds.low, bounds.high, strict=True), strict=True))


def _reply(ask: Question, output: Any) -> Reply:
    completion = output.outputs[0]
    if isinstance(ask, Chat):
        return Text(
            completion.text,
            len(output.prompt_token_ids),
            len(completion.token_ids),
            CUT.get(completion.finish_reason),
        )
    first = completion.logprobs[0] if completion.logprobs else {}
    # vLLM's own server says -9999 of a token that cannot be
    likeliest = {
        entry.decoded_token: max(entry.logprob, _IMPOSSIBLE) for entry in first.values()
    }
    return probabilities(likeliest, ask.continuations)

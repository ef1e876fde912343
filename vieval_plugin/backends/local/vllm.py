"""Chats and likelihoods through vLLM in this process, whole batches at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vieval_plugin.backends.cache.store import Store, key_of, question
from vieval_plugin.backends.http.exact_probabilities import CLOSE_ENOUGH
from vieval_plugin.backends.http.image_encoding import encode
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.response_parsing import CUT
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.batch import Looked, answer_in_batches
from vieval_plugin.backends.local.prefixes import UNKNOWN, Ends, Tokens, asked_after, joined
from vieval_plugin.backends.reply_checks import probabilities
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Chat, Failure, Image, Likelihood, Message, Reply, Status, Text

_LISTED, _IMPOSSIBLE = 20, -9999.0


class VLLMBackend:
    """An engine of vLLM. `arguments` go to `vllm.LLM` as they are; a second engine in a process needs memory for both."""

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
                f"vllm is not installed ({error}); run: pip install vllm (or serve and use vieval_openai)"
            ) from None
        self.model, self.usage, self.sampling = model, usage, sampling
        self.store, self._max_pixels, self._arguments = store, max_pixels, {k: str(v) for k, v in arguments.items()}
        self._engine = vllm.LLM(model=model, max_logprobs=_LISTED, **arguments)

    def answer(self, asked: Sequence[tuple[int, Chat | Likelihood]], repeats: Sequence[int]) -> list[Reply]:
        """Replies to asks, in order; each comes with its program's number, an index into `repeats`."""
        return answer_in_batches(
            asked,
            look=self._look,
            key=lambda number, ask, digest: self._key(ask, repeats[number], digest),
            generate=lambda batch: self._generate([ask for _, ask in batch]),
            store=self.store,
            model=self.model,
            usage=self.usage,
        )

    def _look(self, image: Image) -> Looked:
        encoded = encode(image, self._max_pixels)
        return Looked(encoded.digest, encoded.notes)

    def _key(self, ask: Chat | Likelihood, repeat: int, digest: Callable[[Image], str]) -> str:
        asked = question(ask, digest)
        engine = {"engine": "vllm", "model": self.model, "arguments": self._arguments, "pixels": self._max_pixels}
        sampling = {"temperature": self.sampling.temperature, "extra": self.sampling.extra, "limit": self._limit(ask)}
        return key_of({**engine, **sampling, "repeat": repeat, **asked})

    def _limit(self, ask: Chat | Likelihood) -> int:
        return self.sampling.max_tokens or ask.max_tokens if isinstance(ask, Chat) else 1

    def _generate(self, asks: list[Chat | Likelihood]) -> list[Reply]:
        replies: dict[int, Reply] = {}
        ready, conversations = [], []
        for place, ask in enumerate(asks):
            if isinstance(ask, Likelihood) and ask.definition == "sequence_mean":
                reason = f"{ask.definition} is not told by this backend; use vieval_transformers"
                replies[place] = Failure(Status.API_ERROR, reason)
                continue
            try:
                conversations.append([self._message(message) for message in ask.messages])
                ready.append(place)
            except VievalError as error:
                replies[place] = Failure(Status.TOOL_ERROR, str(error))
        outputs = self._chat(conversations, [self._parameters(asks[place]) for place in ready])
        begun: list[tuple[int, Any, Any]] = []
        for place, conversation, output in zip(ready, conversations, outputs, strict=True):
            ask = asks[place]
            if isinstance(ask, Likelihood) and ask.definition == "beginning" and not isinstance(output, Failure):
                begun.append((place, conversation, output))
            else:
                replies[place] = output if isinstance(output, Failure) else _reply(ask, output)
        told = self._beginnings([(asks[place], conversation, output) for place, conversation, output in begun])
        replies |= zip([place for place, *_ in begun], told, strict=True)
        return [replies[place] for place in range(len(asks))]

    def _beginnings(self, asked: Sequence[tuple[Any, list[Any], Any]]) -> list[Reply]:
        """Replies to asks for beginnings, each with its conversation and the output that lists its first tokens.

        A further call has the first tokens that were not listed and may count, and another the turns that go on.
        """
        tokens = [[self._tokens(text) for text in ask.continuations] for ask, _, _ in asked]
        after = [asked_after(of_one) for of_one in tokens]
        known: list[dict[Tokens, dict[int, Ends]]] = [
            {(): _first(output, of_one[()])} for (_, _, output), of_one in zip(asked, after, strict=True)
        ]
        self._ask_for_tokens(
            asked,
            known,
            [(number, (), token) for number, of_one in enumerate(known) for token in _open_tokens(of_one[()])],
        )
        self._ask_for_tokens(
            asked,
            known,
            [
                (number, beginning, token)
                for number, of_one in enumerate(after)
                for beginning, following in of_one.items()
                for token in following
                if beginning and known[number][()][beginning[0]][1] > CLOSE_ENOUGH
            ],
        )
        return [joined(of_one, of_all) for of_one, of_all in zip(tokens, known, strict=True)]

    def _ask_for_tokens(
        self,
        asked: Sequence[tuple[Any, list[Any], Any]],
        known: Sequence[dict[Tokens, dict[int, Ends]]],
        wanted: Sequence[tuple[int, Tokens, int]],
    ) -> None:
        """Add to `known` what the engine tells of single tokens, each by an ask's number and the beginning before it."""
        going_on = any(beginning for _, beginning, _ in wanted)
        turns = [
            [*asked[number][1], *([{"role": "assistant", "content": self._text(beginning)}] if going_on else [])]
            for number, beginning, _ in wanted
        ]
        outputs = self._chat(turns, [_allowed(token) for *_, token in wanted], going_on)
        for (number, beginning, token), output in zip(wanted, outputs, strict=True):
            # a template may change how the turn begins, and the tokenizer join its first token with what stands before
            prompt = [*asked[number][2].prompt_token_ids, *beginning]
            if not isinstance(output, Failure) and list(output.prompt_token_ids) == prompt:
                least, most = _first(output, (token,))[token]
                before = known[number].setdefault(beginning, {})
                # a value above the bound that it should lie within shows an engine that renormalises
                if most <= before.get(token, UNKNOWN)[1] * (1 + 1e-6):
                    before[token] = least, most

    def _text(self, tokens: Tokens) -> str:
        return str(self._engine.get_tokenizer().decode(tokens))

    def _tokens(self, text: str) -> Tokens:
        return tuple(self._engine.get_tokenizer().encode(text, add_special_tokens=False))

    def _chat(self, conversations: list[Any], parameters: list[Any], going_on: bool = False) -> list[Any]:
        """The engine's outputs. One request it refuses makes a whole call raise, so halves are tried until it is alone.

        `going_on` is for conversations that end with how the turn to be made begins.
        """
        if not conversations:
            return []
        turn = {"add_generation_prompt": not going_on, "continue_final_message": going_on}
        try:
            return list(self._engine.chat(conversations, parameters, **turn))
        except Exception as error:  # what the engine raises for a bad request has no common type
            if type(error).__name__ == "EngineDeadError":
                raise VievalError(
                    "vLLM's engine died (its own messages above say why); what was answered before is kept"
                ) from None
            if len(conversations) == 1:
                return [Failure(Status.API_ERROR, " ".join(str(error).split())[:300] or type(error).__name__)]
            half = len(conversations) // 2
            first = self._chat(conversations[:half], parameters[:half], going_on)
            return first + self._chat(conversations[half:], parameters[half:], going_on)

    def _message(self, message: Message) -> dict[str, Any]:
        if not any(isinstance(part, Image) for part in message.parts):
            return {"role": message.role, "content": "\n\n".join(str(part) for part in message.parts)}
        content = [
            {"type": "image_url", "image_url": {"url": encode(part, self._max_pixels).url}}
            if isinstance(part, Image)
            else {"type": "text", "text": part}
            for part in message.parts
        ]
        return {"role": message.role, "content": content}

    def _parameters(self, ask: Chat | Likelihood) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        if isinstance(ask, Likelihood):
            return SamplingParams(temperature=0, max_tokens=1, logprobs=_LISTED)
        structured = StructuredOutputsParams(json=dict(ask.schema)) if ask.schema is not None else None
        return SamplingParams(
            temperature=self.sampling.temperature,
            max_tokens=self._limit(ask),
            structured_outputs=structured,
            **self.sampling.extra,
        )


def _allowed(token: int) -> Any:
    """For a request that tells one token's raw log-probability."""
    from vllm import SamplingParams

    return SamplingParams(temperature=0, max_tokens=1, logprobs=0, allowed_token_ids=[token])


def _open_tokens(first: Mapping[int, Ends]) -> list[int]:
    """Tokens that the likeliest do not settle; none where all of them together hardly count."""
    widths = {token: high - low for token, (low, high) in first.items()}
    return [token for token, width in widths.items() if width] if sum(widths.values()) > CLOSE_ENOUGH else []


def _first(output: Any, wanted: Sequence[int]) -> dict[int, Ends]:
    """The lowest and highest that the probability of each first token can be, from those that an output lists."""
    logprobs = output.outputs[0].logprobs
    listed = {str(token): max(entry.logprob, _IMPOSSIBLE) for token, entry in (logprobs[0] if logprobs else {}).items()}
    bounds = probabilities(listed, tuple(map(str, wanted)))
    if isinstance(bounds, Failure):
        return dict.fromkeys(wanted, UNKNOWN)
    return dict(zip(wanted, zip(bounds.low, bounds.high, strict=True), strict=True))


def _reply(ask: Chat | Likelihood, output: Any) -> Reply:
    completion = output.outputs[0]
    if isinstance(ask, Chat):
        cut = CUT.get(completion.finish_reason)
        return Text(completion.text, len(output.prompt_token_ids), len(completion.token_ids), cut)
    first = completion.logprobs[0] if completion.logprobs else {}
    # vLLM's own server says -9999 of a token that cannot be
    listed = {entry.decoded_token: max(entry.logprob, _IMPOSSIBLE) for entry in first.values()}
    return probabilities(listed, ask.continuations)

"""Exact likelihoods, and greedy chats, through transformers in this process, in padded batches.

For the models that no server runs (encoder-decoders such as InstructBLIP with FlanT5), and to check
those that do. Named after the hub, because a file called transformers.py would hide the library
from anything started in this folder.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from vieval_plugin.backends.cache.store import Store, key_of, question
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.batch import (
    Item,
    Result,
    answer_in_batches,
    run_or_halve,
)
from vieval_plugin.backends.reply_checks import (
    NumberedQuestion,
    Question,
    log_probability,
)
from vieval_plugin.backends.token_probabilities import (
    BoundsByPrefix,
    Tokens,
    probabilities_from_bounds,
    tokens_by_prefix,
)
from vieval_plugin.backends.weights import library
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Image,
    Likelihood,
    Message,
    Probabilities,
    Reply,
    Status,
    Text,
)
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.yaml_json import JsonObject

# which of the arguments also say which processor it is
_ORIGIN = ("revision", "trust_remote_code", "cache_dir", "local_files_only")


@dataclass(frozen=True)
class _Row:
    """A conversation, and tokens whose probabilities are asked for."""

    #: The conversation.
    messages: tuple[Message, ...]
    #: Tokens that the assistant's turn begins with.
    prefix: tuple[int, ...]
    #: Tokens asked for at each position from the turn's start.
    wanted_tokens: tuple[tuple[int, ...], ...]


class TransformersBackend:
    """An image-text model of transformers, a decoder with a chat template or an encoder-decoder.

    `device` "auto" is the first GPU, else the CPU; `dtype` "auto" is float32 on a CPU, else the
    checkpoint's. `arguments` go to `from_pretrained` as they are (`device_map="auto"` spreads a
    model over GPUs). Continuations are compared as tokens: one that the tokenizer cannot take apart
    and put together again has probability 0. So has, as a first token, one of several tokens; and "
    Yes" where the tokenizer makes of it the same token as of "Yes" (T5), so that a sum over
    variants counts no token twice.
    """

    def __init__(
        self,
        model: str,
        *,
        usage: Usage,
        sampling: Sampling = Sampling(),
        store: Store | None = None,
        device: str = "auto",
        dtype: str = "auto",
        batch_size: int = 8,
        **arguments: Any,
    ) -> None:
        self._torch = library("torch")
        if device == "auto":
            device = "cuda" if self._torch.cuda.is_available() else "cpu"
        if dtype == "auto" and device == "cpu":
            dtype = "float32"
        self.model = model
        self.usage = usage
        self.sampling = sampling
        self.store = store
        self.batch_size = batch_size
        self._dtype = dtype
        self._origin = {name: arguments[name] for name in _ORIGIN if name in arguments}
        self._processor, self._network = _load(
            model,
            dtype,
            self._origin,
            arguments,
        )
        if "device_map" not in arguments:
            self._network.to(device)
        self._tokenizer = self._processor.tokenizer
        self._start = _decoder_start(
            self._network.config,
            self._network.generation_config,
            self._tokenizer,
        )
        if self._start is None and not getattr(self._processor, "chat_template", None):
            raise VievalError(
                f"{self.model} has no chat template; use an instruction-tuned model"
            )
        # what comes next is read at the end of the prompt; a decoder of its own starts at no
        # prompt's end
        self._tokenizer.padding_side = "left" if self._start is None else "right"
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._end = self._end_of_turn()

    def _end_of_turn(self) -> int:
        """The special token a chat template puts after an assistant's turn, else the tokenizer's
        end of sequence.
        """
        after = ""
        if self._start is None:
            turns = [_turn("user", ["?"]), _turn("assistant", ["vieval"])]
            after = self._processor.apply_chat_template(
                turns, tokenize=False
            ).rpartition("vieval")[2]
        special = {
            token
            for token, added in self._tokenizer.added_tokens_decoder.items()
            if added.special
        }
        ids = self._tokenizer(after, add_special_tokens=False).input_ids
        return int(
            next(
                (token for token in ids if token in special),
                self._tokenizer.eos_token_id,
            )
        )

    def answer(
        self, questions: Sequence[NumberedQuestion], repeats: Sequence[int]
    ) -> list[Reply]:
        """Replies to asks, in order. Nothing is drawn at random: a question asked again has the
        same answer.
        """
        if self.sampling.temperature and any(
            isinstance(ask, Chat) for _, ask in questions
        ):
            raise VievalError(
                "the transformers backend decodes greedily; set temperature to 0"
            )
        return answer_in_batches(
            questions,
            key=lambda _, ask, digest: self._key(ask, digest),
            generate=lambda batch: self._answers([ask for _, ask in batch]),
            store=self.store,
            model=self.model,
            usage=self.usage,
        )

    def _key(self, ask: Question, digest: Callable[[Image], str]) -> str:
        engine = {
            "engine": "transformers",
            "model": self.model,
            "dtype": self._dtype,
            "origin": self._origin,
        }
        # of a likelihood the definition is part of the question
        kind = {"limit": self.sampling.limit(ask)} if isinstance(ask, Chat) else {}
        return key_of(
            {
                **engine,
                **kind,
                **question(ask, digest),
            }
        )

    def _answers(self, asks: Sequence[Question]) -> list[Reply]:
        texts = iter(
            self._run_batches(
                [ask for ask in asks if isinstance(ask, Chat)], self._texts
            )
        )
        rows = [self._rows(ask) if isinstance(ask, Likelihood) else [] for ask in asks]
        values = iter(
            self._run_batches(list(chain.from_iterable(rows)), self._log_probabilities)
        )
        replies: list[Reply] = []
        for ask, rows_of_ask in zip(asks, rows, strict=True):
            if isinstance(ask, Chat):
                replies.append(next(texts))
            else:
                row_values = [next(values) for _ in rows_of_ask]
                failed = next(
                    (value for value in row_values if isinstance(value, Failure)), None
                )
                replies.append(failed or self._read(ask, row_values))
        return replies

    def _run_batches(
        self, items: Sequence[Item], run: Callable[[Sequence[Item]], Sequence[Result]]
    ) -> list[Result | Failure]:
        results = []
        for start in range(0, len(items), self.batch_size):
            results += run_or_halve(items[start : start + self.batch_size], run)
        return results

    def _rows(self, ask: Likelihood) -> list[_Row]:
        tokens = self._asked_tokens(ask)
        if ask.definition != "sequence_mean":
            return _rows_of_prefixes(
                ask.messages, tokens_by_prefix(filter(None, tokens))
            )
        return [
            _Row(
                ask.messages,
                t,
                tuple((n,) for n in (*t, self._end)),
            )
            for t in tokens
            if t is not None
        ]

    def _read(self, ask: Likelihood, values: Sequence[Any]) -> Probabilities | Failure:
        """Probabilities from the rows' log-probabilities; every continuation without one has
        probability 0.
        """
        tokens = self._asked_tokens(ask)
        try:
            if ask.definition != "sequence_mean":
                return probabilities_from_bounds(
                    tokens, _bounds_by_prefix(self._rows(ask), values)
                )
            remaining = iter(values)
            chances = [
                0.0 if t is None else _geometric_mean(next(remaining), (*t, self._end))
                for t in tokens
            ]
        except ValueError as error:
            return Failure(Status.API_ERROR, f"the model returned {error}")
        return Probabilities(tuple(chances), tuple(chances))

    def _asked_tokens(self, ask: Likelihood) -> list[Tokens | None]:
        """The tokens of each continuation; None where their text is another, and for several as a
        first token.
        """
        tokens = [self._tokens(text) for text in ask.continuations]
        if ask.definition == "first_token":
            return [t if t and len(t) == 1 else None for t in tokens]
        return tokens

    def _tokens(self, text: str) -> Tokens | None:
        """The tokens of a continuation, None where their text is another."""
        ids = self._tokenizer(text, add_special_tokens=False).input_ids
        decoded = self._tokenizer.decode(
            ids,
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        return tuple(ids) if decoded == text else None

    def _log_probabilities(self, rows: Sequence[_Row]) -> list[list[dict[int, float]]]:
        """For each row and position, the log-probabilities of the tokens wanted there."""
        with self._torch.inference_mode():
            logits = self._logits(
                self._inputs([row.messages for row in rows]),
                [row.prefix for row in rows],
            )
            logged = logits.float().log_softmax(-1).cpu()
        return [
            [
                {token: float(by_token[token]) for token in tokens}
                for tokens, by_token in zip(row.wanted_tokens, logged_row, strict=False)
            ]
            for row, logged_row in zip(rows, logged, strict=True)
        ]

    def _logits(self, inputs: Any, prefixes: Sequence[tuple[int, ...]]) -> Any:
        """Logits where each turn starts and after each token it begins with; values past
        the end of a shorter one are not used.
        """
        longest = max(map(len, prefixes))
        padding = [self._tokenizer.pad_token_id] * longest
        padded = [[*tokens, *padding][:longest] for tokens in prefixes]
        prefix_tokens = self._torch.tensor(
            padded,
            dtype=self._torch.long,
            device=inputs["input_ids"].device,
        )
        if self._start is not None:
            first = self._torch.full_like(
                inputs["input_ids"][:, :1],
                self._start,
            )
            return self._network(
                **inputs, decoder_input_ids=self._torch.cat([first, prefix_tokens], 1)
            ).logits
        is_token = [[n < len(tokens) for n in range(longest)] for tokens in prefixes]
        extended = self._joined(
            inputs,
            {
                "input_ids": prefix_tokens,
                "attention_mask": self._torch.tensor(
                    is_token, device=prefix_tokens.device
                ),
            },
        )
        # of a long prompt the logits of every position would take more memory than the model
        last = "logits_to_keep" in inspect.signature(self._network.forward).parameters
        limits = {"logits_to_keep": longest + 1} if last else {}
        return self._network(**extended, **limits, use_cache=False).logits[
            :, -longest - 1 :
        ]

    def _joined(self, inputs: Any, added: Mapping[str, Any]) -> JsonObject:
        """Inputs with tokens added at the end; whatever else there is per token says 0 of them,
        that is: text.
        """
        shape = inputs["input_ids"].shape
        extended = dict(inputs)
        for name, value in inputs.items():
            if getattr(value, "shape", None) == shape:
                end = added.get(name, self._torch.zeros_like(added["input_ids"]))
                extended[name] = self._torch.cat([value, end.to(value.dtype)], 1)
        return extended

    def _texts(self, asks: Sequence[Chat]) -> list[Text]:
        inputs = self._inputs([ask.messages for ask in asks])
        limits = [self.sampling.limit(ask) for ask in asks]
        greedy = {
            "do_sample": False,
            "num_beams": 1,
            "pad_token_id": self._tokenizer.pad_token_id,
        }
        outputs = self._network.generate(
            **inputs,
            **greedy,
            max_new_tokens=max(limits),
        )
        skipped = inputs["input_ids"].shape[1] if self._start is None else 1
        prompt_lengths = inputs["attention_mask"].sum(1).tolist()
        return [
            self._text(row[skipped : skipped + limit].tolist(), input_tokens)
            for row, limit, input_tokens in zip(
                outputs,
                limits,
                prompt_lengths,
                strict=True,
            )
        ]

    def _text(self, tokens: list[int], tokens_in: int) -> Text:
        ends = self._network.generation_config.eos_token_id
        ends = {self._end, *(ends if isinstance(ends, list) else [ends])}
        end = next((n for n, token in enumerate(tokens, 1) if token in ends), None)
        length = len(tokens) if end is None else end
        return Text(
            self._tokenizer.decode(tokens[:length], skip_special_tokens=True),
            tokens_in,
            length,
            end is None,
        )

    def _inputs(self, conversations: Sequence[Sequence[Message]]) -> Any:
        """A batch for the model. VievalError for an image that cannot be read."""
        images = [_decoded_images(conversation) for conversation in conversations]
        are_single = all(len(pictures) == 1 for pictures in images)
        if self._start is not None and not are_single:
            raise ValueError("an encoder-decoder model requires exactly one image")
        prompts = [self._prompt(conversation) for conversation in conversations]
        begin = self._tokenizer.bos_token
        has_begin = begin and prompts[0].startswith(begin)
        return self._processor(
            text=prompts,
            images=images if any(images) else None,
            padding=True,
            return_tensors="pt",
            add_special_tokens=not has_begin,
        ).to(
            self._network.device,
            self._network.dtype,
        )

    def _prompt(self, conversation: Sequence[Message]) -> str:
        """A conversation up to the assistant's turn; for an encoder-decoder its bare texts."""
        if self._start is not None:
            parts = chain.from_iterable(message.parts for message in conversation)
            return "\n\n".join(part for part in parts if isinstance(part, str))
        return str(
            self._processor.apply_chat_template(
                [_turn(message.role, message.parts) for message in conversation],
                tokenize=False,
                add_generation_prompt=True,
            )
        )


def _decoded_images(conversation: Sequence[Message]) -> list[Any]:
    parts = chain.from_iterable(message.parts for message in conversation)
    return [decode(part) for part in parts if isinstance(part, Image)]


def _load(
    model: str,
    dtype: str,
    origin: Mapping[str, Any],
    arguments: Mapping[str, Any],
) -> tuple[Any, Any]:
    """The processor and the network of a model."""
    transformers = library("transformers")
    try:
        processor = transformers.AutoProcessor.from_pretrained(model, **origin)
        network = transformers.AutoModelForImageTextToText.from_pretrained(
            model,
            dtype=dtype,
            **arguments,
        )
    except (OSError, ValueError, KeyError, ImportError, TypeError) as error:
        raise VievalError(
            f"cannot load {model} as a transformers image-text model: {line_of(error)}"
        ) from None
    return processor, network.eval()


def _decoder_start(config: Any, generation: Any, tokenizer: Any) -> int | None:
    """The token an encoder-decoder's answer starts with (T5's is the padding), None for a
    decoder.
    """
    configs = [config, getattr(config, "text_config", None)]
    if not any(
        getattr(candidate, "is_encoder_decoder", False) for candidate in configs
    ):
        return None
    for candidate in (generation, *configs):
        token = getattr(candidate, "decoder_start_token_id", None)
        if token is not None:
            return int(token)
    return int(tokenizer.pad_token_id)


def _geometric_mean(
    values: Sequence[Mapping[int, float]], tokens: Sequence[int]
) -> float:
    log_probabilities = [
        log_probability(value[token])
        for value, token in zip(values, tokens, strict=True)
    ]
    return math.exp(math.fsum(log_probabilities) / len(tokens))


def _rows_of_prefixes(
    messages: tuple[Message, ...], after: Mapping[Tokens, tuple[int, ...]]
) -> list[_Row]:
    """A row for each prefix that no longer one begins with: on its way the model passes through
    the shorter ones.
    """
    shorter = {prefix[:length] for prefix in after for length in range(len(prefix))}
    rows = []
    for prefix in [prefix for prefix in after if prefix not in shorter]:
        beginnings = [prefix[:length] for length in range(len(prefix) + 1)]
        rows.append(
            _Row(messages, prefix, tuple(after[beginning] for beginning in beginnings))
        )
    return rows


def _bounds_by_prefix(
    rows: Sequence[_Row], values: Sequence[Sequence[Mapping[int, float]]]
) -> BoundsByPrefix:
    """The probabilities of single tokens after each prefix that rows pass through."""
    by_prefix: BoundsByPrefix = {}
    for row, probability_row in zip(rows, values, strict=True):
        for length, logged in enumerate(probability_row):
            bounds = {
                token: (chance := math.exp(log_probability(value)), chance)
                for token, value in logged.items()
            }
            by_prefix.setdefault(row.prefix[:length], bounds)
    return by_prefix


def _turn(role: str, parts: Sequence[str | Image]) -> JsonObject:
    """A message as chat templates take it."""
    if not any(isinstance(part, Image) for part in parts):
        parts = ["\n\n".join(map(str, parts))]
    return {
        "role": role,
        "content": [
            {"type": "image"}
            if isinstance(part, Image)
            else {"type": "text", "text": part}
            for part in parts
        ],
    }

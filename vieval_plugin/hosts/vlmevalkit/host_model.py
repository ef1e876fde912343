"""Any model of the host as a judge's backbone: its `generate` answers one question after another,
or several at once.

Models behind servers are asked in threads, so many at once as --api-nproc says. Models in this
process are asked in the main thread: the host has switched off gradients there, and nowhere else.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vieval_plugin.backends.cache.store import Store, key_of, question
from vieval_plugin.backends.http.image_encoding import encode
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.batch import answer_in_batches, chats_and_likelihoods
from vieval_plugin.hosts.shutdown import print_lines
from vieval_plugin.judges.protocol import Chat, Failure, Image, Reply, Status, Text
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.tables import are_texts
from vieval_plugin.run.answerers import CallAnswerer
from vieval_plugin.run.router import Question
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import say
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import exists
from vieval_plugin.text.yaml_json import JsonObject

_FAILURE = "Failed to obtain answer"
#: Number of exceptions, one after another, that end a run: they are no bad luck.
_IN_A_ROW = 3
_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg"}
_ADDRESS = re.compile(r"data:image/|[A-Za-z][A-Za-z0-9+.-]*://")
# where and how often a server is called changes no answer, and keys are nobody's business
_TRANSPORT = re.compile(
    r"(^|_)(api_?key|key|secret|password|authorization|credentials?|base|base_url|url|retry|wait|verbose|timeout|proxy|org|logger)$",
    re.IGNORECASE,
)
_IDENTITY_ATTRIBUTE = "vieval_identity"


@dataclass(frozen=True)
class HostModel:
    """A built model of the host: its name in tables, its identity among others, and where and
    for what it is asked.
    """

    inner: Any
    name: str
    identity: JsonObject
    images: Path
    dataset: str

    def answerer(self, api_nproc: int) -> CallAnswerer:
        """Answer by the model's `generate`: of a server's model as many questions at once as
        `api_nproc` says.
        """
        if not getattr(self.inner, "is_api", False):
            return CallAnswerer(self._make_answer)
        print_lines(
            f"{type(self.inner).__name__} re-encodes images as JPEG and enlarges some of them, "
            "which can lower PQ; VievalOpenAI sends the original pixels"
        )
        return CallAnswerer(self._make_answer, threads=api_nproc)

    def _make_answer(
        self, store: Store | None, usage: Usage
    ) -> Callable[[Question, int], Reply]:
        return _Asking(self, store, usage).answer


class _Asking:
    """Questions of a run: the store first, then the model. All but the asking itself is done one
    at a time.
    """

    def __init__(self, model: HostModel, store: Store | None, usage: Usage) -> None:
        self._model = model
        self._store = store
        self._usage = usage
        self._alone = threading.Lock()
        self._broken = 0
        self._longest = _longest_answer(model.inner)

    def answer(self, ask: Question, repeat: int) -> Reply:
        if chats_and_likelihoods([(0, ask)])[1]:
            raise VievalError(
                f"{type(self._model.inner).__name__}, like all models of VLMEvalKit, "
                "does not support probabilities; use VievalOpenAI, VievalTransformers "
                "or VievalVLLM"
            )
        with self._alone:
            [reply] = answer_in_batches(
                [(0, ask)],
                key=lambda _, asked, digest: key_of(
                    {
                        "vlmevalkit": dict(self._model.identity),
                        "repeat": repeat,
                        **question(asked, digest),
                    }
                ),
                generate=self._generate,
                store=self._store,
                model=self._model.name,
                usage=self._usage,
            )
        return reply

    def _generate(self, batch: list[tuple[int, Question]]) -> list[Reply]:
        [(_, _, chat)] = chats_and_likelihoods(batch)[0]
        self._tell_shorter(chat)
        message = interleaved(chat, self._model.images)
        self._alone.release()
        failed: Exception | None = None
        generate = self._model.inner.generate
        dataset = self._model.dataset
        try:
            reply = _reply(generate(message=message, dataset=dataset))
        except Exception as error:
            failed = error
        finally:
            self._alone.acquire()
        if failed is not None:
            return [self._failure(failed)]
        self._broken = 0
        return [reply]

    def _failure(self, error: Exception) -> Reply:
        trace = redacted("".join(traceback.format_exception(error)))
        say(*trace.splitlines(), file=sys.stderr)
        self._broken += 1
        text = redacted(" ".join(str(error).split()))[:300]
        reason = f"{type(error).__name__}: {text}"
        if self._broken >= _IN_A_ROW:
            raise VievalError(
                f"{type(self._model.inner).__name__} failed {_IN_A_ROW} times in a row ({reason}); "
                "earlier answers are kept; run the same command again to resume"
            )
        return Failure(Status.API_ERROR, reason)

    def _tell_shorter(self, chat: Chat) -> None:
        """Warn once where a question may have a longer answer than the model gives, whose length
        is its own.
        """
        if self._longest < chat.max_tokens:
            print_lines(
                f"{self._model.name} returns at most {self._longest:g} tokens, but the judge "
                f"allows {chat.max_tokens}; replies may be truncated"
            )
            self._longest = math.inf


def _longest_answer(model: Any) -> float:
    """Most tokens of an answer of a model of the host, as far as it tells."""
    limits = [getattr(model, name, None) for name in ("max_tokens", "max_new_tokens")]
    kwargs = getattr(model, "kwargs", None)
    arguments = getattr(model, "generate_kwargs", None) or kwargs
    if isinstance(arguments, dict):
        limits.append(arguments.get("max_new_tokens"))
    return next((limit for limit in limits if isinstance(limit, int)), math.inf)


def _reply(output: Any) -> Reply:
    """Reply in a model's output; placeholder texts of failed calls are failures."""
    text = output.get("prediction") if isinstance(output, dict) else output
    if not isinstance(text, str) or not text.strip():
        return Failure(Status.API_ERROR, "the host's model returned no text")
    if _FAILURE in text:
        return Failure(Status.API_ERROR, " ".join(text.split())[:300])
    return Text(text)


def interleaved(chat: Chat, images: Path) -> list[dict[str, str]]:
    """The parts of a conversation in order; of several messages each begins with whose it is.

    Images are written to the folder `images`, once each and without anything that their files say
    beside the picture. VievalError for one that cannot be read.
    """
    has_turns = len(chat.messages) > 1
    parts: list[dict[str, str]] = []
    for message in chat.messages:
        parts += (
            [
                {
                    "type": "text",
                    "value": f"{message.role}:\n",
                }
            ]
            if has_turns
            else []
        )
        for part in message.parts:
            if isinstance(part, Image):
                parts.append(
                    {
                        "type": "image",
                        "value": str(_file(part, images)),
                    }
                )
            else:
                parts.append({"type": "text", "value": _unlike_a_file(part)})
    return parts


def _file(image: Image, folder: Path) -> Path:
    """A file with the picture as it may leave this machine, named by its content."""
    head, _, body = encode(image).url.partition(",")
    data = base64.b64decode(body)
    suffix = _SUFFIXES[head.removeprefix("data:").removesuffix(";base64")]
    path = folder / f"{hashlib.sha256(data).hexdigest()}{suffix}"
    if not path.is_file():
        write_whole(path, data, "LMUData")
    return path


def _unlike_a_file(text: str) -> str:
    """The text, after a line end where the host would take it for a file or an address, and open
    that.
    """
    is_ambiguous = exists(text) or _ADDRESS.match(text)
    return f"\n{text}" if is_ambiguous else text


def identity_of(model: Any, name: str, supported: JsonObject) -> JsonObject:
    """Identity on which the answers of a model depend, the same whether it is built already or only
    named.

    `supported` maps the host's names to what builds them: a class, or a partial of one.
    """
    kept: JsonObject | None = getattr(model, _IDENTITY_ATTRIBUTE, None)
    if kept is not None:
        return kept
    if not isinstance(model, str):
        return _identity(
            type(model).__name__,
            name,
            vars(model),
        )
    maker = supported.get(name)
    return _identity(
        getattr(
            getattr(maker, "func", maker),
            "__name__",
            "",
        ),
        name,
        getattr(maker, "keywords", {}),
    )


def keep_identity(model: Any, identity: JsonObject) -> None:
    """Let a model that was built for one dataset have the same identity for the next."""
    setattr(model, _IDENTITY_ATTRIBUTE, identity)


def _identity(kind: str, name: str, arguments: JsonObject) -> JsonObject:
    public = {
        key: value
        for key, value in arguments.items()
        if not _TRANSPORT.search(key) and _is_plain(value)
    }
    return {"class": kind, "name": name, "arguments": public}


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return are_texts([*value]) and _is_plain([*value.values()])
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float))

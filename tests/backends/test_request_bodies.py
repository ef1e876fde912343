"""Test request bodies against the typed parameters of the package `openai`."""

import json
from collections.abc import Iterable
from typing import get_type_hints

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')
pytest.importorskip("openai", reason="needs the package openai")

from openai.types import batch_create_params, file_create_params
from openai.types.chat import completion_create_params as chats
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import is_typeddict

from tests.batch_server import BatchServer
from tests.fake_server import named
from tests.service_server import ServiceServer
from vieval_plugin.backends.http.responses import STREAMED

# fields of vLLM that are sent to servers of its own kind, or left out where a service refuses them
OF_VLLM = {"repetition_detection", "allowed_token_ids"}


CLOSED = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def closed(kind, seen=None):
    """Have every typed dictionary within a type refuse unknown keys."""
    seen = set() if seen is None else seen
    if is_typeddict(kind) and kind not in seen:
        seen.add(kind)
        kind.__pydantic_config__ = CLOSED
        for annotation in get_type_hints(kind, include_extras=True).values():
            closed(annotation, seen)
    for part in getattr(kind, "__args__", ()):
        closed(part, seen)
    return kind


CHAT = TypeAdapter(closed(chats.CompletionCreateParamsNonStreaming))
STREAMED_CHAT = TypeAdapter(closed(chats.CompletionCreateParamsStreaming))
BATCH = TypeAdapter(closed(batch_create_params.BatchCreateParams))


def held(body):
    """A body without the fields of vLLM, as the package's types have it."""
    kind = STREAMED_CHAT if body.get("stream") else CHAT
    own = {name: value for name, value in body.items() if name not in OF_VLLM}
    read_through(kind.validate_python(own))


def read_through(value):
    """Read what is validated only as it is read."""
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, Iterable) and not isinstance(part, str):
            read_through(part)


def test_a_misspelt_field_is_refused():
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    held(body)
    held(body | STREAMED)
    image = {"type": "image_url", "image_url": {"uri": "data:image/png;base64,AA=="}}
    shown = [{"role": "user", "content": [image]}]
    wrong = [{"max_token": 5}, {"top_logprobs": "many"}, {"messages": shown}]
    for fields in (*wrong, {"response_format": {"type": "json"}}):
        with pytest.raises(ValueError, match="validation error"):
            held(body | fields)


@pytest.mark.parametrize("judge", ["viescore", "vqascore", "t2i_eval"])
def test_every_chat_of_a_run_has_the_fields_of_the_package(judge, score, samples_file):
    lines = samples_file.read_text().splitlines()[:2]
    outputs = [json.loads(line)["images"]["output"] for line in lines]
    about = {"kind": "tig", "prompt": "a red cube"}
    made = [{"uid": output, "output": output, **about} for output in outputs]
    samples_file.write_text("".join(f"{json.dumps(row)}\n" for row in made))
    with ServiceServer([]) as server:
        score(samples_file, "--judge", judge, *named(server))
    assert server.asked
    for body in server.asked:
        held(json.loads(json.dumps(body)))


def test_files_and_batches_have_the_fields_of_the_package(score, samples_file):
    created = []

    class Noting(BatchServer):
        async def _create(self, http):
            created.append(await http.json())
            return await super()._create(http)

    with Noting() as service:
        code, *_ = score(samples_file, "--batch", *named(service))
        lines = [json.loads(line) for line in service.contents["file-0"].splitlines()]
    assert code == 0
    assert created
    for document in created:
        BATCH.validate_python(document)
    assert {tuple(line) for line in lines} == {("custom_id", "method", "url", "body")}
    for line in lines:
        held(line["body"])
    fields = file_create_params.FileCreateParams.__annotations__
    assert {"file", "purpose"} <= set(fields)

"""Questions to a server: each is sent once, in the form that the server takes, and what it says
is read.
"""

import asyncio
import json
import math

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from aiohttp import web

from tests.fake_server import FakeServer, Fault, first_token, read_request
from tests.one_server import (
    KEY,
    SCHEMA,
    asking,
    chat,
    error,
    faked,
    first,
    saying,
    serving,
    wait_shortly,
)
from tests.pictures import plain
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.request_form import HALF_CHARACTER, NO_PROBABILITIES
from vieval_plugin.backends.http.responses import tokens_of
from vieval_plugin.backends.reply_checks import probabilities
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Image,
    Likelihood,
    Message,
    Status,
    Text,
)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    wait_shortly(monkeypatch)


# Questions: each is sent once.


async def test_a_question_asked_twice_at_once_is_sent_once():
    async with faked(FakeServer(latency=0.05)) as (server, backend):
        replies = await asyncio.gather(
            *(backend.answer(chat("same")) for _ in range(10))
        )
    assert len(set(replies)) == 1
    assert server.stats()["requests"] == 1


async def test_what_is_stored_is_not_asked_again(tmp_path):
    asked = [
        chat("x"),
        chat("y", schema=SCHEMA),
        Likelihood((Message("user", ("z",)),), ("Yes", "No"), ("q",)),
    ]
    seen = []
    with FakeServer() as server:
        for _ in range(2):
            store = Store(tmp_path / "s.sqlite")
            async with asking(server.base_url, store=store) as backend:
                seen.append([await backend.answer(ask) for ask in asked])
            store.close()
            seen.append(server.stats()["requests"])
    assert seen[0] == seen[2]
    assert seen[1] == seen[3]
    assert (backend.usage.calls, backend.usage.cached) == (0, 3)


async def test_failures_are_not_stored(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    async with faked(
        FakeServer(faults=first(Fault("overlong"), Fault("content_filter"))),
        store=store,
    ) as (_, backend):
        replies = [await backend.answer(chat("x")) for _ in range(3)]
    assert [type(reply) for reply in replies] == [Failure, Failure, Text]
    assert [row["reply"]["kind"] for row in store.export()] == ["Text"]


@pytest.mark.parametrize(
    "other",
    [
        chat("y"),
        chat("x", max_tokens=7),
        chat("x", schema=SCHEMA),
        Chat((Message("system", ("x",)),), ("q",)),
        Chat((Message("user", ("x",)), Message("assistant", ("x",))), ("q",)),
    ],
)
async def test_a_question_that_differs_is_another(other, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    async with faked(FakeServer(schema_support="rejected"), store=store) as (
        _,
        backend,
    ):
        await backend.answer(chat("x"))
        await backend.answer(other)
    assert len(list(store.export())) == 2


async def test_other_sampling_is_another_question(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    with FakeServer() as server:
        for sampling in (
            Sampling(),
            Sampling(0.5),
            Sampling(max_tokens=9),
            Sampling(extra={"seed": 1}),
            Sampling(),
        ):
            async with asking(
                server.base_url, store=store, sampling=sampling
            ) as backend:
                await backend.answer(chat("x"))
        assert server.stats()["requests"] == 4


async def test_an_image_is_told_by_its_content(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    files = {name: tmp_path / name for name in ("a.png", "copy.png", "b.png")}
    for name, path in files.items():
        path.write_bytes(plain((7 if name == "b.png" else 0, 2, 3)))

    async with faked(FakeServer(), store=store) as (server, backend):
        for path in files.values():
            await backend.answer(Chat((Message("user", (Image(path), "x")),), ("q",)))
    assert server.stats()["requests"] == 2


async def test_images_and_texts_stay_in_order_and_a_text_alone_is_plain():
    async with (
        serving(lambda body: saying({"content": "y"})) as (url, bodies),
        asking(url) as backend,
    ):
        await backend.answer(
            Chat(
                (
                    Message(
                        "user",
                        (
                            Image(plain((1, 2, 3))),
                            "one",
                            Image(plain((2, 2, 3))),
                            "two",
                        ),
                    ),
                ),
                ("q",),
            )
        )
        await backend.answer(
            Chat((Message("system", ("be", "brief")), Message("user", ("x",))), ("q",))
        )
    kinds = [
        part.get("text") or part["image_url"]["url"][:22]
        for part in bodies[0]["messages"][0]["content"]
    ]
    assert kinds == ["data:image/png;base64,", "one", "data:image/png;base64,", "two"]
    assert bodies[1]["messages"] == [
        {"role": "system", "content": "be\n\nbrief"},
        {"role": "user", "content": "x"},
    ]


async def test_an_image_that_cannot_be_read_fails_its_own_question_only(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    asked = [
        Chat((Message("user", (Image(path), "x")),), ("q",))
        for path in (tmp_path / "broken.png", plain((1, 2, 3)))
    ]
    async with faked(FakeServer()) as (_, backend):
        broken, fine = [await backend.answer(ask) for ask in asked]
    assert broken.status is Status.TOOL_ERROR
    assert str(tmp_path / "broken.png") in broken.reason
    assert isinstance(fine, Text)
    assert backend.usage.failures == {"unreadable image": 1}


async def test_tokens_are_counted_as_far_as_the_server_tells():
    never = [
        {"usage": {"prompt_tokens": n, "completion_tokens": n}}
        for n in (True, -5, 1e9, math.nan, 10**40, "5")
    ]
    told = [
        {"usage": {"prompt_tokens": 10, "completion_tokens": 3}},
        {"usage": None},
        {},
        *never,
    ]
    asked = iter(told)
    async with (
        serving(lambda body: saying({"content": "y"}, **next(asked))) as (url, _),
        asking(url) as backend,
    ):
        replies = [await backend.answer(chat(f"x{i}")) for i in range(len(told))]
    assert replies[0] == Text("y", 10, 3, cut=False)
    assert set(replies[1:]) == {Text("y", None, None, cut=False)}
    assert (backend.usage.input_tokens, backend.usage.output_tokens) == (10, 3)


async def test_tokens_of_likelihoods_are_counted_too():
    async with faked(FakeServer()) as (_, backend):
        await backend.answer(Likelihood((Message("user", ("z",)),), ("Yes",), ("q",)))
    assert backend.usage.input_tokens > 0


async def test_a_backend_that_is_closed_in_the_middle_leaves_nothing_running(tmp_path):
    before, store = asyncio.all_tasks(), Store(tmp_path / "s.sqlite")
    async with faked(FakeServer(latency=30), store=store) as (_, backend):
        waiting = [
            asyncio.ensure_future(backend.answer(chat(f"x{i}", schema=SCHEMA)))
            for i in range(5)
        ]
        await asyncio.sleep(0.05)
        for task in waiting:
            task.cancel()
    store.close()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert asyncio.all_tasks() == before


# Schemas.


@pytest.mark.parametrize(
    ("support", "sent"), [("enforced", True), ("rejected", False), ("ignored", False)]
)
async def test_whether_schemas_are_enforced_is_found_out_once_and_remembered(
    support, sent, tmp_path
):
    formats = []
    noting = lambda number, request: formats.append("response_format" in request)
    with FakeServer(schema_support=support, faults=noting) as server:
        for run in range(2):
            store = Store(tmp_path / "s.sqlite")
            async with asking(server.base_url, store=store) as backend:
                await asyncio.gather(
                    *(
                        backend.answer(chat(f"{run} {i}", schema=SCHEMA))
                        for i in range(3)
                    )
                )
            store.close()
    assert formats == [True] + [sent] * 6  # the probe, and three questions a run


async def test_without_a_schema_nothing_is_probed():
    async with faked(FakeServer()) as (server, backend):
        await backend.answer(chat("x"))
    assert server.stats()["requests"] == 1


@pytest.mark.parametrize("kind", ["500", "empty_choices", "invalid_json", "429"])
async def test_a_fault_during_the_probe_does_not_pass_for_an_answer(kind, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    async with faked(FakeServer(faults=first(Fault(kind))), store=store) as (
        _,
        backend,
    ):
        assert await backend.takes_schemas()


@pytest.mark.parametrize(
    "failing",
    [lambda: error(500, "no"), lambda: saying({"content": '{"pro'}, "length")],
)
async def test_a_probe_that_fails_or_is_cut_is_made_again_next_time(failing, tmp_path):
    store, sick, fine = (
        Store(tmp_path / "s.sqlite"),
        True,
        saying({"content": '{"probe": "vieval"}'}),
    )
    async with serving(
        lambda body: failing() if sick and "response_format" in body else fine
    ) as (url, _):
        async with asking(url, store=store, retries=1) as backend:
            assert not await backend.takes_schemas()
        sick = False
        async with asking(url, store=store) as backend:
            assert await backend.takes_schemas()


async def test_a_schema_the_server_does_not_know_is_asked_for_in_words():
    schema = {
        "type": "object",
        "properties": {"score": {"type": "string", "pattern": "[0-9]"}},
    }
    async with faked(FakeServer()) as (server, backend):
        replies = [await backend.answer(chat(f"x{i}", schema=schema)) for i in range(3)]
        assert json.loads((await backend.answer(chat("x", schema=SCHEMA))).text)[
            "score"
        ]
    assert all(isinstance(reply, Text) for reply in replies)
    assert not backend.usage.failures
    assert server.stats()["statuses"] == {"200": 5, "400": 1}  # with the probe


async def test_the_newer_name_of_the_token_limit_is_learnt_once():
    def answer(body):
        if "max_tokens" in body:
            return error(
                400,
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            )
        return saying({"content": str(body["max_completion_tokens"])})

    async with serving(answer) as (url, bodies), asking(url) as backend:
        replies = [
            await backend.answer(chat(f"x{i}", max_tokens=50 + i)) for i in range(3)
        ]
    assert [reply.text for reply in replies] == ["50", "51", "52"]
    assert [
        sorted(body.keys() & {"max_tokens", "max_completion_tokens"}) for body in bodies
    ] == [
        ["max_tokens"],
        *[["max_completion_tokens"]] * 3,
    ]
    assert not backend.usage.failures


async def test_an_error_that_quotes_the_key_is_not_repeated_word_for_word():
    said = f"bad header 'Bearer {KEY}'"
    for answer in (
        lambda: error(400, said),
        lambda: web.Response(status=400, text=said),
    ):
        async with (
            serving(lambda body, answer=answer: answer()) as (url, _),
            asking(url, key=KEY) as backend,
        ):
            reply = await backend.answer(chat("x"))
        assert reply.reason == "HTTP 400: bad header 'Bearer [key]'"


# Likelihoods.


def test_probabilities_of_listed_tokens_are_known_and_of_others_bounded():
    listed = {"Yes": math.log(0.6), "No": math.log(0.25), "Maybe": math.log(0.1)}
    known = probabilities(listed, ("Yes", "No", "Never"))
    assert known.low == pytest.approx((0.6, 0.25, 0.0))
    assert known.high == pytest.approx((0.6, 0.25, 0.05))  # what the listed leave over
    assert probabilities(
        {"a": math.log(0.5), "b": math.log(0.1)}, ("c",)
    ).high == pytest.approx((0.1,))  # the least listed
    assert probabilities({"a": 0.0}, ("a", "b")).high == (1.0, 0.0)


async def test_likelihoods_are_those_of_the_servers_first_token():
    ask = Likelihood(
        (Message("user", ("Is there a cat?",)),),
        ("Yes", "No", "yes", "Perhaps"),
        ("q",),
    )
    bodies = []
    async with faked(
        FakeServer(faults=lambda number, request: bodies.append(request))
    ) as (_, backend):
        known = await backend.answer(ask)
    expected = first_token(read_request(json.dumps(bodies[0]).encode())[1].digest)
    listed = sorted(expected.values(), reverse=True)[:20]
    rest = min(1 - math.fsum(listed), listed[-1])
    for word, low, high in zip(ask.continuations, known.low, known.high, strict=True):
        assert low == pytest.approx(expected.get(word, 0.0))
        assert high == pytest.approx(expected.get(word, rest), abs=1e-12)


async def test_a_token_that_is_not_listed_has_bounds():
    async with faked(FakeServer(hide_yes=True)) as (_, backend):
        known = await backend.answer(
            Likelihood((Message("user", ("Is it?",)),), ("Yes",), ("q",))
        )
    assert known.low == (0.0,)
    assert 0 < known.high[0] < 0.05


async def test_tokens_that_read_alike_add_up_however_unlikely():
    def entries(*pairs):
        return {"choices": [{"message": {"content": "a"}, "logprobs": {"content": [{"top_logprobs": [
            {"token": token, "logprob": value} for token, value in pairs]}]}}]}  # fmt: skip

    likely = entries(
        ("a", math.log(0.5)),
        ("a", math.log(0.25)),
        ("\ufffd", -9999.0),
        ("\ufffd", -9999.0),
    )
    async with serving(lambda body: likely) as (url, _), asking(url) as backend:
        known = await backend.answer(
            Likelihood((Message("user", ("x",)),), ("a", "\ufffd"), ("q",))
        )
    assert known.low == pytest.approx((0.75, 0.0))
    assert known.high == pytest.approx((0.75, 0.0))


async def test_a_fault_of_a_likelihood_is_tried_again_and_silence_about_it_is_a_failure():
    ask = Likelihood((Message("user", ("x",)),), ("Yes",), ("q",))
    async with faked(
        FakeServer(faults=first(Fault("empty_choices"), Fault("invalid_json")))
    ) as (_, backend):
        assert (await backend.answer(ask)).low[0] > 0
    async with (
        serving(lambda body: saying({"content": "Yes"})) as (url, _),
        asking(url) as backend,
    ):
        assert (await backend.answer(ask)).reason == NO_PROBABILITIES


async def test_a_reply_that_begins_with_half_a_character_says_why_it_has_no_probabilities():
    ask = Likelihood((Message("user", ("x",)),), ("Yes",), ("q",))
    async with (
        serving(lambda body: saying({"content": "\ufffd"})) as (url, _),
        asking(url) as backend,
    ):
        assert (await backend.answer(ask)).reason == HALF_CHARACTER


@pytest.mark.parametrize(
    ("usage", "tokens_out"),
    [
        ({"completion_tokens": 5, "total_tokens": 15}, 5),
        # thinking is counted in the total alone, as Gemini does
        ({"completion_tokens": 5, "total_tokens": 915}, 905),
        ({"completion_tokens": 0, "total_tokens": 310}, 300),
        (
            {
                "completion_tokens": 5,
                "total_tokens": 915,
                "completion_tokens_details": {"reasoning_tokens": 900},
            },
            905,
        ),
        (
            {
                "completion_tokens": 905,
                "total_tokens": 915,
                "completion_tokens_details": {"reasoning_tokens": 900},
            },
            905,
        ),
        ({"completion_tokens": 5, "total_tokens": 3}, 5),
        ({"completion_tokens": 5}, 5),
    ],
)
def test_tokens_of_thinking_are_counted_wherever_a_server_tells_them(usage, tokens_out):
    assert tokens_of({"usage": {"prompt_tokens": 10, **usage}}) == (10, tokens_out)

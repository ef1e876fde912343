"""Whether a model sees is found out once, before it is asked about images."""

import asyncio
import base64
import io
import random
import re

import PIL.Image
import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from aiohttp import web

from tests.one_server import SCHEMA, asking, error, handling, saying, served
from tests.tables import table
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.sight import COLOURS, QUESTION, Sight, look, picture_of
from vieval_plugin.judges.protocol import Chat, Likelihood, Message, Text
from vieval_plugin.text.errors import VievalError

pytestmark = pytest.mark.usefixtures("short_waits")


def colour_of(image):
    pixel = PIL.Image.open(io.BytesIO(image)).convert("RGB").getpixel((0, 0))
    return next(name for name, colour in COLOURS.items() if colour == pixel)


def others(colour):
    return [name for name in COLOURS if name != colour]


# what a model answers to each picture, by the number of the answer and its colour; pictures asked
# about; the outcome
ANSWERS = {
    "right": (lambda number, colour: colour, 2, Sight.SEES),
    "right in a sentence": (lambda _, colour: f"It is filled with **{colour.title()}**.", 2, Sight.SEES),
    "right after the wrong one": (lambda number, colour: others(colour)[0] if number == 0 else colour, 4, Sight.SEES),
    "wrong": (lambda number, colour: others(colour)[number], 2, Sight.BLIND),
    "one in four": (lambda number, colour: colour if number == 1 else others(colour)[0], 4, Sight.BLIND),
    "three in four": (lambda number, colour: others(colour)[0] if number in (0, 3) else colour, 4, Sight.BLIND),
    "no colour": (lambda number, colour: '{"score": [7, 7]}', 2, Sight.UNKNOWN),
    "yes": (lambda number, colour: "Yes", 2, Sight.UNKNOWN),
    "nothing": (lambda number, colour: "", 2, Sight.UNKNOWN),
    "all of them": (lambda number, colour: QUESTION, 2, Sight.UNKNOWN),
    "one right and none": (lambda number, colour: colour if number == 0 else "I cannot see it.", 2, Sight.UNKNOWN),
    "one wrong and none": (lambda number, colour: others(colour)[0] if number else "?", 2, Sight.UNKNOWN),
    "in another word": (lambda number, colour: "scarred, bluish, blackboard", 2, Sight.UNKNOWN),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
async def test_the_outcome_follows_from_the_colours_that_are_named(name):
    answer, number, sight = ANSWERS[name]
    asked = []

    async def name_colour(image):
        asked.append(colour_of(image.source))
        return answer(len(asked) - 1, asked[-1])

    found = await look(name_colour, "7")
    assert found.sight == sight
    assert len(asked) == len(set(asked)) == number
    assert "seed 7" in found.evidence


async def test_a_model_that_guesses_passes_in_one_case_of_fifty():
    guess = random.Random(0)

    async def name_colour(image):
        return guess.choice(sorted(COLOURS))

    found = [(await look(name_colour, str(seed))).sight for seed in range(4000)]
    assert 0.012 < found.count(Sight.SEES) / len(found) < 0.027
    assert set(found) == {Sight.SEES, Sight.BLIND}


def about(picture, text="Is it good?", kind=Chat, **more):
    rest = {"continuations": ("Yes",)} if kind is Likelihood else more
    return kind((Message("user", (picture, text)),), path=("q",), **rest)


def checking(answer, **options):
    """A server and a backend that checks whether the model sees."""
    return served(answer, sight_check=True, **options)


PICTURE = picture_of("red")
START = 3  # calls at the start of a run: a schema and two pictures


def images_in(request):
    parts = [part for message in request["messages"] for part in message["content"]]
    shown = [part for part in parts if isinstance(part, dict) and "image_url" in part]
    urls = [part["image_url"]["url"] for part in shown]
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


def is_check(request):
    return QUESTION in str(request["messages"])


async def test_a_run_starts_with_three_calls_at_once_and_the_next_with_none(tmp_path):
    """A schema and two pictures; each waits here until all three are under way."""
    store, bodies, started = Store(tmp_path / "r.sqlite"), [], asyncio.Event()

    async def handle(http):
        body = await http.json()
        bodies.append(body)
        if len(bodies) == START:
            started.set()
        await asyncio.wait_for(started.wait(), 20)
        shown = images_in(body)
        asked = '{"score": [7, 8]}' if shown else '{"probe": "vieval"}'
        content = colour_of(shown[0]) if is_check(body) else asked
        return web.json_response(saying({"content": content}))

    async with handling(handle) as url:
        for texts, calls in (("abcdefgh", START + 8), ("ijklmnop", START + 16)):
            async with asking(url, store=store, sight_check=True) as backend:
                asks = [about(PICTURE, text, schema=SCHEMA) for text in texts]
                replies = await asyncio.gather(*map(backend.answer, asks))
                assert backend.usage.sight == {"sees": 1}
            assert all(isinstance(reply, Text) for reply in replies)
            assert len(bodies) == calls
    assert sum(map(is_check, bodies)) == 2
    store.close()


def blind(request):
    return saying({"content": "red"} if is_check(request) else {"content": "9"})


@pytest.mark.parametrize(("picture", "check"), [((), True), ((PICTURE,), False)])
async def test_nothing_is_checked_without_an_image_or_by_option(picture, check):
    ask = Chat((Message("user", (*picture, "Hello.")),), ("q",))
    async with served(blind, sight_check=check) as (backend, bodies):
        assert (await backend.answer(ask)).text == "9"
    assert len(bodies) == 1


@pytest.mark.parametrize("kind", [Chat, Likelihood])
async def test_a_model_that_does_not_see_ends_the_run_before_it_judges(kind):
    async with checking(blind) as (backend, bodies):
        advice = r"does not see .* sight_check of the backbone to false"
        with pytest.raises(VievalError, match=advice):
            await backend.answer(about(PICTURE, kind=kind))
    assert all(map(is_check, bodies))


async def test_a_judge_tuned_to_one_form_is_not_checked_and_says_so(capsys):
    async with checking(lambda request: saying({"content": "9"})) as (backend, _):
        for text in ("a", "b"):
            assert (await backend.answer(about(PICTURE, text))).text == "9"
    assert backend.usage.sight == {"not checked": 1}
    assert capsys.readouterr().err.count("could not verify that fake sees") == 1


# from issues of llama.cpp, vLLM, DeepSeek's API, CLIProxyAPI and OpenRouter's documentation
@pytest.mark.parametrize(*table("image_refusals.jsonl"))
async def test_a_model_that_refuses_images_ends_the_run_in_its_words(status, message):
    hello = saying({"content": "Hello!"})
    is_shown = lambda request: "image_url" in str(request)
    refusing = lambda request: error(status, message) if is_shown(request) else hello
    async with checking(refusing, retries=1, patience=1.0) as (backend, _):
        with pytest.raises(VievalError, match=re.escape(message[:60])):
            await backend.answer(about(PICTURE))


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "refuses the key"), (402, "no credit"), (503, "has not answered for")],
)
async def test_other_faults_are_not_called_blindness(status, said):
    refusing = lambda request: error(status, "down")
    async with checking(refusing, retries=0, patience=0.3) as (backend, _):
        with pytest.raises(VievalError, match=said) as raised:
            await backend.answer(about(PICTURE))
    assert "does not see" not in str(raised.value)

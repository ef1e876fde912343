"""Order of text and images in the questions of prompt packs."""

from dataclasses import replace

import pytest

from tests.judges.viescore_answers import ORDER, sample
from tests.playing import first_asks, play, prepared
from tests.refusals import refuses
from vieval_plugin.backends.cache import store
from vieval_plugin.judges import pairwise, registry, viescore
from vieval_plugin.judges.protocol import Chat, Failure, Status
from vieval_plugin.prompts import packs

NO_REPLY = Failure(Status.API_ERROR, "no reply")
OUTPUT_ALONE = replace(sample("tig"), images={"output": sample("tig").images["output"]})
PACK = """judge: viescore
name: mine
order: {order}
questions:
  SC: {{text: "{text}", images: [output], scores: [a]}}
  PQ: {{text: Look., images: [output], scores: [b], order: images_first}}
"""


def written(tmp_path, order, text="Look."):
    file = tmp_path / "mine.yaml"
    file.write_text(PACK.format(order=order, text=text))
    return str(file)


def texts_and_images(message):
    return ["text" if isinstance(part, str) else "image" for part in message.parts]


@pytest.mark.parametrize("name", packs.built_in())
def test_built_in_packs_send_images_first(name):
    questions = packs.load(name).questions.values()
    assert {question.order for question in questions} == {"images_first"}


@pytest.mark.parametrize("kind", ORDER)
def test_text_first_turns_each_question_of_viescore(kind):
    judges = [prepared("viescore", name) for name in ("0shot", "text_first")]
    plain, turned = (first_asks(judge.program(sample(kind))) for judge in judges)
    for before, after in zip(plain, turned, strict=True):
        *images, text = before.messages[0].parts
        assert after.messages[0].parts == (text, *images)
        assert (before.schema, before.path) == (after.schema, after.path)
    assert judges[0].provenance.settings != judges[1].provenance.settings
    assert judges[0].provenance.pack_hash == judges[1].provenance.pack_hash


def test_the_store_has_keys_of_its_own_for_another_order_alone():
    """A question in the default order has the content that it had before there were two."""
    judges = [prepared("viescore", name) for name in ("0shot", "text_first")]
    asks = (first_asks(judge.program(sample("tig"))) for judge in judges)
    [plain, *_], [turned, *_] = asks
    image, text = plain.messages[0].parts
    digest = {image: "digest"}.__getitem__
    shown, held = {"image": "digest"}, store.question(plain, digest)
    assert held == {"messages": [["user", [shown, text]]], "schema": plain.schema}
    other = store.question(turned, digest)["messages"]
    assert other == [["user", [text, shown]]]


@pytest.mark.parametrize("name", ["vqascore", "adiee", "t2i_eval"])
def test_judges_send_the_order_of_their_pack(name):
    kind = "tie" if name == "adiee" else "tig"
    spec = registry.judge(name)
    pack = packs.load(spec.pack(spec.options(), spec.plain))
    for wording, first in ((pack, "image"), (pack.text_first(), "text")):
        judge = spec.build(spec.options(), wording, spec.plain)
        asks = first_asks(judge(sample(kind)))
        shown = [texts_and_images(ask.messages[0]) for ask in asks]
        assert {parts[0] for parts in shown if "image" in parts} <= {first}


def test_cigeval_sends_each_sub_question_in_its_order(tmp_path):
    folder = tmp_path / "mine"
    packs.copy("cigeval/v1", folder)
    manifest = folder / "manifest.yaml"
    text = f"order: text_first\n{manifest.read_text()}"
    manifest.write_text(text)
    wanted = "observation requires `order: images_first`"
    refuses(wanted, packs.load, str(folder))
    ordered = "observation: {order: images_first, "
    manifest.write_text(text.replace("observation: {", ordered))
    for setting in ("paper", "react"):
        spec = registry.judge("cigeval")
        judge = spec.build(spec.options(), packs.load(str(folder)), setting)
        asks = play(judge(OUTPUT_ALONE), answer=lambda ask: NO_REPLY).asks
        chats = [ask for ask in asks if isinstance(ask, Chat)]
        assert chats
        shown = {tuple(texts_and_images(ask.messages[0])) for ask in chats}
        assert shown == {("text", "image")}


def test_a_question_has_its_own_order_or_that_of_its_pack(tmp_path):
    pack = packs.load(written(tmp_path, "text_first"))
    assert [q.order for q in pack.questions.values()] == ["text_first", "images_first"]
    asks = first_asks(viescore.build(viescore.VIEScoreOptions(), pack)(sample("tig")))
    shown = [tuple(texts_and_images(ask.messages[0])) for ask in asks]
    assert shown == [("text", "image"), ("image", "text")]


def test_the_order_is_part_of_the_hash_of_a_pack(tmp_path):
    orders = ("images_first", "text_first")
    hashes = {packs.load(written(tmp_path, order)).hash for order in orders}
    assert len(hashes) == 2


@pytest.mark.parametrize(
    "text",
    ["Look at the picture above.", "Rate the images shown above.", "Above is a photo."],
)
def test_a_text_that_speaks_of_images_above_it_is_not_turned(tmp_path, text):
    plain = packs.load(written(tmp_path, "images_first", text))
    wanted = "question SC requires `order: images_first`, because SC refers"
    refuses(wanted, packs.load, written(tmp_path, "text_first", text))
    options = viescore.VIEScoreOptions()
    refuses("refers to images above", viescore.build, options, plain, "text_first")


def test_contests_place_their_images_in_the_text():
    pack = packs.load("pairwise/v1").text_first()
    unsupported = "does not support `order: text_first`"
    refuses(unsupported, pairwise.build, pairwise.PairwiseOptions(), pack)

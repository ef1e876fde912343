"""Order of text and images in the questions of prompt packs."""

from dataclasses import replace

import pytest

from tests.judges.viescore_answers import ORDER, sample
from tests.playing import first_asks, play, prepared
from vieval_plugin.backends.cache import store
from vieval_plugin.judges import pairwise, registry, viescore
from vieval_plugin.judges.protocol import Chat, Failure, Status
from vieval_plugin.prompts import packs
from vieval_plugin.text.errors import VievalError

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


def is_chat(ask):
    return isinstance(ask, Chat)


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
    [plain, *_], [turned, *_] = (
        first_asks(judge.program(sample("tig"))) for judge in judges
    )
    image, text = plain.messages[0].parts
    digest = {image: "digest"}.__getitem__
    assert store.question(plain, digest) == {
        "messages": [["user", [{"image": "digest"}, text]]],
        "schema": plain.schema,
    }
    assert store.question(turned, digest)["messages"] == [
        ["user", [text, {"image": "digest"}]]
    ]


@pytest.mark.parametrize("name", ["vqascore", "adiee", "t2i_eval"])
def test_judges_send_the_order_of_their_pack(name):
    kind = "tie" if name == "adiee" else "tig"
    spec = registry.judge(name)
    pack = packs.load(spec.pack(spec.options(), spec.plain))
    for wording, first in ((pack, "image"), (pack.text_first(), "text")):
        judge = spec.build(spec.options(), wording, spec.plain)
        shown = [
            texts_and_images(ask.messages[0]) for ask in first_asks(judge(sample(kind)))
        ]
        assert {parts[0] for parts in shown if "image" in parts} <= {first}


def test_cigeval_sends_each_sub_question_in_its_order(tmp_path):
    packs.copy("cigeval/v1", tmp_path / "mine")
    manifest = tmp_path / "mine" / "manifest.yaml"
    manifest.write_text(f"order: text_first\n{manifest.read_text()}")
    with pytest.raises(VievalError, match="observation requires `order: images_first`"):
        packs.load(str(tmp_path / "mine"))
    manifest.write_text(
        manifest.read_text().replace(
            "observation: {", "observation: {order: images_first, "
        )
    )
    for setting in ("paper", "react"):
        spec = registry.judge("cigeval")
        judge = spec.build(spec.options(), packs.load(str(tmp_path / "mine")), setting)
        asks = play(judge(OUTPUT_ALONE), answer=lambda ask: NO_REPLY).asks
        shown = [texts_and_images(ask.messages[0]) for ask in asks if is_chat(ask)]
        assert shown
        assert {tuple(parts) for parts in shown} == {("text", "image")}


def test_a_question_has_its_own_order_or_that_of_its_pack(tmp_path):
    pack = packs.load(written(tmp_path, "text_first"))
    assert [q.order for q in pack.questions.values()] == ["text_first", "images_first"]
    asks = first_asks(viescore.build(viescore.VIEScoreOptions(), pack)(sample("tig")))
    assert [texts_and_images(ask.messages[0]) for ask in asks] == [
        ["text", "image"],
        ["image", "text"],
    ]


def test_the_order_is_part_of_the_hash_of_a_pack(tmp_path):
    orders = ("images_first", "text_first")
    hashes = {packs.load(written(tmp_path, order)).hash for order in orders}
    assert len(hashes) == 2


@pytest.mark.parametrize(
    "text",
    ["Look at the picture above.", "Rate the images shown above.", "Above is a photo."],
)
def test_a_text_that_speaks_of_images_above_it_is_not_turned(tmp_path, text):
    packs.load(written(tmp_path, "images_first", text))
    with pytest.raises(
        VievalError,
        match="question SC requires `order: images_first`, because SC refers",
    ):
        packs.load(written(tmp_path, "text_first", text))
    plain = packs.load(written(tmp_path, "images_first", text))
    with pytest.raises(VievalError, match="refers to images above it"):
        viescore.build(viescore.VIEScoreOptions(), plain, "text_first")


def test_an_unknown_order_is_refused(tmp_path):
    with pytest.raises(VievalError, match="order: Input should be 'images_first'"):
        packs.load(written(tmp_path, "text_last"))


def test_contests_place_their_images_in_the_text():
    pack = packs.load("pairwise/v1")
    with pytest.raises(VievalError, match="does not support `order: text_first`"):
        pairwise.build(pairwise.PairwiseOptions(), pack.text_first())

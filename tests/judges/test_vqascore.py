"""Test VQAScore with canned replies, and through a server of log-probabilities."""

import json
from pathlib import Path

import pytest

from tests.fake_server import FakeServer
from tests.playing import first_asks
from vieval_plugin import Backbone, Status, evaluate, score_matrix
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.config import Config, Judges, StoreOptions
from vieval_plugin.judges import vqascore
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.prompts import packs
from vieval_plugin.readers.samples import read_samples

SEQUENCE_MEAN = vqascore.VQAScoreOptions(definition="sequence_mean")
JUDGE = vqascore.build(vqascore.VQAScoreOptions(), packs.load("vqascore/v1"))
UNSTORED = Config(store=StoreOptions(use=False))


def sample(text="two cats", roles=("output",)):
    images = {role: Image(Path(f"{role}.png")) for role in roles}
    return Sample(SampleId("b", "all", "m", "1"), images, {"prompt": text})


@pytest.mark.parametrize(
    "text", ['a "quoted" {{ cat }} {% if %}', "50% <b>off</b> {x}", "très\nlong"]
)
def test_a_text_with_quotes_and_braces_is_asked_as_it_is(text):
    [ask] = first_asks(JUDGE(sample(text)))
    image, question = ask.messages[0].parts
    assert image == Image(Path("output.png"))
    assert f'"{text}"' in question


def test_a_matrix_of_images_and_texts():
    images = [sample.images["output"] for sample in vieval_demo.load(Path(), "tig")[:3]]
    texts = ["a cat", 'a "dog"', "a cat"]
    with FakeServer() as server:
        backbone = Backbone(model="fake", base_url=server.base_url)
        found = score_matrix(images, texts, backbone=backbone, options=UNSTORED)
        seen = server.stats()["distinct_prompts"]
    assert found.shape == (3, 3)
    assert (found[:, 0] == found[:, 2]).all()
    assert seen == 6


def test_a_list_of_prompts_is_as_many_samples(tmp_path):
    about = {"images": {"output": "x.png"}, "texts": {"prompt": ["one", "two"]}}
    (tmp_path / "s.jsonl").write_text(json.dumps({"uid": "a", "task": "tig", **about}))
    found = [row.sample for row in read_samples(tmp_path / "s.jsonl")]
    prompts = [(s.id.uid, s.texts["prompt"]) for s in found]
    assert prompts == [("a#0", "one"), ("a#1", "two")]


def test_sequence_mean_through_a_server_says_what_to_use():
    options = UNSTORED.model_copy(update={"judges": Judges(vqascore=SEQUENCE_MEAN)})
    about, shown = (
        {"judge": "vqascore", "options": options},
        vieval_demo.load(None, "tig"),
    )
    with FakeServer() as server:
        backbone = Backbone(model="fake", base_url=server.base_url)
        [verdict] = evaluate(shown[:1], backbone=backbone, **about)
    assert verdict.status is Status.API_ERROR
    assert "use the transformers backend" in verdict.trace[0].reason

"""Lists of wanted samples: uids, or the published split by part and image model."""

import json

import pytest

from tests.refusals import refuses
from vieval_plugin.benchmarks.imagenhub import BENCHMARK
from vieval_plugin.hosts.task_data import select_subset
from vieval_plugin.judges.protocol import Sample, SampleId

SAMPLES = [
    Sample(SampleId("imagenhub", "tie", model, uid), {})
    for model in ("A", "B")
    for uid in ("1", "2", "3")
]


def named(path):
    found = select_subset(SAMPLES, path, BENCHMARK.folders)
    return [(sample.id.image_model, sample.id.uid) for sample in found]


def test_a_uid_in_a_list_is_wanted_of_every_image_model(tmp_path):
    (tmp_path / "uids.txt").write_text("2\n\n 3 \nelsewhere\n")
    expected = [("A", "2"), ("A", "3"), ("B", "2"), ("B", "3")]
    assert named(tmp_path / "uids.txt") == expected


@pytest.mark.parametrize("part", ["ImagenHub_Text-Guided_IE", "tie"])
def test_the_published_split_names_uids_by_part_and_image_model(tmp_path, part):
    split = {
        part: {"A": {"sample": ["1"]}, "B": ["3"]},
        "ImagenHub_Text-Guided_IG": {"A": {"sample": ["2"]}},
    }
    (tmp_path / "split.json").write_text(json.dumps(split))
    assert named(tmp_path / "split.json") == [("A", "1"), ("B", "3")]


WRONG = ("[]", "{", '{"tie": ["1"]}', '{"tie": {"A": {"sample": "1"}}}')


@pytest.mark.parametrize("text", [*WRONG, '{"tie": {"A": {}}}'])
def test_json_of_another_shape_is_refused_by_name(tmp_path, text):
    (tmp_path / "split.json").write_text(text)
    line = "split.json: the split must map parts to image models"
    refuses(line, select_subset, SAMPLES, tmp_path / "split.json", {})


def test_a_list_that_names_no_sample_or_is_not_there_is_refused(tmp_path):
    (tmp_path / "uids.txt").write_text("9\n8\n")
    absent = "its 2 uids do not match any sample of imagenhub/tie"
    refuses(absent, select_subset, SAMPLES, tmp_path / "uids.txt", {})
    unread = "cannot read the list of uids"
    refuses(unread, select_subset, SAMPLES, tmp_path / "nowhere.txt", {})

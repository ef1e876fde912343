"""GenEval inside lmms-eval: a generator's images, judged by `objects`, and the mean of six tags."""

import numpy as np
import pytest

from tests import in_process, tiny_scorers, tiny_segmenter
from tests.extras import needs
from tests.pictures import noise
from tests.stored_results import write_lines
from vieval_plugin.backends.image_tools import object_detector
from vieval_plugin.benchmarks.geneval import PROMPTS, TAGS
from vieval_plugin.results.host_samples import records_of

pytestmark = [
    needs("torch", "transformers", "torchvision", "torchmetrics", "lmms_eval"),
    pytest.mark.usefixtures("no_downloads"),
]
GROUP = "generate_geneval_objects"


def prompt(tag, number):
    wanted = {"class": ("cat", "dog", "toy")[number % 3], "count": 1 + number % 2}
    if tag in ("colors", "color_attr"):
        wanted["color"] = "red"
    return {"tag": tag, "include": [wanted], "prompt": f"{tag} {number}"}


def test_the_group_is_the_mean_of_six_tags_with_an_interval(tmp_path, monkeypatch):
    monkeypatch.setattr(object_detector, "SHORTER_SIDE", 96)
    monkeypatch.setattr(object_detector, "LONGEST_SIDE", 160)
    data, made = tmp_path / "data", tmp_path / "made"
    (data / "geneval").mkdir(parents=True)
    made.mkdir()
    prompts = [prompt(tag, number) for tag in TAGS for number in range(4)]
    write_lines(data / "geneval" / PROMPTS, prompts)
    for number in range(len(prompts)):
        noise(number, (5, 4)).resize((80, 64)).save(made / f"{number:05}.png")
    masks = tiny_segmenter.build(tmp_path / "masks", ("cat", "dog", "toy"))
    colors = tiny_scorers.build_clip(tmp_path / "colors")
    weights = {"objects": masks, "objects_color": colors}
    scorers = {name: {"model": str(path)} for name, path in weights.items()}
    place = tmp_path / "options.yaml"
    options = in_process.options_file(place, data=str(data), scorers=scorers)
    generator = ("--model", "vieval_images", "--model_args", f"folder={made},name=mine")
    command = in_process.command(generator, GROUP, 4)[1:]
    out = tmp_path / "out"
    in_process.run(*command, "--output_path", out, options=options)
    results = in_process.read(out)[0]["results"]
    means = [results[f"{GROUP}_{tag}"]["SC_mean_value,none"] for tag in TAGS]
    assert len(set(means)) > 1
    ends = ("ci_low", "value", "ci_high")
    low, value, high = (results[GROUP][f"SC_mean_{end},none"] for end in ends)
    assert value == pytest.approx(np.mean(means))
    assert low <= value <= high
    files = out.rglob("*_samples_*.jsonl")
    records = [one for path in files for images in records_of(path) for one in images]
    assert len(records) == 24
    assert {record.category for record in records} == set(TAGS)
    assert {str(record.verdict.status) for record in records} == {"ok"}

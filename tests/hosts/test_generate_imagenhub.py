"""A generator's place among ImagenHub's published image models, from a run of the judge on their images."""

import json

import pytest

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")

from tests import in_process
from tests.fake_server import FakeServer
from tests.imagenhub_site import REDUCED
from vieval_plugin.cli import main
from vieval_plugin.judges.protocol import Image

JUDGED, GENERATED = "imagenhub_viescore_tie", "generate_imagenhub_viescore_tie"
SCORES = {"MagicBrush": 8, "SDEdit": 4}


@pytest.mark.parametrize(("score", "place"), [(9, 1), (6, 2), (1, 3)])
def test_the_place_is_that_among_verdicts_of_the_same_judge(prepared_data, tmp_path, score, place):
    data = prepared_data()
    museum = data / "imagenhub" / "museum" / "ImagenHub_Text-Guided_IE"
    published = {
        in_process.pixels(Image((museum / model / uid).read_bytes())): SCORES[model]
        for model in REDUCED["tie"][0]
        for uid in REDUCED["tie"][1]
    }

    def reply(body):
        given = published.get(next(reversed(in_process.shown(body)), ""), score)
        return json.dumps({"score": [given, given], "reasoning": "seen"})

    made = tmp_path / "made"
    made.mkdir()
    for uid in REDUCED["tie"][1]:
        (made / uid).write_bytes((museum / "input" / uid).read_bytes())
    with FakeServer(reply=reply) as server:
        backbones = {"judge": {"model": "fake", "base_url": server.base_url, "patience": 5}}

        def run(model, task, out, **generate):
            file = in_process.options_file(
                tmp_path / f"{out}.yaml", backbones=backbones, generate={"folder": str(tmp_path / "kept"), **generate}
            )
            arguments = in_process.command(model, task, 10)[1:]
            in_process.run(*arguments, "--output_path", tmp_path / out, data=data, options=file)
            return in_process.read(tmp_path / out)[0]["results"][task]

        run(in_process.served("vieval_openai", server), JUDGED, "published")
        images = ("--model", "vieval_images", "--model_args", f"folder={made},name=mine")
        alone = run(images, GENERATED, "alone")
        found = run(images, GENERATED, "placed", recorded=[str(tmp_path / "published")])
    assert alone["place_value,none"] is None
    assert found["SC_mean_value,none"] == pytest.approx(score / 10)
    assert (found["place_value,none"], found["place_among_value,none"]) == (place, 3)
    assert main(["report", str(tmp_path / "placed"), "--out", str(tmp_path / "report")]) == 0
    report = (tmp_path / "report" / "report.md").read_text()
    assert "mine" in report

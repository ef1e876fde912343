"""A generator beside ImagenHub's published image models, whose outputs the same task judges."""

import itertools
import json
import shutil

import pytest

from tests import in_process
from tests.fake_server import FakeServer
from tests.imagenhub_site import REDUCED
from vieval_plugin.judges.protocol import Image

GENERATED = "generate_imagenhub_viescore_tie"
SCORES = {"MagicBrush": 8, "SDEdit": 4}
OWN_SCORE = 6


def test_published_outputs_are_ranked_beside_ours(prepared_data, tmp_path, vieval):
    data = prepared_data()
    museum = data / "imagenhub" / "museum" / "ImagenHub_Text-Guided_IE"
    made = shutil.copytree(museum / "input", tmp_path / "made")
    models, uids = REDUCED["tie"]
    published = {}
    for model, uid in itertools.product(models, uids):
        image = Image((museum / model / uid).read_bytes())
        published[in_process.pixels(image)] = SCORES[model]

    def reply(body):
        score = published.get(next(reversed(in_process.shown(body)), ""), OWN_SCORE)
        return json.dumps({"score": [score, score], "reasoning": "seen"})

    def run(name, folder):
        model = f"--model vieval_images --model_args folder={folder},name={name}"
        arguments = in_process.command(model.split(), GENERATED, 10)[1:]
        path = tmp_path / name
        in_process.run(*arguments, "--output_path", path, data=data, options=file)
        return in_process.read(path)[0]["results"][GENERATED]

    with FakeServer(reply=reply) as server:
        judge = {"model": "fake", "base_url": server.base_url, "patience": 5}
        path = tmp_path / "options.yaml"
        file = in_process.options_file(path, backbones={"judge": judge})
        mine = run("mine", made)
        for model in SCORES:
            run(model, museum / model)
    assert mine["SC_mean_value,none"] == pytest.approx(OWN_SCORE / 10)
    results, ranks = [tmp_path / name for name in ("mine", *SCORES)], tmp_path / "ranks"
    vieval("rank", *results, "--tables", ranks)
    rows = json.loads((ranks / "findings.json").read_text())["numbers"]
    rows = [row for row in rows if row["aspect"] == "O" and not row["breakdown"]]
    means = [(row["system"], round(row["value"], 9)) for row in rows]
    assert means == [("MagicBrush", 0.8), ("mine", 0.6), ("SDEdit", 0.4)]

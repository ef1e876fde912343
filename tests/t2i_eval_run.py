"""A run of T2I-Eval on three samples by a scripted model, for training and pages."""

from __future__ import annotations

from pathlib import Path

import PIL.Image
import pytest

from tests.builders import a_sample_row
from tests.fake_server import FakeServer
from tests.pictures import encoded
from tests.scripted_t2i_eval import Scene, Script, entity, over_http
from tests.stored_results import write_lines
from vieval_plugin import Backbone, Progress, evaluate
from vieval_plugin.config import Config, StoreOptions
from vieval_plugin.judges.t2i_eval.structure import Relation
from vieval_plugin.readers.samples import read_samples
from vieval_plugin.records import Provenance
from vieval_plugin.run.evaluate import provenance_of
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.verdict_lines import write_verdicts

UNSTORED = Config(store=StoreOptions(use=False))


def provenance(judge: str, backbone: Backbone) -> Provenance:
    return provenance_of(prepare(judge, None, UNSTORED, backbone), UNSTORED, backbone)


def drawn(number: int) -> bytes:
    picture = PIL.Image.new("RGB", (48, 32), (20 * number % 256, 99, 180))
    return encoded(picture)


CAT = (entity("cat", color="red"), entity("mat"))
APPLES = (entity("apples", "three"), entity("bowl"))
ON, IN = Relation(("cat", "mat"), "on"), Relation(("apples", "bowl"), "in")
SCENES = (
    Scene("a red <b>cat</b> on a mat", CAT, (ON,), 7.0, drawn(1)),
    Scene("a lonely tree", (entity("tree"),), (), 9.0, drawn(2)),
    Scene("three apples in a bowl", APPLES, (IN,), 2.0, drawn(3)),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with samples.jsonl, their images, and verdicts.jsonl of T2I-Eval on them."""
    folder = tmp_path_factory.mktemp("run")
    rows = []
    for number, scene in enumerate(SCENES):
        (folder / f"{number}.png").write_bytes(scene.drawn)
        about = {"prompt": scene.prompt, "image_model": "m"}
        rows.append(a_sample_row(f"s{number}", f"{number}.png", **about))
    write_lines(folder / "samples.jsonl", rows)
    samples = [row.sample for row in read_samples(folder / "samples.jsonl")]
    with FakeServer(reply=over_http(Script(SCENES))) as server:
        backbone = Backbone(model="scripted", base_url=server.base_url)
        progress = Progress()
        asked = {"judge": "t2i_eval", "backbone": backbone, "options": UNSTORED}
        verdicts = evaluate(samples, **asked, progress=progress)
    failed = [verdict.trace for verdict in verdicts if verdict.status != "ok"]
    assert failed == []
    assert [verdict.scores["O"] for verdict in verdicts] == [0.7, 0.9, 0.2]
    # three calls more find out whether the server enforces schemas, and whether the model sees
    assert progress.usage.calls == sum(map(implied, SCENES)) + 3
    source = provenance("t2i_eval", backbone)
    write_verdicts(folder / "verdicts.jsonl", samples, verdicts, source)
    return folder


def implied(scene: Scene) -> int:
    looks, attributes, relations = scene.counts
    return 1 + 2 * looks + 3 * (attributes + relations) + 2 * (2 + bool(relations)) + 2

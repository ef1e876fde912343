"""What a sample lacks is its own verdict and never the end of a run."""

import json
import logging
from io import BytesIO

import PIL.Image
import pytest

from tests.fake_server import FakeServer
from vieval_plugin import Backbone, Image, Sample, SampleId, Status, evaluate
from vieval_plugin.cli import main


@pytest.fixture(scope="module")
def server():
    with FakeServer() as running:
        yield running


@pytest.fixture
def picture():
    file = BytesIO()
    PIL.Image.new("RGB", (48, 48), "teal").save(file, "PNG")
    return file.getvalue()


def test_samples_that_lack_something_have_verdicts_with_the_reason(server, picture, tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(picture)
    output = {"output": "a.png"}
    rows = [
        {"uid": "whole", "kind": "tig", "images": output, "texts": {"prompt": "teal"}},
        {"uid": "no prompt", "kind": "tig", "images": output, "texts": {}},
        {"uid": "no source", "kind": "tie", "images": output, "texts": {"instruction": "make it teal"}},
        {"uid": "what is it", "kind": "sculpture", "images": output, "texts": {"prompt": "teal"}},
    ]
    (tmp_path / "samples.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    backbone = ["--model", "fake", "--base-url", server.base_url]
    command = ["score", str(tmp_path / "samples.jsonl"), "--judge", "viescore", *backbone]
    assert main([*command, "--out", str(tmp_path / "verdicts.jsonl")]) == 0
    verdicts = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert [verdict["status"] for verdict in verdicts] == ["ok", *["not_applicable"] * 3]
    assert [verdict["trace"][0]["reason"] for verdict in verdicts[1:]] == [
        "the sample has no text prompt",
        "the sample has no image source",
        "viescore does not know the kind 'sculpture' (it knows tig, mie, tie, sdig, sdie, mcic, cig)",
    ]
    said = capsys.readouterr().out
    assert all(verdict["trace"][0]["reason"] in said for verdict in verdicts[1:])


def test_nothing_scored_is_exit_code_1(server, picture, tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(picture)
    (tmp_path / "samples.jsonl").write_text('{"kind": "tie", "images": {"output": "a.png"}}\n')
    backbone = ["--model", "fake", "--base-url", server.base_url]
    assert main(["score", str(tmp_path / "samples.jsonl"), *backbone, "--out", str(tmp_path / "v.jsonl")]) == 1
    assert "nothing could be" in capsys.readouterr().err
    assert (tmp_path / "v.jsonl").is_file()


def test_the_python_api_does_the_same(server, picture):
    samples = [
        Sample(SampleId("own", "tig", "mine", "1"), {"output": Image(picture)}, {"prompt": "teal"}),
        Sample(SampleId("own", "tig", "mine", "2"), {}, {"prompt": "teal"}),
    ]
    first, second = evaluate(samples, judge="vqascore", backbone=Backbone(model="fake", base_url=server.base_url))
    assert first.status is Status.OK
    assert second.status is Status.NOT_APPLICABLE
    assert second.trace[0].reason == "the sample has no image output or frame_0 or view_0"


def test_an_exception_in_a_program_is_its_samples_failure(picture, monkeypatch, caplog):
    from vieval_plugin.judges import registry as judge_registry
    from vieval_plugin.judges.protocol import Measure, Verdict
    from vieval_plugin.judges.spec import JudgeSpec, Needs, NoOptions

    def build(options, pack, setting):
        def program(sample):
            [reply] = yield [Measure("sharpness", {"image": sample.images["output"]}, ("sharpness",))]
            if sample.id.uid == "1":
                raise KeyError("a slip")
            return Verdict({"PQ": reply.value}, Status.OK)

        return program

    spec = JudgeSpec("slips", "Slips", ("PQ",), {"tig": Needs(("output",))}, NoOptions, build)
    known = {**judge_registry.judges(), "slips": spec}
    monkeypatch.setattr(judge_registry, "judges", lambda: known)
    monkeypatch.setattr("vieval_plugin.config.judges.JudgesBase.of", lambda self, spec: NoOptions(), raising=False)
    noisy = BytesIO()
    PIL.Image.effect_noise((48, 48), 60).save(noisy, "PNG")
    shown = Image(noisy.getvalue())
    samples = [Sample(SampleId("own", "tig", "mine", str(n)), {"output": shown}, {}) for n in range(3)]
    with caplog.at_level(logging.INFO):
        verdicts = evaluate(samples, judge="slips")
    assert [verdict.status for verdict in verdicts] == [Status.OK, Status.TOOL_ERROR, Status.OK]
    assert verdicts[1].trace[0].reason == "the judge's program broke: KeyError: 'a slip'"
    assert "Traceback" not in caplog.text
    with caplog.at_level(logging.DEBUG, logger="vieval"):
        evaluate(samples, judge="slips")
    assert "KeyError: 'a slip'" in caplog.text

"""What the flags of `vieval score` do: several judges, limits, the backbone's options, options files; rows by kind."""

import json
import re
from functools import partial

import PIL.Image
import pytest

from tests.fake_server import FakeServer, named
from tests.verdict_files import provenance_of
from vieval_plugin.cli import main

TEXTS = {"tig": {"prompt": "a cube"}, "tie": {"instruction": "add a hat"}, "sdig": {"prompt": "a dog"}}


@pytest.fixture
def samples(tmp_path):
    """Three samples of each of three kinds, by two image models."""
    rows = []
    for number, kind in enumerate(["tig", "tie", "sdig"] * 2):
        images = {"output": f"{number}.png"}
        PIL.Image.new("RGB", (32, 32), (40 * number, 90, 200)).save(tmp_path / f"{number}.png")
        images |= {"tie": {"source": "0.png"}, "sdig": {"subject": "0.png"}}.get(kind, {})
        model = "mine" if number < 3 else "theirs"
        rows.append(
            {"uid": str(number % 3), "image_model": model, "kind": kind, "images": images, "texts": TEXTS[kind]}
        )
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path / "s.jsonl"


@pytest.fixture
def score(score, samples):
    """Scores these samples."""
    return partial(score, samples)


def test_several_kinds_have_rows_of_their_own_and_rank_is_next(score, server, tmp_path):
    code, _, said, _ = score(*named(server))
    lines = said.splitlines()
    assert code == 0
    assert lines[0].startswith("viescore, mean O: ")
    table = lines.index("") + 1
    assert lines[table].startswith("in all rows: samples = 1")
    assert lines[table + 1].split()[:3] == ["image", "model", "kind"]
    assert [line.split()[:2] for line in lines[table + 2 : table + 8]] == [
        [model, kind] for model in ("mine", "theirs") for kind in ("tig", "tie", "sdig")
    ]
    assert lines[-2:] == [
        f"wrote {tmp_path / 'verdicts.jsonl'}",
        f"next: `vieval rank {tmp_path / 'verdicts.jsonl'}` says which is best, and whether that is significant",
    ]


def test_kinds_that_a_judge_cannot_judge_are_not_applicable_and_no_failures(score):
    code, rows, said, _ = score("--judge", "ssim")
    assert code == 0
    assert [row["status"] for row in rows] == ["not_applicable", "ok", "not_applicable"] * 2
    # what it cannot judge has no row of zeros, and a line with the reason
    table = said.splitlines()[2:6]
    assert table[0] == "in all rows: samples = 1, failed = 0"
    assert table[1].split() == ["image", "model", "SC"]
    assert [line.split()[0] for line in table[2:]] == ["mine", "theirs"]
    assert "not_applicable 2, the first: " in said
    code, rows, _, told = score("--judge", "ssim", "--limit", "1")
    assert (code, [row["status"] for row in rows]) == (1, ["not_applicable"])
    assert told.endswith("vieval: nothing could be judged (see above)\n")


def test_several_judges_are_in_one_file_which_rank_and_compare_read(score, server, tmp_path, capsys):
    code, rows, said, _ = score("--judge", "viescore", "--judge", "sharpness", "--judge", "viescore", *named(server))
    assert code == 0
    assert [row["judge"] for row in rows] == ["viescore"] * 6 + ["sharpness"] * 6
    assert [row["model"] for row in rows[::6]] == ["fake", "sharpness"]
    assert re.findall(r"^(\w+), mean (\w+): ", said, re.MULTILINE) == [("viescore", "O"), ("sharpness", "PQ")]
    for command in (["rank"], ["report", "--out", str(tmp_path / "r")], ["show", "--judge", "sharpness"]):
        at = [str(tmp_path / "verdicts.jsonl"), *(["mine/0"] if command[0] == "show" else [])]
        assert main([command[0], *at, *command[1:]]) == 0, command
    said = capsys.readouterr().out
    assert "Your images: Mean O over prompts, by viescore 0shot (fake)" in said
    assert "Your images: Mean PQ over prompts, by sharpness" in said


def test_flags_of_the_backbone_are_on_top_of_the_options(score, tmp_path):
    seen = []

    def reply(body):
        if body["max_tokens"] != 64:  # and not whether schemas are enforced
            seen.append((body["temperature"], body["max_tokens"], body["model"]))
        return json.dumps({"score": [5, 5], "reasoning": "fine"})

    with FakeServer(reply=reply) as server:
        options = tmp_path / "other.yaml"
        judge = {"model": "fake", "base_url": server.base_url, "max_tokens": 99}
        options.write_text(json.dumps({"backbones": {"judge": judge}, "store": {"use": False}}))
        flags = ["--temperature", "0.5", "--num-concurrent", "1", "--timeout", "9", "--patience", "8"]
        code, rows, _, _ = score("--config", options, *flags, "--limit", "2")
    assert code == 0
    assert len(rows) == 2
    assert set(seen) == {(0.5, 99, "fake")}
    told = provenance_of(tmp_path / "verdicts.jsonl", rows[0])["options"]["backbones"]["judge"]
    assert [told[name] for name in ("temperature", "num_concurrent", "timeout", "patience")] == [0.5, 1, 9.0, 8.0]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--temperature", "-1"], "--temperature: Input should be greater than or equal to 0"),
        (["--num-concurrent", "0"], "--num-concurrent: Input should be greater than or equal to 1"),
        (["--max-tokens", "0"], "--max-tokens: Input should be greater than or equal to 1"),
        (["--timeout", "0"], "--timeout: Input should be greater than 0"),
        (["--config", "nowhere.yaml"], "nowhere.yaml: the options file cannot be read"),
        (["--judge", "viescor"], "viescore"),
        (["--prompts", "p.txt"], "no folder of images; with --prompts, pass folders of images"),
    ],
)
def test_a_value_that_a_flag_cannot_have_is_one_line(score, tmp_path, monkeypatch, flags, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.txt").write_text("x")
    code, rows, _, said = score("--model", "m", "--base-url", "http://127.0.0.1:9/v1", *flags)
    assert (code, rows, said.count("\n")) == (1, [], 1)
    assert message in said


def test_what_no_judge_uses_is_said_in_one_line(score, server, tmp_path):
    _, rows, _, said = score("--judge", "sharpness", *named(server), "--scorer", "weights", "--lazy")
    assert said.splitlines()[:3] == [
        "vieval: --lazy changes nothing: no answer of sharpness decides the others",
        "vieval: --scorer is not used: sharpness measures with no network",
        "vieval: --model is not used: sharpness asks no model",
    ]
    assert rows[0]["model"] == "sharpness"
    assert server.stats()["requests"] == 0
    for flags in (["--judge", "viescore", "--lazy", *named(server)], ["--judge", "sharpness"]):
        said = score(*flags)[3]
        assert "is not used" not in said
        assert "changes nothing" not in said


def test_a_run_answered_wholly_from_the_store_says_so(score, server):
    for judge in (["--judge", "viescore", *named(server)], ["--judge", "sharpness"]):
        assert "no model was asked" not in score(*judge, "--limit", "3")[3]
        assert "no model was asked" not in score(*judge)[3]  # half of it was
        assert "\nno model was asked: all " in score(*judge)[3]
        assert "no model was asked" not in score(*judge, "--fresh")[3]


def test_verdicts_need_a_file(samples, vieval):
    message = "name the file that verdicts are to be written to with --out, or pass --plan"
    assert message in vieval("score", samples, code=1).err

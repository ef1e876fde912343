"""`vieval score`: one's own images from a file, verdicts to another."""

import itertools
import json

import pytest

from tests.fake_server import FakeServer, Fault
from vieval_plugin.cli import main


def test_score_writes_verdicts_in_order_and_a_summary(store, server, samples_file, tmp_path, capsys):
    out = tmp_path / "verdicts.jsonl"
    command = ["score", str(samples_file), "--model", "fake", "--base-url", server.base_url, "--out", str(out)]
    assert main(command) == 0
    printed = capsys.readouterr()
    given = [json.loads(line) for line in samples_file.read_text().splitlines()]
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(w["uid"], w["image_model"]) for w in written] == [(g["uid"], g["image_model"]) for g in given]
    assert all(w["status"] == "ok" and w["provenance"]["pack"] == "viescore/v1" for w in written)
    assert {line.split()[0] for line in printed.out.splitlines()[1:4]} == {"demo_a", "demo_b", "demo_c"}
    assert "calls: 13," in printed.err  # one of them asks whether schemas are enforced
    assert main(command) == 0
    assert "calls: 0, answered from the store: 12" in capsys.readouterr().err
    assert [json.loads(line) for line in out.read_text().splitlines()] == written


def test_failed_calls_show_in_the_last_lines_and_the_exit_code(store, samples_file, tmp_path, capsys):
    def faults(number, body):
        return Fault("overlong") if number % 5 == 0 else None

    with FakeServer(faults=faults) as server:
        code = main(
            [
                "score",
                str(samples_file),
                "--model",
                "fake",
                "--base-url",
                server.base_url,
                "--out",
                str(tmp_path / "v.jsonl"),
            ]
        )
    printed = capsys.readouterr()
    assert code == 1
    assert "FAILED CALLS: too long" in printed.err
    assert "api_error" in printed.out


@pytest.mark.parametrize(("refused", "code"), [(5, 0), (12, 1)])
def test_refusals_are_no_failed_calls_and_a_run_in_which_nothing_was_scored_fails(
    store, samples_file, tmp_path, capsys, refused, code
):
    numbers = itertools.count()

    def reply(body):
        if next(numbers) <= refused:  # the first question is whether schemas are enforced
            return "I'm sorry, I can't assist with that."
        return json.dumps({"score": [8, 6], "reasoning": ""})

    with FakeServer(reply=reply) as server:
        named = ["--model", "fake", "--base-url", server.base_url]
        assert main(["score", str(samples_file), *named, "--out", str(tmp_path / "v.jsonl")]) == code
    said = capsys.readouterr().err
    assert "FAILED CALLS" not in said
    assert ("refusal 6" in said) == ("vieval: nothing could be scored (see above)" in said) == (code == 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: not a JSON object"),
        ("[]", "line 1: not a JSON object"),
        ('{"image": "x"}', "line 1: unknown key 'image'; the keys are"),
        ('{"images": {"output": 3}, "task": "tie"}', "line 1: images must map roles (output, source, ...) to paths"),
        ('{"images": {"output": "x"}, "texts": {"prompt": 3}, "task": "tig"}', "line 1: texts must map names"),
        ('{"images": {"output": "x"}, "kind": 7}', "line 1: kind 7 is no text"),
        ("", "no samples in it"),
    ],
)
def test_strict_names_a_malformed_line(tmp_path, capsys, line, message):
    path = tmp_path / "s.jsonl"
    path.write_text(line)
    assert main(["score", str(path), "--strict", "--out", str(tmp_path / "v.jsonl"), "--judge", "sharpness"]) == 1
    error = capsys.readouterr().err
    assert f"vieval: {path}" in error
    assert message in error
    assert not (tmp_path / "v.jsonl").exists()


def test_an_unreadable_image_is_a_tool_error_and_the_run_goes_on(store, server, samples_file, tmp_path, capsys):
    first = json.loads(samples_file.read_text().splitlines()[0])
    (tmp_path / first["images"]["output"]).write_text("not an image")
    code = main(
        [
            "score",
            str(samples_file),
            "--model",
            "fake",
            "--base-url",
            server.base_url,
            "--out",
            str(tmp_path / "v.jsonl"),
        ]
    )
    statuses = [json.loads(line)["status"] for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert code == 1
    assert statuses == ["tool_error"] + ["ok"] * 5
    assert "unreadable image" in capsys.readouterr().err


def test_what_score_writes_is_reported_and_ranked_under_its_label(store, server, samples_file, tmp_path, capsys):
    named = ["--model", "fake", "--base-url", server.base_url, "--label", "before"]
    assert main(["score", str(samples_file), *named, "--out", str(tmp_path / "v.jsonl")]) == 0
    assert main(["report", str(tmp_path / "v.jsonl"), "--out", str(tmp_path / "report")]) == 0
    text = (tmp_path / "report" / "report.md").read_text()
    assert "## own" in text
    assert "| demo_a | before | 2 | 2 |" in text
    assert main(["rank", str(tmp_path / "v.jsonl")]) == 0
    assert "own, before: O, mean over prompts" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["score", "--judge", "ssim"], ["label"]])
def test_what_is_read_is_never_replaced(samples_file, capsys, command):
    first = json.loads(samples_file.read_text().splitlines()[0])
    image = samples_file.parent / first["images"]["output"]
    link = samples_file.parent / "link.jsonl"
    link.symlink_to(samples_file)
    before = samples_file.read_bytes(), image.read_bytes()
    for out in (samples_file, image, link):
        assert main([command[0], str(samples_file), *command[1:], "--out", str(out)]) == 1
        assert "is read for this, and writing would replace it" in capsys.readouterr().err
    assert (samples_file.read_bytes(), image.read_bytes()) == before

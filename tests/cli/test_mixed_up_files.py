"""A file of samples where results are needed, and the other way round, is said to be what it is."""

import json

import pytest

from vieval_plugin.cli import main

SAMPLE = {"uid": "1", "kind": "tig", "image_model": "mine", "images": {"output": "1.png"}, "texts": {"prompt": "a cat"}}
VERDICT = {"vieval": 2, "uid": "1", "kind": "tig", "scores": {}, "status": "ok", "provenance": {}}


@pytest.mark.parametrize("command", ["rank", "compare", "report"])
def test_samples_are_no_results(command, tmp_path, capsys):
    file = tmp_path / "samples.jsonl"
    file.write_text(json.dumps(SAMPLE) + "\n")
    assert main([command, str(file), *(["--out", str(tmp_path / "out")] if command == "report" else [])]) == 1
    line = capsys.readouterr().err.strip()
    assert line == (
        f"vieval: {file}: line 1 is no result of VIEval ('filtered_resps' is missing); these are samples: judge them with "
        "`vieval score`"
    )


def test_verdicts_are_no_samples(tmp_path, capsys):
    file = tmp_path / "verdicts.jsonl"
    file.write_text(json.dumps(VERDICT) + "\n")
    assert main(["label", str(file), "--out", str(tmp_path / "label.html")]) == 1
    assert "a verdict, where a sample is needed; give the file of samples that was judged" in capsys.readouterr().err

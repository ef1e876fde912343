"""A file of samples where results are needed, and the other way round, is said to be what it is."""

import json

import pytest

SAMPLE = {"uid": "1", "kind": "tig", "image_model": "mine", "images": {"output": "1.png"}, "texts": {"prompt": "a cat"}}
VERDICT = {"vieval": 2, "uid": "1", "kind": "tig", "scores": {}, "status": "ok", "provenance": {}}


@pytest.mark.parametrize("command", ["rank", "compare", "report"])
def test_samples_are_no_results(command, tmp_path, vieval):
    file = tmp_path / "samples.jsonl"
    file.write_text(json.dumps(SAMPLE) + "\n")
    line = vieval(command, file, *(["--out", str(tmp_path / "out")] if command == "report" else []), code=1).err.strip()
    assert line == (
        f"vieval: {file}: line 1 is no result of VIEval ('filtered_resps' is missing); these are samples: judge them with "
        "`vieval score`"
    )


def test_verdicts_are_no_samples(tmp_path, vieval):
    file = tmp_path / "verdicts.jsonl"
    file.write_text(json.dumps(VERDICT) + "\n")
    printed = vieval("label", file, "--out", tmp_path / "label.html", code=1).err
    assert "a verdict, where a sample is needed; give the file of samples that was judged" in printed

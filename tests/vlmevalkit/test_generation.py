"""The second role of a judge: it scores what a generator of the host made."""

import json

import pytest
from PIL import Image

pytestmark = pytest.mark.vlmevalkit


@pytest.fixture
def painted(tmp_path, monkeypatch):
    """A generator of the host that paints a square and answers with the path of its file; the paths."""
    import vlmeval.vlm

    files = []

    class Painter:
        is_api = False

        def set_dump_image(self, dump_image):
            pass

        def generate(self, message, dataset=None):
            path = tmp_path / f"painted-{len(files)}.png"
            Image.new("RGB", (64, 64), (50 * len(files), 0, 99)).save(path)
            files.append(path)
            return str(path)

    monkeypatch.setattr(vlmeval.vlm, "Painter", Painter, raising=False)
    return files


def config(tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"square {n}"}) + "\n" for n in range(4)))
    data = {"VIEval_T2I": {"class": "GeneratedImages", "dataset": "VIEval_T2I", "prompts": str(prompts)}}
    path = tmp_path / "generate.json"
    path.write_text(json.dumps({"model": {"painter": {"class": "Painter"}}, "data": data}))
    return ("--config", path)


def test_what_was_made_is_judged_and_what_was_not_is_counted(run, painted, server, tmp_path):
    options = {"backbones": {"judge": {"model": "fake", "base_url": server.base_url}}}
    made = run(*config(tmp_path), limit=None, options=options)
    assert made.code == 0
    assert len(painted) == 4
    assert (made.table["SC_count"], made.table["no_image"]) == (4, 0)
    assert len(made.only("*_verdicts_*.jsonl").read_text().splitlines()) == 4
    painted[2].unlink()
    again = run(*config(tmp_path), "--reuse", limit=None, options=options)
    assert (again.table["SC_count"], again.table["no_image"]) == (3, 1)


def test_without_a_judge_a_line_says_how_to_name_one(run, painted, tmp_path):
    made = run(*config(tmp_path), limit=None)
    assert made.code == 1
    assert "pass --judge NAME --judge-base-url URL" in made.line

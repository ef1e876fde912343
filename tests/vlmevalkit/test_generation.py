"""The second role of a judge: it scores what a generator of the host made."""

import json
from pathlib import Path

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

        def __init__(self, out_img_dir="", answers=()):
            self.out_img_dir, self.answers = str(out_img_dir or tmp_path / "painted"), [*answers]

        def set_dump_image(self, dump_image):
            pass

        def generate(self, message, dataset=None):
            if self.answers:
                return self.answers.pop(0)
            path = Path(self.out_img_dir) / f"{dataset}_images" / f"painted-{len(files)}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (64, 64), (50 * len(files), 0, 99)).save(path)
            files.append(path)
            return str(path)

    monkeypatch.setattr(vlmeval.vlm, "Painter", Painter, raising=False)
    return files


def config(tmp_path, **arguments):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"square {n}"}) + "\n" for n in range(4)))
    data = {"VIEval_T2I": {"class": "GeneratedImages", "dataset": "VIEval_T2I", "prompts": str(prompts)}}
    path = tmp_path / "generate.json"
    path.write_text(json.dumps({"model": {"painter": {"class": "Painter", **arguments}}, "data": data}))
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


def test_where_bagel_saves_by_default_need_not_be_named_to_evaluate_alone(
    run, painted, server, tmp_path, monkeypatch, host
):
    if host == "nvidia":
        pytest.skip("nvidia-vlmeval has no --mode eval")
    monkeypatch.chdir(tmp_path)
    options = {"backbones": {"judge": {"model": "fake", "base_url": server.base_url}}}
    arguments = config(tmp_path, out_img_dir="./output_image/test_bagel/")
    assert run(*arguments, "--mode", "infer", limit=None, options=options).code == 0
    made = run(*arguments, "--mode", "eval", limit=None, options=options)
    assert (made.table["SC_count"], made.table["no_image"]) == (4, 0)


def test_a_prediction_names_no_file_that_it_likes(run, painted, server, tmp_path, capsys):
    secret = tmp_path / "secret.png"
    Image.new("RGB", (64, 64)).save(secret)
    (tmp_path / "painted").mkdir()
    (tmp_path / "painted" / "link.png").symlink_to(secret)
    answers = [str(secret), str(tmp_path / "painted" / "link.png"), "/etc/passwd", "I cannot draw that. " * 250]
    options = {"backbones": {"judge": {"model": "fake", "base_url": server.base_url}}}
    asked = server.stats()["requests"]
    made = run(*config(tmp_path, answers=answers), limit=None, options=options)
    assert (made.table["SC_count"], made.table["no_image"]) == (0, 4)
    assert server.stats()["requests"] == asked
    assert "no_image 4, the first" in (said := capsys.readouterr().err)
    assert "generate.trusted" in said
    trusting = {**options, "generate": {"trusted": [str(secret)]}}
    again = run(*config(tmp_path, answers=answers), out="again", limit=None, options=trusting)
    assert (again.table["SC_count"], again.table["no_image"]) == (2, 2)


def test_without_a_judge_a_line_says_how_to_name_one(run, painted, tmp_path):
    made = run(*config(tmp_path), limit=None)
    assert made.code == 1
    assert "pass --judge NAME --judge-base-url URL" in made.line

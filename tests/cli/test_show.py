"""`vieval show`: one verdict as a tree and as a page."""

import html
import json

import pytest
from PIL import Image

from tests import t2i_eval_run
from tests.fake_server import FakeServer, named
from tests.judge_files import LEGIBILITY
from tests.t2i_eval_run import UNSTORED, provenance
from tests.verdict_files import copied, provenance_of
from vieval_plugin import Backbone, Judge, evaluate
from vieval_plugin.judges import registry
from vieval_plugin.readers.samples import read_samples
from vieval_plugin.run.verdict_lines import run_file, write_verdicts

run = t2i_eval_run.run  # a fixture


def test_show_prints_a_verdict_as_a_tree(run, vieval):
    lines = vieval("show", run / "verdicts.jsonl", "s0").out.splitlines()
    aspects = ("appearance", "intrinsic", "relationship", "O")
    scores = ", ".join(f"{aspect} 0.700" for aspect in aspects)
    assert lines[0] == f"own/tig/m/s0 (0.png): {scores} [ok]"
    assert "    t2i_eval individual by scripted" in lines
    at = lines.index("    3 What is the color of the cat?")
    steps = [line.strip().split(" ")[0] for line in lines[at + 1 : at + 7 : 2]]
    assert steps == ["answer", "explanation", "score"]
    assert lines[at + 5] == "      score [ok] -> 7"


def test_a_judge_that_asks_no_model_is_named_once(tmp_path, monkeypatch, vieval):
    monkeypatch.chdir(tmp_path)
    Image.effect_noise((64, 64), 50).save("a.png")
    vieval("score a.png --prompt cat --judge sharpness --out v.jsonl")
    lines = vieval("show v.jsonl a").out.splitlines()
    assert "    sharpness" in lines


def test_show_writes_a_page_in_which_no_word_is_markup(run, tmp_path, vieval):
    page = tmp_path / "page.html"
    vieval("show", run / "verdicts.jsonl", "m/s0", "--html", page)
    written = page.read_text()
    assert "<b>cat</b>" not in written
    assert "&lt;b&gt;cat&lt;/b&gt;" in written
    [sample, *_] = read_samples(run / "samples.jsonl")
    prompt = html.escape(sample.sample.texts["prompt"])
    assert f'<span class="role">prompt</span> <span dir="auto">{prompt}<' in written
    assert "default-src 'none'" in html.unescape(written)
    # each question's first turn shows the picture, and so does the extraction
    assert written.count("<img ") == 1 + 2 + 5 + 1


def test_of_two_judges_verdicts_on_a_sample_one_is_named(run, tmp_path, vieval):
    def doubled(rows):
        other = rows.replace('"run": "', '"run": "x')
        return rows + other.replace('"judge": "t2i_eval"', '"judge": "cigeval"')

    both = copied(run / "verdicts.jsonl", tmp_path / "both.jsonl", doubled)
    document = json.loads(run_file(both).read_text())
    [(name, of_run)] = document["runs"].items()
    other = {**of_run["provenance"], "judge": "cigeval"}
    document["runs"][f"x{name}"] = {"provenance": other}
    run_file(both).write_text(json.dumps(document))
    said = vieval("show", both, "s0", code=1).err
    line = "2 verdicts match this sample (t2i_eval, cigeval); choose one with --judge"
    assert line in said
    vieval("show", both, "s0", "--judge", "t2i_eval")


def test_a_page_of_vqascore_shows_its_question(run, tmp_path, vieval):
    samples = [row.sample for row in read_samples(run / "samples.jsonl")]
    judged = {"judge": "vqascore", "options": UNSTORED}
    with FakeServer() as server:
        backbone = Backbone(model="m", base_url=server.base_url)
        verdicts = evaluate(samples, backbone=backbone, **judged)
    path = tmp_path / "v.jsonl"
    page = tmp_path / "v.html"
    write_verdicts(path, samples, verdicts, provenance("vqascore", backbone))
    vieval("show", path, "s1", "--html", page)
    assert "a lonely tree" in page.read_text()


# A judge in one file, and what is said once the file is gone.


@pytest.fixture
def judged(tmp_path, samples_file, score):
    """The judge's file, and verdicts of it and of VIEScore; the judge is then forgotten."""
    path = tmp_path / "legibility.yaml"
    path.write_text(LEGIBILITY)
    judges = ("--judge", path, "--judge", "viescore")
    with FakeServer() as server:
        code, rows, *_ = score(samples_file, *judges, *named(server))
    assert code == 0
    del registry.judges()["legibility"]
    return path, rows


def test_it_is_scored_ranked_and_shown(judged, tmp_path, vieval):
    path, rows = judged
    verdicts = tmp_path / "verdicts.jsonl"
    own = [row for row in rows if provenance_of(verdicts, row)["judge"] == "legibility"]
    assert len(own) == len(rows) / 2 == 6
    assert all(set(row["scores"]) == {"PQ"} for row in own)
    assert provenance_of(verdicts, own[0])["options"]["judge_files"] == [str(path)]
    page = tmp_path / "page.html"
    name = f"{own[0]['image_model']}/{own[0]['uid']}"
    show = ["show", verdicts, name, "--judge", "legibility"]
    assert "legibility by" in vieval(*show).out
    vieval(*show, "--html", page)
    assert "how legible the text in the picture is" in page.read_text()
    vieval("rank", verdicts)


def test_without_its_file_one_line_says_what_is_missing(judged, tmp_path, vieval):
    path, rows = judged
    path.unlink()
    verdicts, page = tmp_path / "verdicts.jsonl", tmp_path / "page.html"
    vieval("rank", verdicts)
    name = f"{rows[0]['image_model']}/{rows[0]['uid']}"
    show = ["show", verdicts, name, "--judge", "legibility", "--html", page]
    line = vieval(*show, code=1).err.splitlines()[-1]
    assert line.startswith("vieval: ")
    assert f"judge files in the results: {path}); put its file into the folder" in line
    path.write_text(LEGIBILITY.replace("legible", "clear"))
    assert "restore that pack" in vieval(*show, code=1).err


def test_python_names_the_file(tmp_path):
    file = tmp_path / "legibility.yaml"
    file.write_text(LEGIBILITY)
    options = {"store": {"use": False}}
    with Judge(str(file), model="m", base_url="http://x", options=options) as judge:
        assert judge.aspects == ("PQ",)
        again = judge.__reduce__()[0]()
        assert again.aspects == ("PQ",)
        again.close()

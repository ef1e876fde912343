"""A judge in one file: scored, reported, shown, and what is said once the file is gone."""

import pytest

from tests.fake_server import FakeServer, named
from tests.judge_files import LEGIBILITY
from tests.verdict_files import provenance_of
from vieval_plugin import Judge
from vieval_plugin.judges import registry


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

"""`vieval demo`: posters whose errors are known, ranked by what can be read of them."""

import importlib.metadata
import importlib.util
import inspect
import itertools
import re
from pathlib import Path

import PIL.Image
import pytest

from tests.extras import needs
from tests.stored_results import csv_rows
from vieval_plugin.benchmarks import in_folder
from vieval_plugin.generation.posters import SCENES, make


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("skimage")
    folder = tmp_path_factory.mktemp("demo") / "posters"
    make(folder, 0)
    return folder


def test_each_prompt_has_a_poster_of_each_generator_and_a_line_of_truth(folder):
    prompts, truth = csv_rows(folder / "prompts.csv"), csv_rows(folder / "truth.csv")
    assert len(prompts) == 12 == len({row["prompt"] for row in prompts})
    assert all(re.search(r'"[A-Z ]+"$', row["prompt"]) for row in prompts)
    both = itertools.product((row["uid"] for row in prompts), ("new", "old"))
    assert [(row["uid"], row["generator"]) for row in truth] == list(both)
    for row in truth:
        with PIL.Image.open(folder / row["generator"] / f"{row['uid']}.png") as picture:
            assert picture.size == (512, 640)


def test_one_generator_makes_no_errors_and_the_other_those_that_are_named(folder):
    rows = csv_rows(folder / "prompts.csv")
    titles = {row["uid"]: re.search('"(.*)"', row["prompt"])[1] for row in rows}
    truth = csv_rows(folder / "truth.csv")
    by_name = lambda name: [row for row in truth if row["generator"] == name]
    careful, careless = by_name("new"), by_name("old")
    found = {(row["title_is"], row["photograph_is"]) for row in careful}
    assert found == {("right", "sharp")}
    for row in truth:
        is_right = row["title"] == titles[row["uid"]]
        assert is_right == (row["title_is"] == "right")
        assert bool(row["title"]) == (row["title_is"] != "lost")
    found = sorted(row["title_is"] for row in careless)
    assert found == ["lost"] * 3 + ["misspelt"] * 5 + ["right"] * 4
    assert sum(row["photograph_is"] == "blurred" for row in careless) == 6
    for row in careless:
        new, old = (folder / name / f"{row['uid']}.png" for name in ("new", "old"))
        whole = (row["title_is"], row["photograph_is"]) == ("right", "sharp")
        assert (new.read_bytes() == old.read_bytes()) == whole


def test_the_truth_is_a_benchmark_that_nobody_rated(folder):
    benchmark = in_folder.read_benchmark(folder)
    samples = benchmark.load(folder, "all")
    known = {(one.id.image_model, one.id.uid): one.ratings for one in samples}
    assert (benchmark.name, benchmark.synthetic) == ("posters", True)
    assert len(known) == 24
    for row in csv_rows(folder / "truth.csv"):
        ratings = known[row["generator"], row["uid"]]
        assert ratings["PQ"] == ((0 if row["photograph_is"] == "blurred" else 1),)
        is_certain = {"right": ratings["SC"] == (1,), "lost": ratings["SC"] == (0,)}
        assert is_certain.get(row["title_is"], 0.5 < ratings["SC"][0] < 0.9)


def test_the_same_seed_makes_the_same_once_and_another_does_not(folder, tmp_path):
    truth = (folder / "truth.csv").read_bytes()
    assert not make(folder, 0)
    (again := tmp_path / "again").mkdir()
    assert make(again, 0)  # into an empty folder
    assert (again / "truth.csv").read_bytes() == truth
    (again / "truth.csv").unlink()
    (again / "new" / "p03.png").write_bytes(b"interrupted")
    assert make(again, 0)
    places = (place / "new" / "p03.png" for place in (again, folder))
    assert len({place.read_bytes() for place in places}) == 1
    assert make(again, 1)
    assert (again / "truth.csv").read_bytes() != truth


@pytest.mark.parametrize("out", ["others", "file", "/proc/x"])
def test_a_folder_that_cannot_be_filled_is_one_line(out, tmp_path, vieval):
    pytest.importorskip("skimage")
    (tmp_path / "others" / "new").mkdir(parents=True)
    (tmp_path / "file").touch()
    error = vieval("demo", "--out", tmp_path / out, code=1).err
    assert re.fullmatch("vieval: .*(name|choose) another (folder with )?--out\n", error)


@pytest.mark.parametrize("name", sorted({scene.photograph for scene in SCENES}))
def test_its_photographs_lie_in_the_package_and_are_free(name):
    data = pytest.importorskip("skimage.data")
    text = " ".join(inspect.getdoc(getattr(data, name)).split())
    assert re.search("CC0|Creative Commons CC0|public domain", text)
    licence = next(scene.licence for scene in SCENES if scene.photograph == name)
    assert licence.split(",")[0] in text
    packaged = {str(file) for file in importlib.metadata.files("scikit-image")}
    assert packaged & {f"skimage/data/{name}.png", f"skimage/data/{name}.jpg"}


def test_without_a_text_reader_it_ranks_by_sharpness(tmp_path, monkeypatch, vieval):
    pytest.importorskip("skimage")
    find = importlib.util.find_spec
    hidden = lambda name: None if name == "rapidocr" else find(name)
    monkeypatch.setattr("importlib.util.find_spec", hidden)
    out = vieval("demo", "--out", tmp_path / "demo").out
    assert 'ranked by sharpness;\nto read the titles, run pip install ".[text]"' in out
    assert "sharpness finds new's images sharper than old's." in out
    assert (tmp_path / "demo" / "rank.html").is_file()


@needs("rapidocr", "skimage")
def test_the_generator_that_spells_is_better(tmp_path, monkeypatch, vieval):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.chdir(tmp_path)
    out = vieval("demo", "--open").out
    assert "seed 0" in out
    command = re.search(r"^\$ vieval (rank .*)$", out, re.MULTILINE)[1]
    assert "\ntext_rendering rates new's images better than old's.\n" in out
    assert opened == [(tmp_path / "demo" / "rank.html").as_uri()]
    assert vieval(command).out.splitlines()[0] in out
    assert "found 12 posters" in vieval("demo").out
    readme = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")
    section = readme.split("\n## Score my images\n")[1]
    scored = re.search(r"^vieval (score demo/.*)\\\n +(.*)$", section, re.MULTILINE)
    said = vieval(" ".join(scored.groups())).out
    [found] = re.findall(r"\bSC\b\D*(\d\.\d\d)\b", said)
    assert f"from 0 to 1 ({found})" in readme


def test_a_poster_that_cannot_be_made_is_one_line(tmp_path, monkeypatch, vieval):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = vieval("demo", "--out", tmp_path / "demo", code=1).err
    assert 'pip install ".[metrics]"' in said
    assert not (tmp_path / "demo").exists()

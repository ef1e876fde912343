"""Numbers in files: plain digits or an error of one line, never another number."""

import json
import math
from shlex import split

import pytest

from tests.refusals import refusal
from vieval_plugin.benchmarks import imagenhub
from vieval_plugin.benchmarks.imagenhub.ratings import read_ratings as read_imagenhub
from vieval_plugin.benchmarks.imagenhub.tasks import ratings_folder
from vieval_plugin.benchmarks.loading.ratings import COLUMNS, read_ratings
from vieval_plugin.generation.precomputed_images import PrecomputedImages
from vieval_plugin.readers.rows import Row, decimal, rating, read_table
from vieval_plugin.readers.samples import read_samples
from vieval_plugin.report.printed_cells import compare_with_printed
from vieval_plugin.results.documents import read_record

# which Python's own `float` reads, most of them, and a person wrote by mistake
ODD = [*split("0_1 ٠.٥ ０.５ ½ NaN -inf Infinity 1e999 0x1 1,0 0.5. +-1"), ""]
PLAIN = {"0": 0.0, " 1 ": 1.0, "0.25": 0.25, ".5": 0.5, "1.": 1.0, "5e-1": 0.5}
PLAIN |= {"+1": 1.0, "-0": 0.0, "-0.0": 0.0}
PRINTED = "table,task,image_model,judge,statistic,aspect,printed,reproducible,why_not"
DRAWS = ['"1_0"', '"x"', "1.5", "-1", "true", "[1]", "NaN", '"٣"']


def labels(path, value, header=COLUMNS):
    path.write_text(f"{','.join(header)}\nb,p,1,m,0,me,SC,{value}\n", encoding="utf-8")
    return [path]


@pytest.mark.parametrize("text", ODD)
def test_a_label_that_is_no_plain_number_is_refused_with_its_line(tmp_path, text):
    assert not math.isfinite(decimal(text))
    if not text or "," in text:
        return
    line = refusal(read_ratings, labels(tmp_path / "labels.csv", text))
    assert "labels.csv: line 2: value must be a rating from 0 to 1" in line
    assert json.dumps(text) in line


@pytest.mark.parametrize(("text", "value"), PLAIN.items())
def test_a_label_is_read_and_zero_has_no_sign(tmp_path, text, value):
    assert decimal(text) == value
    (aspects,) = read_ratings(labels(tmp_path / "labels.csv", text)).scores.values()
    assert str(aspects["SC"]["me"]) == str(value)


def test_zero_has_no_sign_in_json_either():
    assert str(rating(-0.0, 0, 1, "here")) == "0.0"
    assert str(Row("here", {"x": json.loads("-0.0")}).rating("x", 0, 1)) == "0.0"


@pytest.mark.parametrize("name", ["value", "uid", "rater"])
def test_a_second_column_of_a_name_that_is_needed_is_refused(tmp_path, name):
    path = tmp_path / "labels.csv"
    path.write_text(f"{','.join(COLUMNS)},{name}\nb,p,1,m,0,me,SC,1,0\n")
    line = refusal(read_ratings, [path])
    assert f"labels.csv: two columns are named '{name}'; rename or remove one" in line


def test_columns_that_nobody_needs_may_share_a_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,,\n1,2,3\n")
    assert read_table(path, ["a"], "")[0].text("a") == "1"


def test_ratings_of_imagenhub(tmp_path):
    info = imagenhub.TASKS["tig"]
    folder = ratings_folder(tmp_path, "tig")
    folder.mkdir(parents=True)

    def write(header, cell, uid="1"):
        for name in info.ratings_files:
            rows = (header, [uid, *[cell] * (len(header) - 1)])
            text = "".join("\t".join(row) + "\n" for row in rows)
            (folder / name).write_text(text, encoding="utf-8")

    header = ["uid", *info.image_models]
    write(header, "[-0.0, 1]", "²3")  # a digit that is none to `int`
    assert "-0.0" not in str(read_imagenhub(tmp_path, "tig"))
    write([*header, info.image_models[0]], "[1, 1]")
    line = refusal(read_imagenhub, tmp_path, "tig")
    assert f"two columns are named {info.image_models[0]!r}" in line
    for cell in ("[1_0, 1]", "[NaN, 1]", "[Infinity, 1]", '["1", 1]', "[٠, 1]"):
        write(header, cell)
        line = refusal(read_imagenhub, tmp_path, "tig")
        assert "with values 0, 0.5 or 1" in line


@pytest.mark.parametrize("text", ["0_1", "nan", "٠.٥", "", "x"])
def test_a_printed_number_is_a_plain_one(tmp_path, text):
    path = tmp_path / "expected.csv"
    path.write_text(f"{PRINTED}\nt,t,m,j,rho,SC,{text},yes,\n")
    line = refusal(compare_with_printed, path, {})
    assert "expected.csv: line 2: printed must be a number" in line
    path.write_text(f"{PRINTED},printed\nt,t,m,j,rho,SC,1,yes,,2\n")
    assert "two columns are named 'printed'" in refusal(compare_with_printed, path, {})
    path.write_bytes(f"{PRINTED}\nt,t,m,j,rho,SC,1,yes,\xff\n".encode("latin-1"))
    line = refusal(compare_with_printed, path, {})
    assert "expected.csv: must be UTF-8" in line


@pytest.mark.parametrize("draw", DRAWS)
def test_a_draw_is_a_whole_number(tmp_path, draw):
    path = tmp_path / "made.jsonl"
    path.write_text(f'{{"image": "a.png", "uid": "u", "draw": {draw}}}\n')
    line = refusal(PrecomputedImages, path)
    assert "made.jsonl: line 1: `draw` must be a non-negative integer" in line


@pytest.mark.parametrize("draw", ["1_0", "٣", "²", "-1", "1.0"])
def test_a_draw_of_a_table_is_a_whole_number(tmp_path, draw):
    text = f"uid,kind,output,prompt,draw\n1,tig,a.png,x,{draw}\n"
    (tmp_path / "s.csv").write_text(text)
    [row] = [row for row in read_samples(tmp_path / "s.csv") if row.verdict]
    assert "`draw` must be a non-negative integer" in row.verdict.reason


@pytest.mark.parametrize("value", ['"0_1"', '"0.5"', "true", "[1]", "Infinity"])
def test_ratings_that_travel_with_results_are_numbers(value):
    known = {"benchmark": "b", "part": "p", "image_model": "m", "uid": "1"}
    target = {"vieval": 2, "id": known, "kind": "tig"}
    target |= {"group": "g", "place": [], "tags": []}
    document = json.dumps(target)[:-1] + f', "ratings": {{"SC": [{value}]}}}}'
    response = json.dumps({"vieval": 2, "id": target["id"], "verdict": {}})
    with pytest.raises(ValueError, match="a rating must be a finite number"):
        read_record(response, document)

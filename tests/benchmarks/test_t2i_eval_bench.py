"""T2I-Eval-Bench as samples, what is said when its files are wrong, and what preparing it makes."""

import json
import math
import re

import pytest

from tests import pairs
from tests.extras import unpacking
from vieval_plugin import images
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.benchmarks.t2i_eval_bench import BENCHMARK
from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.judges.t2i_eval.reading import given_extraction
from vieval_plugin.records import Provenance, response_json, target_json
from vieval_plugin.results.documents import read_record

BENCH = "t2i-eval-bench.json"


@pytest.fixture
def folder(tmp_path):
    return pairs.write(tmp_path, 3)


def samples(folder):
    return BENCHMARK.load(folder.parent, "tig")


def prepare(folder):
    return BENCHMARK.prepare(folder.parent, Preparing())


def edit(folder, name, change):
    """Changes a file's document in place."""
    path = folder / name
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("absent", [None, "N/A"])
def test_a_score_that_was_not_given_is_nan_in_a_result_too(folder, absent):
    def drop(rows):
        rows[0]["overall"]["overall"]["manual_score"][1] = absent
        rows[0]["overall"]["relationship"] = None
        rows[0]["overall"]["intrinsic"]["manual_score"] = None

    edit(folder, "scores.json", drop)
    sample = samples(folder)[0]
    assert [math.isnan(value) for value in sample.ratings["O"]] == [False, True, False]
    for aspect in ("relationship", "intrinsic"):
        assert all(map(math.isnan, sample.ratings[aspect]))
    target = target_json(sample)
    assert "NaN" not in target
    source = Provenance("j", ("s",), ("O",))
    response = response_json(sample.id, Verdict({}, Status.OK), source)
    record = read_record(response, target)
    assert repr(record.ratings) == repr(dict(sample.ratings))


@unpacking
def test_preparing_unpacks_the_images_once_and_says_what_there_is(folder, vieval):
    told = vieval("prepare", "t2i_eval_bench", "--root", folder.parent).out.splitlines()
    said = "t2i_eval_bench/tig: ready, 3 samples (the published set has 301)"
    assert told[-1] == said
    found = {images.decode(s.images["output"]).size for s in samples(folder)}
    assert found == {(16, 12)}
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["images", "images.tar.gz", "scores.json", BENCH]
    (folder / "images.tar.gz").write_bytes(b"not needed any more")
    assert prepare(folder).complete


@unpacking
def test_preparing_says_what_is_missing_a_line_each(folder):
    (folder / "images.tar.gz").write_bytes(pairs.archive({"../0.jpg": b"x"}))
    report = prepare(folder)
    assert not report.complete
    said = "images.tar.gz: '../0.jpg' is outside the folder; download it again"
    assert said in report.lines[0]
    said = "images: 4 of 4 images missing (first: made/0.jpg); put t2i-eval-bench.json"
    assert said in report.lines[1]
    (folder / "images.tar.gz").unlink()
    (folder / "scores.json").unlink()
    [line] = prepare(folder).lines
    assert re.search(
        r"scores.json: no such file; put .*DataHammer/T2I-Eval-Bench on the Hugging Face Hub into the benchmark folder, then run `vieval prepare",
        line,
    )


@unpacking
def test_what_is_missing_in_a_folder_of_images_is_added(folder):
    prepare(folder)
    kept = folder / "images" / "made" / "0.jpg"
    kept.with_name("1.jpg").unlink()
    assert prepare(folder).complete
    assert kept.with_name("1.jpg").is_file()


def test_t2i_eval_can_take_the_datasets_own_questions(folder):
    questions = {"intrinsic_questions": {"cup": ["Is it red?"]}}
    edit(folder, BENCH, lambda rows: rows[0].update(questions))
    taken = given_extraction(json.dumps(samples(folder)[0].annotations["extraction"]))
    assert [(q.kind, q.text, q.entities) for q in taken.questions] == [
        ("appearance", "Does the cup look real?", ("cup",)),
        ("intrinsic", "Is it red?", ("cup",)),
        ("relationship", "Where is the cup?", ()),
    ]

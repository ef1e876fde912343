"""Results on samples that a judge was trained on are marked by its training record."""

import json

import pytest

from tests.refusals import refuses
from tests.runs import run_of
from vieval_plugin.report.tables import trained_on_tables


def run(label, options):
    rows = [
        ("tie", "m", uid, {"O": 0.5}, {}, {"group": f"scene/{uid[0]}"})
        for uid in ("a1", "a2", "b1", "c1")
    ]
    return run_of(label, rows, provenance={"config_hash": label, "options": options})


def record(folder, uids):
    folder.mkdir()
    (folder / "training_record.json").write_text(json.dumps({"uids": uids}))
    return folder


def test_a_scorer_that_the_options_name_is_marked_by_its_own_training_record(tmp_path):
    learnt = record(tmp_path / "learnt", ["scene/a", "b/tie/m/c1"])
    scorers = {"scorers": {"adiee": {"model": str(learnt)}}}
    [table] = trained_on_tables([run("knew", scorers), run("did not", {})], [])
    assert table.rows == (("knew", "3", "4"),)
    files = {"judge_files": [str(learnt / "manifest.yaml")]}
    [table] = trained_on_tables([run("in a file", files)], [])
    assert table.rows == (("in a file", "3", "4"),)


def test_a_training_record_that_is_given_marks_every_judge(tmp_path):
    runs = [run("one", {}), run("other", {})]
    assert trained_on_tables(runs, []) == []
    [table] = trained_on_tables(runs, [record(tmp_path / "tuned", ["scene/b"])])
    assert table.rows == (("one", "1", "4"), ("other", "1", "4"))
    assert trained_on_tables(runs, [record(tmp_path / "elsewhere", ["scene/z"])]) == []


@pytest.mark.parametrize("uids", ["scene/a", [1], None])
def test_a_broken_training_record_is_one_line(tmp_path, uids):
    tuned = record(tmp_path / "tuned", uids)
    refuses(
        "not a model's training record", trained_on_tables, [run("one", {})], [tuned]
    )


def test_a_training_record_that_is_not_there_is_one_line(tmp_path):
    refuses(
        "create one with `vieval train`",
        trained_on_tables,
        [run("one", {})],
        [tmp_path],
    )

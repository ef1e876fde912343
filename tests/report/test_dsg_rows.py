"""The correlations printed in the README of DSG, from its published answers."""

import json
import shutil
from itertools import product
from shlex import split

import pytest

from tests import in_process
from tests.refusals import refusal
from tests.stored_results import csv_rows
from vieval_plugin.cli import main
from vieval_plugin.judges.question_answering import titles
from vieval_plugin.results import replay
from vieval_plugin.results.published.files import published_files

pytestmark = pytest.mark.slow

NAMES = {"mplug-large": "mplug", "instruct-blip": "instructblip"}
TASK = "tifa160_question_answering"
# the five images without a question, and the samples with an answer that is neither yes nor no
WITHOUT_SCORE = {"mplug": 7, "instructblip": 24}


@pytest.fixture(scope="module")
def home(shared_data, tmp_path_factory):
    """A data folder with TIFA160."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "tifa160").mkdir()
    for file in ("tifa160.json", "dsg_tifa160_anns.csv"):
        shutil.copy(shared_data / "t2v_metrics" / file, folder / "tifa160")
    return folder


@pytest.fixture(scope="module")
def replay_answers(shared_data, home):
    """Replays a VQA model's answers under options."""

    def run(name, tasks, out, options=None):
        model = split(
            f"--model vieval_replay --model_args name={name},logs={shared_data}"
        )
        arguments = (*model, "--tasks", tasks, "--output_path", out, "--log_samples")
        in_process.run(*arguments, data=home, options=options)

    return run


@pytest.fixture(scope="module")
def cells(replay_answers, home, tmp_path_factory):
    """Correlations by policy, VQA model, questions and statistic; and the scored samples."""
    out = tmp_path_factory.mktemp("out")
    plain = out / "plain.yaml"
    plain.write_text("judges: {question_answering: {dependencies: false}}\n")
    for name in NAMES.values():
        replay_answers(name, f"{TASK},variant_{TASK}_vq2a", out / name)
        replay_answers(name, TASK, out / f"{name} plain", plain)
    found = {}
    for policy, name in product(("as_recorded", "drop"), NAMES.values()):
        options = out / f"{policy}.yaml"
        options.write_text(f"statistics: {{failures: {policy}, draws: 20}}\n")
        report = out / f"report {policy} {name}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("VIEVAL_DATA", str(home))
            patch.setenv("VIEVAL_CONFIG", str(options))
            runs = [str(out / name), str(out / f"{name} plain")]
            assert main(["report", *runs, "--out", str(report)]) == 0
        [tifa160] = json.loads((report / "cells.json").read_text())
        for row in csv_rows(report / "tifa160_statistics.csv"):
            found[policy, row["judge"], "scored"] = int(row["scored"])
        for cell in tifa160["cells"]:
            found[policy, cell["judge"], cell["statistic"]] = cell["value"]
    return found


def label(name, questions):
    return f"{name} (setting {questions.replace('dependency', 'dependencies')})"


def test_all_six_rows_come_out_to_the_printed_digit(cells, shared_data):
    rows = csv_rows(shared_data / "expected" / "dsg.csv")
    assert len(rows) == 6
    for row in rows:
        judge = label(NAMES[row["vqa_model"]], row["questions"])
        for statistic in ("spearman", "kendall"):
            computed = cells["as_recorded", judge, statistic]
            assert f"{computed:.3f}" == row[statistic], (judge, statistic)
        assert cells["as_recorded", judge, "scored"] == 800


def test_without_images_that_have_no_question_the_numbers_stand_beside(cells):
    printed = {"mplug": "0.454", "instructblip": "0.401"}
    for name, count in WITHOUT_SCORE.items():
        judge = label(name, "dsg")
        assert cells["drop", judge, "scored"] == 800 - count
        assert f"{cells['drop', judge, 'spearman']:.3f}" == printed[name]
    assert cells["drop", label("mplug", "vq2a"), "scored"] == 800


def test_five_images_are_left_out_by_a_list(replay_answers, home, tmp_path):
    document = json.loads((home / "tifa160" / "tifa160.json").read_text())
    uids = {row["text_id"] for row in document.values()}
    (tmp_path / "asked.txt").write_text("\n".join(uids - {"partiprompt_86"}))
    options = tmp_path / "asked.yaml"
    statistics = "{failures: as_recorded, draws: 20}"
    options.write_text(f"{{uids: asked.txt, statistics: {statistics}}}")
    replay_answers("mplug", TASK, tmp_path / "out", options)
    numbers = in_process.read(tmp_path / "out")[0]["results"][TASK]
    assert numbers["scored_count,none"] == 795
    assert f"{numbers['spearman_value,none']:.4f}" == "0.4567"
    assert f"{numbers['kendall_value,none']:.4f}" == "0.3750"


def test_a_recorded_verdict_has_its_questions_and_what_the_authors_count(shared_data):
    recording = replay.load(shared_data, "question_answering", "mplug", "dsg")
    recorded = recording.verdicts.values()
    verdicts = [several[0][0] for several in recorded]
    assert len(verdicts) == 800
    unasked = [verdict for verdict in verdicts if len(verdict.trace) == 1]
    assert {(v.status, v.reason, v.recorded["SC"]) for v in unasked} == {
        ("parse_failure", "the log has no question about this image's prompt", 0.0)
    }
    assert len(unasked) == 5
    unread = [v for v in verdicts if v.recorded and len(v.trace) > 1]
    found = [(v.scores, v.reason[:34]) for v in unread]
    assert found == [({}, "the answer is neither yes nor no; ")] * 2
    asked = [titles(verdict.trace).get(("answers", "3")) for verdict in verdicts]
    assert verdicts[asked.index("Are there two soccer balls?")].status == "ok"


def test_the_model_that_is_meant_is_named(shared_data):
    line = refusal(replay.load, shared_data, "question_answering", "x", "dsg")
    known = "set name= to one of: instructblip, mplug"
    assert f"no answers by 'x' to the dsg questions; {known}" in line
    recording = replay.load(shared_data, "question_answering", "mplug", "tifa")
    found = recording.lacks("tifa160", "all")
    assert "contains no readable verdicts by question_answering" in found


def test_the_files_that_prepare_fetches_are_those_that_were_replayed(shared_data):
    fetched = [file for file in published_files() if file.repository == "j-min/DSG"]
    assert len(fetched) == 5
    for file in fetched:
        path = shared_data / "dsg" / file.path.rpartition("/")[2]
        assert file.difference(path.read_bytes()) == ""

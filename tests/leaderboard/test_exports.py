"""Results in the forms of boards: valid by their schemas, with the numbers that a report has."""

import hashlib
import json

import jsonschema
import pytest
import yaml

from tests.benchmarks import folders
from tests.brightness import by_brightness
from tests.builders import a_verdict_file, some_scores
from tests.fake_server import FakeServer, named
from tests.leaderboard import cards
from tests.playing import prepared
from tests.stored_results import csv_rows

write = folders.write  # a fixture


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Verdicts of a judge on samples and on contests that people answered, and the data folder."""
    folder = tmp_path_factory.mktemp("measured")
    data = cards.ratings(folder / "data")
    samples = cards.card(folder / "samples", cards.samples(data)) / cards.FILE
    asked = cards.contests(data)
    contests = cards.card(folder / "contests", asked, "pairwise") / cards.FILE
    return samples, contests, data


@pytest.fixture
def schemas(shared_data):
    """Checks a document of a run, or of a sample, by the published schema."""
    folder = shared_data / "every_eval_ever"
    run, sample = (
        jsonschema.Draft7Validator(json.loads((folder / name).read_text()))
        for name in ("eval.schema.json", "instance_level_eval.schema.json")
    )
    return run.validate, sample.validate


@pytest.fixture
def exported(vieval, tmp_path, measured, schemas, monkeypatch):
    """Exports results, and gives each valid document with its valid samples."""
    monkeypatch.setenv("VIEVAL_DATA", str(measured[2]))
    validate_run, validate_sample = schemas

    def export(*results, folder=tmp_path / "evals"):
        flags = ("--to", "every-eval-ever", "--organization", "Test lab")
        vieval("export", *results, *flags, "--out", folder)
        documents = []
        for path in sorted(folder.rglob("*.json")):
            document = json.loads(path.read_text())
            validate_run(document)
            detailed = document["detailed_evaluation_results"]
            body = (folder / detailed["file_path"]).read_bytes()
            assert detailed["checksum"] == hashlib.sha256(body).hexdigest()
            samples = list(map(json.loads, body.splitlines()))
            assert detailed["total_rows"] == len(samples) > 0
            for sample in samples:
                validate_sample(sample)
                assert sample["evaluation_id"] == document["evaluation_id"]
            documents.append((document, samples))
        return documents

    return export


def numbers_of(folder):
    """The rows of `numbers.csv` that have a value, by what an exported result is called."""
    rows = [row for row in csv_rows(folder / "numbers.csv") if row["value"]]
    rows = [row for row in rows if row["role"] in ("judge", "generator")]
    return {(row["system"], _result_name(row)): row for row in rows}


def _result_name(row):
    breakdown = (row["breakdown"], row["breakdown_value"]) if row["breakdown"] else ()
    return "/".join((row["part"], row["aspect"], row["statistic"], *breakdown))


def test_a_judge_has_its_reports_numbers(exported, measured, vieval, tmp_path):
    [(document, samples)] = exported(measured[0])
    vieval("report", measured[0], "--out", tmp_path / "report")
    rows = numbers_of(tmp_path / "report").items()
    expected = {name: row for (_, name), row in rows if row["role"] == "judge"}
    results = {r["evaluation_result_id"]: r for r in document["evaluation_results"]}
    assert results.keys() == expected.keys()
    for name, result in results.items():
        row, details = expected[name], result["score_details"]
        assert details["score"] == pytest.approx(float(row["value"]), abs=1e-6)
        if row["low"]:
            interval = details["uncertainty"]["confidence_interval"]
            assert interval["lower"] == pytest.approx(float(row["low"]), abs=1e-6)
            assert interval["confidence_level"] == 0.95
        assert "llm_scoring" not in result["metric_config"]
    model = document["model_info"]
    assert (model["id"], model["developer"]) == (cards.MODEL, "maker")
    assert model["additional_details"]["prompt_pack_hash"]
    assert document["source_metadata"]["source_organization_name"] == "Test lab"
    # one reply in ten says nothing: the document counts it, and nobody could count a score of it
    counted = document["detailed_evaluation_results"]["additional_details"]
    assert counted == {"ok": "36", "parse_failure": "4"}
    assert not [sample for sample in samples if "error" in sample]
    assert len({sample["sample_id"] for sample in samples}) == 36
    answered = next(sample for sample in samples if "error" not in sample)
    assert answered["input"]["raw"] == "a red cube"
    assert len(answered["input"]["reference"]) == 3
    assert answered["evaluation_result_id"] in results
    assert answered["output"]["raw"]


def test_a_contest_is_right_where_the_judge_says_what_people_say(exported, measured):
    [(_, samples)] = exported(measured[1])
    assert {sample["evaluation"]["is_correct"] for sample in samples} == {True, False}
    for sample in samples:
        [answer] = [part["extracted_value"] for part in sample["answer_attribution"]]
        is_right = [answer] == sample["input"]["reference"]
        assert sample["evaluation"]["is_correct"] == is_right


def test_each_generator_is_a_model_whose_judge_is_named(exported, vieval, tmp_path):
    by = prepared("viescore").by(cards.MODEL)
    scores = {name: [{"O": s} for s in some_scores(12)] for name in ("new", "old")}
    file = a_verdict_file(tmp_path / "scores.jsonl", scores, source=by)
    documents = exported(file)
    vieval("rank", file, "--tables", tmp_path / "rank")
    expected = numbers_of(tmp_path / "rank")
    assert [document["model_info"]["id"] for document, _ in documents] == ["new", "old"]
    for document, samples in documents:
        [result] = document["evaluation_results"]
        row = expected[document["model_info"]["id"], result["evaluation_result_id"]]
        assert result["score_details"]["score"] == pytest.approx(float(row["value"]))
        scoring = result["metric_config"]["llm_scoring"]
        [judge] = scoring["judges"]
        assert judge["model_info"]["id"] == cards.MODEL
        assert judge["model_info"]["additional_details"]["judge"] == "viescore"
        assert scoring["input_prompt"].startswith("prompt pack viescore")
        assert len(samples) == 12


def test_a_second_export_replaces_the_first(exported, measured, tmp_path, monkeypatch):
    exported(measured[0])
    files = {path for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    [(document, _)] = exported(measured[0])
    assert document["retrieved_timestamp"] == "2000000000"
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == files


def test_the_hub_gets_a_file_a_model(measured, vieval, tmp_path, monkeypatch):
    monkeypatch.setenv("VIEVAL_DATA", str(measured[2]))
    flags = ("--to", "hub-eval-results", "--dataset", "lab/imagenhub")
    vieval("export", measured[0], *flags, "--out", tmp_path)
    [path] = tmp_path.glob("*/.eval_results/imagenhub_0shot.yaml")
    registered = yaml.safe_load((tmp_path / "eval.yaml").read_text())
    entries = yaml.safe_load(path.read_text())
    assert {entry["dataset"]["id"] for entry in entries} == {"lab/imagenhub"}
    assert registered["description"].startswith(
        "Agreement of image judges with people on ImagenHub. Source: Ku et al., "
    )
    tasks = {task["id"] for task in registered["tasks"]}
    assert {entry["dataset"]["task_id"] for entry in entries} == tasks
    assert all(-1 <= entry["value"] <= 1 for entry in entries)
    assert "95% interval" in entries[0]["notes"]


def test_the_hub_registers_only_what_has_values(vieval, tmp_path, write):
    ratings = {"PQ": ["rater1", "rater2", "rater3"]}
    signs = write(folders.SIGNS, folders.rating_rows(), ratings=ratings)
    out = tmp_path / "v.jsonl"
    with FakeServer(reply=by_brightness()) as server:
        vieval("score", "--benchmark", signs, "--out", out, *named(server))
    flags = ("--to", "hub-eval-results", "--dataset", "lab/signs", "--benchmark", signs)
    vieval("export", out, *flags, "--out", tmp_path / "hub")
    registered = yaml.safe_load((tmp_path / "hub" / "eval.yaml").read_text())
    assert [task["id"] for task in registered["tasks"]] == ["all_PQ"]
    description = "Agreement of image judges with people on Street signs."
    assert registered["description"] == description


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("--to", "every-eval-ever"), "accepts only results"),
        (("x.jsonl", "--to", "hub-eval-results"), "--dataset ORG/NAME must be passed together"),
        (("x.jsonl", "--to", "every-eval-ever", "--rebalance"), "accepts only results"),
    ],
)  # fmt: skip
def test_a_refused_export_is_a_line(arguments, advice, vieval, tmp_path):
    error = vieval("export", *arguments, "--out", tmp_path / "out", code=1).err
    assert advice in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()

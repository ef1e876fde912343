"""`vieval calibrate` and what is done with its file: from labels to a filtered data set, and
each refusal in a line.
"""

import itertools
import json
import re
from shlex import split

import numpy as np
import pytest

from tests.extras import needs
from tests.refusals import refusal
from tests.shard_runs import parquet, pyarrow, verdicts, write_parquet
from tests.stored_results import read_lines
from tests.verdict_files import runs_of
from vieval_plugin.api.judge import Judge
from vieval_plugin.cli import main
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.records import Provenance
from vieval_plugin.run.calibration import read_calibration
from vieval_plugin.run.verdict_lines import write_verdicts

pytestmark = needs("duckdb")
SHARPNESS = ("--judge", "sharpness")


@pytest.fixture
def judged(vieval, tmp_path, monkeypatch):
    """A folder of shards with verdicts on 240 images, and a function that writes people's
    ratings of so many of them.
    """
    (tmp_path / "vieval.yaml").write_text("statistics: {draws: 200}")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))
    data = write_parquet(tmp_path / "data", files=2, rows_each=120)
    vieval("score", data, *SHARPNESS, "--out", tmp_path / "out")
    scores = {row["uid"]: row["scores"]["PQ"] for row in verdicts(tmp_path / "out")}
    places = dict(
        zip(sorted(scores, key=scores.get), np.linspace(0, 1, len(scores)), strict=True)
    )

    def label(number, noise=0.1, kind=""):
        """People's rating of an image is its place among all by the judge's score, and noise."""
        rng = np.random.default_rng(number)
        ratings = {
            uid: np.clip(place + rng.normal(0, noise), 0, 1)
            for uid, place in places.items()
        }
        chosen = rng.choice(sorted(scores), number, replace=False)
        lines = [f"own,{kind},{uid},,,ann,PQ,{ratings[uid]:.3f}" for uid in chosen]
        header = "benchmark,part,uid,generator,draw,rater,aspect,value"
        (tmp_path / "labels.csv").write_text("\n".join([header, *lines]) + "\n")
        return (
            *split(
                f"calibrate {tmp_path}/out --human {tmp_path}/labels.csv "
                f"--out {tmp_path}/cal.json"
            ),
        )

    [kind] = {row["kind"] for row in verdicts(tmp_path / "out")}
    return lambda number, noise=0.1: label(number, noise, kind)


def test_from_labels_to_a_filtered_data_set(vieval, judged, tmp_path):
    cal = tmp_path / "cal.json"
    printed = vieval(*judged(200)).out
    assert re.match(
        r"PQ of sharpness \(sharpness\) is calibrated with 200 ratings: typical error 0\.\d\d "
        r"\(guessing the median: 0\.\d\d\) on new prompts, unknown on new generators\.\n",
        printed,
    )
    for line in (
        "Squared error on 200 held-out labels, calibrated minus the raw score: -",
        "Typical error on unlabelled generators: unknown",
    ):
        assert line in printed
    assert "seed 0, 200 resamples" in printed
    document = json.loads(cal.read_text())
    [(scores, ratings)] = document["knots"].values()
    kept = tmp_path / "kept"
    filtered = (*split(f"filter {tmp_path}/out --calibration {cal} --out {kept}"),)
    printed = vieval(*filtered, "--where", "PQ_calibrated > .6").out
    assert (
        "note: PQ_calibrated estimates people's ratings: calibrated with 200 ratings: typical error "
        "0."
    ) in printed
    expected = {
        row["uid"]: np.interp(row["scores"]["PQ"], scores, ratings)
        for row in verdicts(tmp_path / "out")
    }
    rows = [
        row
        for file in sorted(kept.rglob("*.parquet"))
        for row in parquet.read_table(file).to_pylist()
    ]
    found = {row["uid"]: row["PQ_calibrated"] for row in rows}
    assert found == {u: v for u, v in expected.items() if v > 0.6}
    [digest] = {row["calibration"] for row in rows}
    assert f", calibration {digest}\n" in printed


def test_a_refusal_says_how_to_go_on(judged, capsys, vieval, tmp_path, monkeypatch):
    """With so much noise some 40 labels are often too few."""
    monkeypatch.chdir(tmp_path)
    needed = {}
    for number in range(36, 46):
        code = main([*map(str, judged(number, noise=0.45))])
        *_, last = lines = capsys.readouterr().out.splitlines()
        found = re.search(
            r"^With about ([\d,]+) labels, the difference would be found",
            "\n".join(lines),
            re.MULTILINE,
        )
        if code and found:
            needed[number] = int(found[1])
            assert lines[0].startswith("Not calibrated: ")
            assert (
                f"--n {needed[number]} --human {tmp_path / 'labels.csv'} --out more.html`"
            ) in last
            command = last
    assert needed
    assert all(number < of_these <= 10 * number for number, of_these in needed.items())
    [_, *arguments] = re.search("`(.+)`", command)[1].split()
    assert "to label" in vieval(*arguments).out


def test_each_command_adds_the_calibrated_score(vieval, judged, tmp_path):
    shards = tmp_path / "shards"
    report = tmp_path / "report"
    vieval(*judged(100))
    calibration = ("--calibration", tmp_path / "cal.json")
    data = tmp_path / "data"
    note = "PQ_calibrated estimates people's ratings: calibrated with 100 ratings: typical error 0."
    path = data / "part-0.parquet"
    place = tmp_path / "v.jsonl"
    printed = vieval("score", path, *SHARPNESS, "--out", place, *calibration).out
    assert note in printed
    assert re.search(r"samples +PQ +PQ_calibrated", printed)
    rows = read_lines(tmp_path / "v.jsonl")
    assert all(row["scores"].keys() == {"PQ", "PQ_calibrated"} for row in rows)
    [run] = runs_of(tmp_path / "v.jsonl").values()
    name, sentence, digest = run["provenance"]["calibration"]
    assert (name, len(digest)) == ("PQ_calibrated", 16)
    assert sentence in note + printed
    path = data / "part-0.parquet"
    vieval("score", path, *SHARPNESS, "--out", tmp_path / "v.csv", *calibration)
    header, *_ = (tmp_path / "v.csv").read_text().splitlines()
    assert "PQ,PQ_calibrated,status" in header
    shown = vieval("score", data, *SHARPNESS, "--out", shards, *calibration).out
    assert note in shown
    by_uid = {row["uid"]: row["scores"] for row in verdicts(shards)}
    assert {row["uid"]: row["scores"] for row in rows}.items() <= by_uid.items()
    # the same folder is not gone on with without it
    said = vieval("score", data, *SHARPNESS, "--out", shards, code=1).err
    assert "calibration" in said
    with Judge(
        "sharpness",
        calibration=tmp_path / "cal.json",
        options={"store": {"use": False}},
    ) as judge:
        assert judge.aspects == ("PQ", "PQ_calibrated")
        image = parquet.read_table(data / "part-0.parquet").to_pylist()[0]["image"][
            "bytes"
        ]
        verdict = judge(
            [
                {
                    "kind": "tig",
                    "images": {"output": image},
                    "texts": {"prompt": "a thing 0"},
                }
            ]
        )
        assert dict(verdict[0].scores) == pytest.approx(by_uid["u0"])
        found = judge.score([image], "a thing", aspect="PQ_calibrated")
        assert found == (pytest.approx(by_uid["u0"]["PQ_calibrated"]))
        assert (
            "for task type tig, but some samples have type tie; label samples of that type"
            in refusal(
                judge,
                [
                    {
                        "kind": "tie",
                        "images": {"output": image, "source": image},
                        "texts": {"instruction": "x"},
                    }
                ],
            )
        )
    # of verdicts that have the score already its error is said as well, and which calibration it is
    # by
    filtered = ("filter", shards, "--where", "PQ_calibrated > 0", "--out")
    assert note in vieval(*filtered, tmp_path / "kept").out
    kept = [
        row
        for file in (tmp_path / "kept").rglob("*.parquet")
        for row in parquet.read_table(file).to_pylist()
    ]
    assert {row["calibration"] for row in kept} == {digest}
    shown = vieval("report", tmp_path / "v.jsonl", "--out", report).out
    assert note in shown
    text = (report / "findings.json").read_text()
    assert f"calibration {digest}" in text
    vieval(*judged(120))
    replaced = f"replacing PQ_calibrated from calibration {digest} in the verdicts"
    for printed in (
        vieval("report", tmp_path / "v.jsonl", *calibration, "--out", report).out,
        vieval(*filtered, tmp_path / "again", *calibration).out,
    ):
        assert f"note: {replaced}\n" in printed
        assert "calibrated with 120 ratings" in printed
        assert note not in printed
    printed = vieval("report", tmp_path / "out", *calibration, "--out", report).out
    assert (
        "PQ_calibrated estimates people's ratings: calibrated with 120 ratings: typical error 0."
        in printed
    )
    assert "replacing" not in printed
    assert "PQ_calibrated" in (report / "numbers.csv").read_text()
    page = (report / "report.html").read_text()
    assert "typical error 0." in page
    assert re.search(r"PQ 0\.\d\d, PQ \(calibrated\) 0\.\d\d</span>", page)


CHANGES = (
    ({"judge": "ssim"}, "the judge ssim"),
    ({"backbone": "other"}, "the backbone other"),
    ({"setting": "1shot"}, "the setting 1shot"),
    ({"pack_hash": "abc"}, "the wording abc"),
    ({"aspect": "O"}, "is for O"),
    ({"knots": {"tie": [[0], [0]]}}, "task type tie"),
    (
        {"knots": {"tig": [[0.5, 0.1], [0, 1]]}},
        "must have the same length and be in increasing order",
    ),
    ({"labels": None}, "not a calibration"),
)


def test_a_calibration_of_something_else_is_refused(vieval, judged, tmp_path):
    vieval(*judged(60))
    path = tmp_path / "cal.json"
    accepted = json.loads(path.read_text())
    commands = (
        ("filter", tmp_path / "out", "--where", "PQ > 0", "--out", tmp_path / "kept"),
        ("report", tmp_path / "out", "--out", tmp_path / "report"),
        ("score", tmp_path / "data", *SHARPNESS, "--out", tmp_path / "again"),
        (
            "score",
            tmp_path / "data" / "part-0.parquet",
            *SHARPNESS,
            "--out",
            tmp_path / "again.jsonl",
        ),
    )
    for (change, key), command in itertools.product(CHANGES, commands):
        path.write_text(json.dumps({**accepted, **change}))
        err = vieval(*command, "--calibration", path, code=1).err
        assert key in err.splitlines()[-1], (change, command)
        assert all(line.startswith("vieval: ") for line in err.splitlines())
        assert not any(
            (tmp_path / name).exists() for name in ("kept", "again", "again.jsonl")
        )


def test_no_file_and_other_contents_are_lines(vieval, judged, tmp_path):
    filtered = (
        *split(
            f"filter {tmp_path}/out --where 'PQ > 0' --out {tmp_path}/kept --calibration"
        ),
    )
    said = vieval(*filtered, tmp_path / "none.json", code=1).err
    assert "none.json: not a calibration (" in said
    for text in (
        "",
        "[1]",
        '"x"',
        "{}",
        '{"knots": {"tig": [[NaN], [1]]}}',
        "\0\1",
        "[" * 5000,
    ):
        (tmp_path / "cal.json").write_text(text)
        err = vieval(*filtered, tmp_path / "cal.json", code=1).err
        assert "cal.json: not a calibration (" in err
        assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"knots": {}},
        {"labels": -1},
        {"labels": True},
        {"knots": {"tig": [[True], [1]]}},
    ],
)
def test_a_calibration_has_knots_and_labels_that_are_numbers(tmp_path, change):
    errors = {"calibrated": 0.1, "raw": 0.2, "median": 0.3}
    document = {
        "judge": "ssim",
        "setting": "",
        "backbone": "",
        "pack_hash": "",
        "aspect": "SC",
        "labels": 60,
    }
    document |= {
        "knots": {"tig": [[0, 1], [0.1, 0.9]]},
        "on_prompts": errors,
        "on_generators": None,
        "accepted": True,
    }
    (tmp_path / "cal.json").write_text(json.dumps(document | change))
    if not change:
        assert read_calibration(tmp_path / "cal.json").labels == 60
        return
    assert "not a calibration" in refusal(read_calibration, tmp_path / "cal.json")


def test_a_verdict_without_a_score_is_not_calibrated(vieval, judged, tmp_path):
    vieval(*judged(60))
    data = tmp_path / "data" / "part-0.parquet"
    rows = parquet.read_table(data).to_pylist()
    rows[0]["image"] = {"bytes": b"no image", "path": "0.jpg"}
    parquet.write_table(pyarrow.Table.from_pylist(rows), data)
    vieval("score", tmp_path / "data", *SHARPNESS, "--out", tmp_path / "broken")
    filtered = (
        *split(
            f"filter {tmp_path}/broken --calibration {tmp_path}/cal.json "
            f"--out {tmp_path}/kept"
        ),
    )
    assert "239 of 240 rows" in vieval(*filtered, "--where", "PQ_calibrated >= 0").out


@pytest.fixture
def rated(vieval, tmp_path):
    """The command on verdicts with O, on 40 prompts of each generator and task type, of which so
    many prompts are rated.
    """
    labels = tmp_path / "labels.csv"

    def cubed(rng):
        score = rng.uniform()
        return score, np.clip(score**3 + rng.normal(0, 0.05), 0, 1)

    def calibrate(generators_by_kind, *, aspect="O", prompts=40, draw=cubed, code=0):
        rng = np.random.default_rng(0)
        samples = []
        verdicts = []
        lines = ["benchmark,part,uid,generator,draw,rater,aspect,value"]
        for kind, generators in generators_by_kind.items():
            for generator in generators:
                for number in range(40):
                    score, people = draw(rng)
                    identity = SampleId("own", kind, generator, f"p{number}")
                    sample = Sample(identity, {}, kind=kind)
                    samples.append(sample)
                    verdicts.append(Verdict({"O": score}, Status.OK))
                    if number < prompts:
                        lines.append(
                            f"own,{kind},p{number},{generator},,ann,{aspect},{people:.3f}"
                        )
        source = Provenance("viescore", (), ("O",), "judge-7b")
        write_verdicts(tmp_path / "v.jsonl", samples, verdicts, source)
        labels.write_text("\n".join(lines) + "\n")
        command = (*split(f"calibrate {tmp_path}/v.jsonl --human {labels}"),)
        return vieval(*command, "--out", tmp_path / "cal.json", code=code)

    return calibrate


def test_an_accepted_calibration_that_is_no_nearer_than_the_median_says_so(rated):
    """Most images are rated 0, and the judge likes half of the others and a quarter of these."""

    def draw(rng):
        people = rng.choice([0, 0.5], p=[0.6, 0.4])
        return (0.9 if rng.uniform() < 0.25 + people / 2 else 0.2), people

    sentence = "Predicting the median label for every image is, on average, at least as accurate"
    printed = rated({"tig": [f"model{number}" for number in range(16)]}, draw=draw).out
    assert sentence in printed
    assert sentence not in rated({"tig": ("ours", "theirs")}).out
